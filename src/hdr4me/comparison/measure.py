"""The predicted error of one mechanism under one budget, and the errors of simulated collections."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdr4me.comparison.data import clean_values
from hdr4me.errors import InvalidInput
from hdr4me.framework.population import Population
from hdr4me.framework.prediction import Prediction, survey_prediction
from hdr4me.simulation.collection import simulate_tally
from hdr4me.statistics import ask
from hdr4me.statistics.statistic import STATISTICS
from hdr4me.survey import Dimension, Schema, Survey

Floats = NDArray[np.float64]
# The name of a statistic in `ask` and its options, where they differ.
_REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {"median": ("quantile", {"p": [0.5]})}
_SHARES = ("frequency", "chosen", "share")  # shares of users, which have no units
_RULES: dict[str, Callable[..., Any]] = {"mean": np.mean, "median": np.median, "variance": np.var}
_PART = 1 << 12  # users whose values are in memory together
LEVEL = 0.95  # of the intervals whose coverage is counted


@dataclass(frozen=True)
class Row:
    """One mechanism under one budget: mean squared errors over the rows of an answer, on the named `scale`.

    `*_se` are standard errors over the repeated collections. `coverage` is the share of 95 % intervals that contain the
    true value, and `answered` the share of rows with an estimate, over which the errors are averaged.
    """

    kind: str
    statistic: str
    scale: str
    epsilon: float
    mechanism: str
    predicted: float | None
    simulated: float
    simulated_se: float
    recalibrated: float | None
    recalibrated_se: float | None
    coverage: float
    answered: float

    def cells(self) -> list[object]:
        """The cells of the row in a table."""
        errors = self.predicted, self.simulated, self.simulated_se, self.recalibrated
        return [self.epsilon, self.mechanism, *errors, f"{100 * self.coverage:.1f} %"]


def population_of(dimension: Dimension, table: pa.Table) -> Population:
    """The values of each coordinate on [−1, 1], a category being 0 or 1, and the shares of the users with them."""
    n = table.num_rows
    if dimension.categories:
        f = np.bincount(_chosen(dimension, table)[1], minlength=len(dimension.categories)) / n
        return Population(np.tile([0.0, 1.0], (f.size, 1)), np.stack([1.0 - f, f], axis=1), finite=True)
    low, high = dimension.bounds
    if length := getattr(dimension, "length", 0):
        lists: Any = clean_values(dimension, table)
        values = np.full((n, length), np.nan)
        values[np.asarray(lists.is_valid())] = np.asarray(lists.flatten(), np.float64).reshape(-1, length)
        values = values.T / high
    else:
        numbers = np.asarray(clean_values(dimension, table), np.float64)
        values = 2 * (np.clip(numbers, low, high) - low)[None] / (high - low) - 1
    return Population(values, np.full(n, 1.0 / n), finite=True)


def _chosen(dimension: Dimension, table: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The users and the categories of all choices."""
    column = clean_values(dimension, table)
    users = np.arange(len(column))
    if hasattr(column, "flatten") and not pa.types.is_string(column.type):
        users = np.asarray(column.value_parent_indices())
        column = column.flatten()
    index = {label: i for i, label in enumerate(dimension.categories)}
    return users, np.array([index[label] for label in column.cast(pa.string()).to_pylist()], np.int64)


def _values(schema: Schema, table: pa.Table) -> Iterator[list[Floats]]:
    """The users' coordinates of each dimension [users, coordinates], in parts; 1 or 0 for each category."""
    for start in range(0, table.num_rows, _PART):
        part, found = table.slice(start, _PART), []
        for dimension in schema:
            if dimension.categories:
                each = np.zeros((part.num_rows, len(dimension.categories)))
                each[_chosen(dimension, part)] = 1.0
            else:
                each = population_of(dimension, part).values.T
            found.append(each)
        yield found


def truth_of(schema: Schema, table: pa.Table, statistic: str) -> Floats:
    """The true answers in the order of their rows; numbers on [−1, 1], vectors divided by the norm."""
    found = []
    for population in (population_of(dimension, table) for dimension in schema):
        there = ~np.isnan(population.values[0])
        if statistic in ("frequency", "chosen"):
            found.append(population.shares[:, 1])
        elif statistic == "share":
            found.append(np.array([there.mean()]))
        elif there.any():
            found.append(_RULES[statistic](population.values[:, there], axis=1))
        else:
            found.append(np.full(len(population.values), np.nan))
    return np.concatenate(found)


