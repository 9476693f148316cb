"""One mechanism under one budget: collections simulated again and again beside the truth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdr4me.comparison.foretold import foretold_mse, shares_of, unit_values
from hdr4me.simulation.collection import simulate_tally
from hdr4me.statistics import ask
from hdr4me.statistics.statistic import STATISTICS
from hdr4me.survey import Schema, Survey

__all__ = ["LEVEL", "Row", "measured", "served", "truth_of"]

Floats = NDArray[np.float64]
_ASKED: dict[str, tuple[str, dict[str, Any]]] = {"median": ("quantile", {"p": [0.5]})}
"""The statistic of the library and its options, where the name is another."""
_RECALIBRATED = ("mean", "frequency")
LEVEL = 0.95
"""Of the intervals whose coverage is counted."""


@dataclass(frozen=True)
class Row:
    """One mechanism under one budget: mean squared errors over dimensions, on [−1, 1] for numbers.

    `*_se` are standard errors over the repeated collections; `coverage` is the share of 95 % intervals with the truth.
    """

    kind: str
    statistic: str
    epsilon: float
    mechanism: str
    foretold: float | None
    simulated: float
    simulated_se: float
    recalibrated: float | None
    recalibrated_se: float | None
    coverage: float


def served(survey: Survey, statistic: str) -> bool:
    """Whether the survey's channels can tell a statistic."""
    rule = STATISTICS[_ASKED.get(statistic, (statistic, {}))[0]]
    return all(
        rule.serves(survey.schema.dimensions[j], question.channel)
        for question in survey.questions
        for j in question.dimensions
    )


def truth_of(schema: Schema, table: pa.Table, statistic: str) -> Floats:
    """What the answers should be, in the order of their rows; numbers on [−1, 1]."""
    if statistic == "frequency":
        return np.concatenate([shares_of(x, table.column(x.name)) for x in schema])
    rules: dict[str, Callable[[Floats], Any]] = {"mean": np.mean, "median": np.median, "variance": np.var}
    return np.array([float(rules[statistic](unit_values(x, table.column(x.name)))) for x in schema])


def measured(
    name: str,
    statistic: str,
    survey: Survey,
    table: pa.Table,
    truth: Floats,
    seeds: list[int],
    *,
    recalibrate: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Row:
    """The line of one mechanism.

    Parameters
    ----------
    name, statistic
        What the line is called, and what is asked.
    survey, table
        Who is asked what.
    truth
        What the answers should be.
    seeds
        One for each simulated collection.
    recalibrate
        Whether to measure the error after re-calibration too.
    progress
        Called with 1 after each of them.
    """
    asked, options = _ASKED.get(statistic, (statistic, {}))
    unscaled = _scale(survey.schema, statistic)
    errors, after, covered = [], [], []
    for seed in seeds:
        tally = simulate_tally(table, survey, seed=seed)
        answer = ask(tally, asked, None, **options)
        low, high = (unscaled(end) for end in answer.interval(LEVEL))
        covered.append(float(((low <= truth) & (truth <= high)).mean()))
        errors.append(float(np.nanmean(np.square(unscaled(answer.value) - truth))))
        if recalibrate and statistic in _RECALIBRATED:
            better = tally.estimate().recalibrate()
            after.append(float(np.nanmean(np.square(unscaled(better.value) - truth))))
        if progress is not None:
            progress(1)
    return Row(
        kind="categories" if statistic == "frequency" else "numbers",
        statistic=statistic,
        epsilon=survey.epsilon,
        mechanism=name,
        foretold=_foretold(survey, table, statistic),
        simulated=float(np.mean(errors)),
        simulated_se=_error(errors),
        recalibrated=float(np.mean(after)) if after else None,
        recalibrated_se=_error(after) if after else None,
        coverage=float(np.mean(covered)),
    )


def _scale(schema: Schema, statistic: str) -> Callable[[Floats], Floats]:
    """From own units to [−1, 1]; frequencies stay as they are."""
    if statistic == "frequency":
        return lambda values: values
    half = np.array([(x.bounds[1] - x.bounds[0]) / 2 for x in schema])
    if statistic == "variance":
        return lambda values: values / half**2
    middle = np.array([sum(x.bounds) / 2 for x in schema])
    return lambda values: (values - middle) / half


def _foretold(survey: Survey, table: pa.Table, statistic: str) -> float | None:
    """The mean over all rows of the answer; None where one of them is not foretold."""
    if statistic not in _RECALIBRATED:
        return None
    told = list(foretold_mse(survey, table).values())
    sizes = [max(1, len(x.categories)) for x in survey.schema]
    known = [x for x in told if x is not None]
    return float(np.average(known, weights=sizes)) if len(known) == len(sizes) else None


def _error(values: list[float]) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
