"""One mechanism under one budget: collections simulated again and again beside the truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdr4me.comparison.foretold import FORETOLD, foretold_mse
from hdr4me.comparison.kinds import scale
from hdr4me.comparison.truth import scaled_answer, truth_of
from hdr4me.simulation.collection import simulate_tally
from hdr4me.statistics import ask
from hdr4me.statistics.statistic import STATISTICS
from hdr4me.survey import Survey

__all__ = ["LEVEL", "Row", "measured", "served"]

Floats = NDArray[np.float64]
_ASKED: dict[str, tuple[str, dict[str, Any]]] = {"median": ("quantile", {"p": [0.5]})}
"""The statistic of the library and its options, where the name is another."""
LEVEL = 0.95
"""Of the intervals whose coverage is counted."""


@dataclass(frozen=True)
class Row:
    """One mechanism under one budget: mean squared errors over the rows of an answer, on the `scale` that it names.

    `*_se` are standard errors over the repeated collections; `coverage` is the share of 95 % intervals with the truth.
    `told` is the share of answers that there were: without a report there is none, and no mean of an optional number
    where too few surely have one. Errors and coverage are of the answers that were told.
    """

    kind: str
    statistic: str
    scale: str
    epsilon: float
    mechanism: str
    foretold: float | None
    simulated: float
    simulated_se: float
    recalibrated: float | None
    recalibrated_se: float | None
    coverage: float
    told: float


def served(survey: Survey, statistic: str) -> bool:
    """Whether the survey's channels can tell a statistic."""
    rule = STATISTICS[_ASKED.get(statistic, (statistic, {}))[0]]
    return all(
        rule.serves(survey.schema.dimensions[j], question.channel)
        for question in survey.questions
        for j in question.dimensions
    )


class _Errors:
    """What is collected for one statistic, collection by collection."""

    def __init__(self, survey: Survey, table: pa.Table, statistic: str) -> None:
        self.statistic = statistic
        self.asked, self.options = _ASKED.get(statistic, (statistic, {}))
        self.truth = truth_of(survey.schema, table, statistic)
        self.scaled = scaled_answer(survey.schema, statistic)
        self.before: list[float] = []
        self.after: list[float] = []
        self.covered: list[float] = []
        self.told: list[float] = []
        self._known = np.ones(len(self.truth), bool)

    def add(self, answer: Any) -> None:
        self._known = np.isfinite(answer.value) & ~answer.unsure
        low, high = (self.scaled(end) for end in answer.interval(LEVEL))
        self.covered.append(self._mean((low <= self.truth) & (self.truth <= high)))
        self.before.append(self._mean(np.square(self.scaled(answer.value) - self.truth)))
        self.told.append(float(self._known.mean()))

    def add_recalibrated(self, answer: Any) -> None:
        """The same collection's answers after re-calibration, among rows of other statistics."""
        rows = np.array([name == self.asked for name in answer.statistics])
        self.after.append(self._mean(np.square(self.scaled(answer.value[rows]) - self.truth)))

    def _mean(self, rows: NDArray[Any]) -> float:
        """The mean over the rows that are told; NaN if none is."""
        return float(rows[self._known].mean()) if self._known.any() else math.nan


def measured(
    name: str,
    kind: str,
    statistics: Sequence[str],
    survey: Survey,
    table: pa.Table,
    seeds: list[int],
    *,
    recalibrate: bool = True,
    progress: Callable[[int], None] | None = None,
) -> list[Row]:
    """The lines of one mechanism, one for each statistic.

    Parameters
    ----------
    name, kind, statistics
        What the lines are called, and what is asked.
    survey, table
        Who is asked what.
    seeds
        One for each simulated collection.
    recalibrate
        Whether to measure the error after re-calibration too.
    progress
        Called with 1 after each of them.
    """
    each = [_Errors(survey, table, statistic) for statistic in statistics]
    for seed in seeds:
        tally = simulate_tally(table, survey, seed=seed)
        for errors in each:
            errors.add(ask(tally, errors.asked, None, **errors.options))
        again = [errors for errors in each if errors.statistic in FORETOLD]
        if recalibrate and again:
            better = tally.estimate().recalibrate()
            for errors in again:
                errors.add_recalibrated(better)
        if progress is not None:
            progress(1)
    return [
        Row(
            kind=kind,
            statistic=errors.statistic,
            scale=scale(kind, errors.statistic),
            epsilon=survey.epsilon,
            mechanism=name,
            foretold=foretold_mse(survey, table, errors.statistic),
            simulated=_mean(errors.before),
            simulated_se=_error(errors.before),
            recalibrated=_mean(errors.after) if errors.after else None,
            recalibrated_se=_error(errors.after) if errors.after else None,
            coverage=_mean(errors.covered),
            told=float(np.mean(errors.told)),
        )
        for errors in each
    ]


def _mean(values: list[float]) -> float:
    """Of the collections that told something."""
    told = [x for x in values if not math.isnan(x)]
    return float(np.mean(told)) if told else math.nan


def _error(values: list[float]) -> float:
    told = [x for x in values if not math.isnan(x)]
    return float(np.std(told, ddof=1) / math.sqrt(len(told))) if len(told) > 1 else math.nan
