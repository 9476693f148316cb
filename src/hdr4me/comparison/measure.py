"""One mechanism under one budget: the error predicted, and collections simulated again and again beside the truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.framework.population import Population
from hdr4me.framework.prediction import Prediction, survey_prediction
from hdr4me.simulation.collection import simulate_tally
from hdr4me.statistics import ask
from hdr4me.statistics.statistic import STATISTICS
from hdr4me.survey import Dimension, Product, Schema, Survey
from hdr4me.survey.columns import product_of

Floats = NDArray[np.float64]
_ASKED: dict[str, tuple[str, dict[str, Any]]] = {"median": ("quantile", {"p": [0.5]})}
"""The statistic of the library and its options, where the name is another."""
_SHARES = ("frequency", "chosen", "share")
"""Statistics that are shares of users, whatever the dimension's units."""
_RULES: dict[str, Callable[..., Any]] = {"mean": np.mean, "median": np.median, "variance": np.var}
LEVEL = 0.95
"""Of the intervals whose coverage is counted."""


@dataclass(frozen=True)
class Row:
    """One mechanism under one budget: mean squared errors over the rows of an answer, on the `scale` that it names.

    `*_se` are standard errors over the repeated collections; `coverage` is the share of 95 % intervals with the truth.
    `told` is the share of answers that there were: without a report there is none, and no mean of an optional number
    where too few significantly have one. Errors and coverage are of the answers that there were.
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


def population_of(dimension: Dimension, table: pa.Table) -> Population:
    """The values of each coordinate, a row for each, and the shares of the users with them.

    Numbers are on [−1, 1], vectors on the scale on which the largest norm is 1; NaN where an optional one is missing;
    a category is 0 or 1.

    >>> from hdr4me.survey import Numeric
    >>> found = population_of(Numeric("age", 0, 100, optional=True), pa.table({"age": [25.0, None, 100.0]}))
    >>> found.values.tolist()
    [[-0.5, nan, 1.0]]
    """
    n = table.num_rows
    if dimension.categories:
        flat: Any = table.column(dimension.name).combine_chunks()
        flat = flat if pa.types.is_string(flat.type) or not hasattr(flat, "flatten") else flat.flatten()
        index = {label: i for i, label in enumerate(dimension.categories)}
        chosen = np.array([index[label] for label in flat.cast(pa.string()).to_pylist()], np.int64)
        f = np.bincount(chosen, minlength=len(index)) / n
        return Population(np.tile([0.0, 1.0], (f.size, 1)), np.stack([1.0 - f, f], axis=1), finite=True)
    low, high = dimension.bounds
    if length := getattr(dimension, "length", 0):
        lists: Any = table.column(dimension.name).combine_chunks()
        values = np.full((n, length), np.nan)
        values[np.asarray(lists.is_valid())] = np.asarray(lists.flatten(), np.float64).reshape(-1, length)
        values = values.T / high
    elif isinstance(dimension, Product):
        first, second = (_column(table, factor.name) for factor in dimension.both)
        values = product_of(first, second, dimension)[None]
    else:
        values = 2 * (np.clip(_column(table, dimension.name), low, high) - low)[None] / (high - low) - 1
    return Population(values, np.full(n, 1.0 / n), finite=True)


def _column(table: pa.Table, name: str) -> Floats:
    return np.asarray(table.column(name).to_numpy(), np.float64)


def truth_of(schema: Schema, table: pa.Table, statistic: str) -> Floats:
    """What the answers should be, in the order of their rows; numbers on [−1, 1], vectors as shares of the norm."""
    found = []
    for population in (population_of(dimension, table) for dimension in schema):
        if statistic in ("frequency", "chosen"):
            found.append(population.shares[:, 1])
            continue
        there = ~np.isnan(population.values[0])
        if statistic == "share":
            found.append(np.array([there.mean()]))
        elif there.any():
            found.append(_RULES[statistic](population.values[:, there], axis=1))
        else:
            found.append(np.full(len(population.values), np.nan))
    return np.concatenate(found)


def predicted(survey: Survey, table: pa.Table, statistic: str) -> Prediction | None:
    """The errors that a survey will have on given data; None where no formula is known.

    The mean of numbers is on [−1, 1], that of a vector a share of the norm.
    """
    if statistic not in ("mean", *_SHARES):
        return None
    populations = [population_of(dimension, table) for dimension in survey.schema]
    try:
        return survey_prediction(survey, populations, table.num_rows, share=statistic == "share")
    except InvalidInput:  # a channel of another package whose counters do not determine the answer
        return None


def served(survey: Survey, statistic: str) -> bool:
    """Whether the survey's channels can estimate a statistic."""
    rule = STATISTICS[_ASKED.get(statistic, (statistic, {}))[0]]
    return all(
        rule.serves(survey.schema.dimensions[j], question.channel)
        for question in survey.questions
        for j in question.dimensions
    )