def predicted(survey: Survey, table: pa.Table, statistic: str) -> Prediction | None:
    """The predicted errors of a survey on given data; None if no formula is known."""
    if statistic not in ("mean", *_SHARES):
        return None
    populations = [population_of(dimension, table) for dimension in survey.schema]
    try:
        return survey_prediction(
            survey,
            populations,
            table.num_rows,
            share=statistic == "share",
            data=partial(_values, survey.schema, table),
        )
    except InvalidInput:  # a channel of another package whose counters do not determine the answer
        return None


def supported(survey: Survey, statistic: str) -> bool:
    """Whether the survey's channels can estimate a statistic."""
    rule = STATISTICS[_REQUESTS.get(statistic, (statistic, {}))[0]]
    channels = ((survey.schema.dimensions[j], x.channel) for x in survey.questions for j in x.dimensions)
    return all(rule.supports(dimension, channel) for dimension, channel in channels)


def _scaled(schema: Schema, statistic: str) -> tuple[str, Callable[[Floats], Floats]]:
    """The name of the scale of the errors, and the function from an answer's own units to that scale."""
    if statistic in _SHARES:
        return "shares of users", lambda values: values
    each = [getattr(x, "length", 1) for x in schema]
    half, middle = (
        np.repeat([(x.bounds[1] + sign * x.bounds[0]) / 2 for x in schema], each) for sign in (-1, 1)
    )
    words = "norm scaled to 1" if hasattr(schema.dimensions[0], "length") else "range scaled to [-1, 1]"
    return words, lambda values: values / half**2 if statistic == "variance" else (values - middle) / half


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
    """The rows of one mechanism, one for each statistic; `progress` is called with 1 after each collection."""
    truths = {statistic: truth_of(survey.schema, table, statistic) for statistic in statistics}
    found: dict[str, list[tuple[float, ...]]] = {statistic: [] for statistic in statistics}
    again = [statistic for statistic in statistics if recalibrate and statistic in ("mean", *_SHARES)]
    for seed in seeds:
        tally = simulate_tally(table, survey, seed=seed)
        better = tally.estimate().recalibrate() if again else None
        for statistic, truth in truths.items():
            found[statistic].append(_errors(tally, better if statistic in again else None, statistic, truth))
        if progress is not None:
            progress(1)
    rows = []
    for statistic, errors in found.items():
        before, after, covered, answered = np.array(errors).T
        prediction = predicted(survey, table, statistic)
        better_errors: tuple[float | None, float | None] = None, None
        if statistic in again:
            better_errors = _mean_and_error(after)
        what = (
            kind,
            statistic,
            _scaled(survey.schema, statistic)[0],
            survey.epsilon,
            name,
            None if prediction is None else prediction.mse,
        )
        shares = _mean_and_error(covered)[0], float(answered.mean())
        rows.append(Row(*what, *_mean_and_error(before), *better_errors, *shares))
    return rows


def _errors(tally: Any, better: Any, statistic: str, truth: Floats) -> tuple[float, ...]:
    """Mean squared error before and after re-calibration, coverage, and the share of rows with an estimate."""
    asked, options = _REQUESTS.get(statistic, (statistic, {}))
    scaled = _scaled(tally.survey.schema, statistic)[1]
    answer = ask(tally, asked, None, **options)
    known = np.isfinite(answer.value) & ~answer.not_significant
    if not known.any():
        return math.nan, math.nan, math.nan, 0.0
    low, high = (scaled(end) for end in answer.interval(LEVEL))
    covered = float(((low <= truth) & (truth <= high))[known].mean())
    before, after = float(np.square(scaled(answer.value) - truth)[known].mean()), math.nan
    if better is not None:
        value = better.value[[name == asked for name in better.statistics]]
        after = float(np.square(scaled(value) - truth)[known].mean())
    return before, after, covered, float(known.mean())


def _mean_and_error(values: Floats) -> tuple[float, float]:
    """The mean over the collections with an answer, and its standard error."""
    known = values[~np.isnan(values)]
    error = float(np.std(known, ddof=1) / math.sqrt(known.size)) if known.size > 1 else math.nan
    return float(np.mean(known)) if known.size else math.nan, error