def _scaled(schema: Schema, statistic: str) -> Callable[[Floats], Floats]:
    """From an answer's own units to the scale of the errors; shares of users stay as they are."""
    if statistic in _SHARES:
        return lambda values: values
    each = [getattr(x, "length", 1) for x in schema]
    half, middle = (
        np.repeat([(x.bounds[1] + sign * x.bounds[0]) / 2 for x in schema], each) for sign in (-1, 1)
    )
    return lambda values: values / half**2 if statistic == "variance" else (values - middle) / half


class _Errors:
    """What is collected for one statistic, collection by collection."""

    def __init__(self, survey: Survey, table: pa.Table, statistic: str) -> None:
        self.asked, self.options = _ASKED.get(statistic, (statistic, {}))
        self.prediction = predicted(survey, table, statistic)
        self.truth = truth_of(survey.schema, table, statistic)
        self.scaled = _scaled(survey.schema, statistic)
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
        """The mean over the rows that there are; NaN if there is none."""
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
    """The lines of one mechanism, one for each statistic; `progress` is called with 1 after each collection."""
    each = {statistic: _Errors(survey, table, statistic) for statistic in statistics}
    again = [errors for statistic, errors in each.items() if statistic in ("mean", *_SHARES)]
    for seed in seeds:
        tally = simulate_tally(table, survey, seed=seed)
        for errors in each.values():
            errors.add(ask(tally, errors.asked, None, **errors.options))
        if recalibrate and again:
            better = tally.estimate().recalibrate()
            for errors in again:
                errors.add_recalibrated(better)
        if progress is not None:
            progress(1)
    return [
        Row(
            kind=kind,
            statistic=statistic,
            scale=_scale(survey.schema, statistic),
            epsilon=survey.epsilon,
            mechanism=name,
            foretold=None if errors.prediction is None else errors.prediction.mse,
            simulated=_mean(errors.before),
            simulated_se=_error(errors.before),
            recalibrated=_mean(errors.after) if errors.after else None,
            recalibrated_se=_error(errors.after) if errors.after else None,
            coverage=_mean(errors.covered),
            told=float(np.mean(errors.told)),
        )
        for statistic, errors in each.items()
    ]


def _scale(schema: Schema, statistic: str) -> str:
    """In words, what the errors of a row are measured in."""
    if statistic in _SHARES:
        return "shares of users"
    return "norm scaled to 1" if hasattr(schema.dimensions[0], "length") else "range scaled to [−1, 1]"


def _mean(values: list[float]) -> float:
    """Of the collections that had an answer."""
    known = [x for x in values if not math.isnan(x)]
    return float(np.mean(known)) if known else math.nan


def _error(values: list[float]) -> float:
    known = [x for x in values if not math.isnan(x)]
    return float(np.std(known, ddof=1) / math.sqrt(len(known))) if len(known) > 1 else math.nan
