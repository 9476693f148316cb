"""The answer: means and frequencies in the user's own units, with standard errors and intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.statistics.calibrate import frequency_moments, value_moments
from hdr4me.statistics.intervals import quantile
from hdr4me.statistics.moments import Moments
from hdr4me.survey import Categorical, Numeric, Survey
from hdr4me.tally import Tally

if TYPE_CHECKING:
    from hdr4me.recalibration.estimates import RecalibratedEstimate

__all__ = ["Estimate", "Frequencies", "estimate"]

Floats = NDArray[np.float64]
OK, ONE, NONE = "ok", "one report", "no reports"


@dataclass(frozen=True)
class Frequencies:
    """How often each category was meant: estimates that may be negative or not sum to 1, for nothing is clipped.

    Without reports both arrays are NaN, with one report the standard errors are; `status` says so.
    """

    name: str
    categories: tuple[str, ...]
    frequency: Floats
    standard_error: Floats
    n_answers: int

    @property
    def status(self) -> str:
        """ok, one report, or no reports."""
        return _status(self.n_answers)

    def interval(self, level: float = 0.95, *, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """Lower and upper ends; simultaneous ones cover all categories of this dimension at once."""
        reach = (
            quantile(level, self.n_answers, len(self.categories) if simultaneous else 1) * self.standard_error
        )
        return self.frequency - reach, self.frequency + reach


@dataclass(frozen=True)
class Estimate:
    """Means of the numeric dimensions, in the schema's order, and frequencies of the categorical ones.

    Arrays have one element for each name in `names`. A dimension nobody answered has NaN there, and one
    that a single user answered has NaN for its standard error; `status` names them and `table()` leaves them empty.

    >>> from hdr4me.client import Client
    >>> from hdr4me.survey import Schema
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), epsilon=4.0, mechanism="duchi")
    >>> answer = estimate(Tally(survey).add(Client(survey).report({"age": 30}) for _ in range(2000)))
    >>> low, high = answer.interval(0.999999)
    >>> bool(low[0] < 30 < high[0])
    True
    """

    survey: Survey
    n_users: int
    names: tuple[str, ...]
    n_answers: NDArray[np.int64]
    scaled_mean: Floats
    scaled_standard_error: Floats
    _frequencies: dict[str, Frequencies]

    @property
    def status(self) -> tuple[str, ...]:
        """For each numeric dimension: ok, one report, or no reports."""
        return tuple(map(_status, self.n_answers.tolist()))

    @property
    def mean(self) -> Floats:
        """Means in the user's units: low + (scaled + 1)/2·(high − low)."""
        low, high = self.bounds
        return low + (self.scaled_mean + 1) / 2 * (high - low)

    @property
    def standard_error(self) -> Floats:
        """Standard errors in the user's units."""
        low, high = self.bounds
        return self.scaled_standard_error / 2 * (high - low)

    def interval(self, level: float = 0.95, *, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """Lower and upper ends in the user's units; simultaneous ones cover all numeric dimensions at once."""
        reach = quantile(level, self.n_answers, self._n_joint if simultaneous else 1) * self.standard_error
        return self.mean - reach, self.mean + reach

    def scaled_interval(self, level: float = 0.95, *, simultaneous: bool = False) -> tuple[Floats, Floats]:
        """The same on [-1, 1]."""
        reach = (
            quantile(level, self.n_answers, self._n_joint if simultaneous else 1) * self.scaled_standard_error
        )
        return self.scaled_mean - reach, self.scaled_mean + reach

    def frequencies(self, name: str) -> Frequencies:
        """The frequencies of a categorical dimension."""
        if name not in self._frequencies:
            known = ", ".join(map(repr, self._frequencies)) or "none"
            raise InvalidInput(f"{name!r} is not a categorical dimension of this survey, which has {known}")
        return self._frequencies[name]

    @property
    def categorical_names(self) -> tuple[str, ...]:
        return tuple(self._frequencies)

    def table(self, level: float = 0.95, *, simultaneous: bool = False) -> list[dict[str, Any]]:
        """One row for each mean and each category, in the schema's order, of plain Python values for CSV or JSON.

        Simultaneous intervals cover all rows at once. What is not known is None and `status` says why.
        """
        answered = [f for f in self._frequencies.values() if f.status == OK]
        n_joint = self._n_joint + sum(len(f.categories) for f in answered) if simultaneous else 1
        means = iter(zip(self.names, self.mean, self.standard_error, self.n_answers, strict=True))
        rows: list[dict[str, Any]] = []
        for dimension in self.survey.schema:
            if isinstance(dimension, Categorical):
                f = self._frequencies[dimension.name]
                pairs = zip(f.categories, f.frequency, f.standard_error, strict=True)
                rows += [_row(f.name, c, x, se, f.n_answers, level, n_joint) for c, x, se in pairs]
            else:
                name, x, se, n = next(means)
                rows.append(_row(name, None, x, se, int(n), level, n_joint))
        return rows

    def recalibrate(self, method: str = "auto", **options: Any) -> RecalibratedEstimate:
        """Means and frequencies made better together; the options are those of `hdr4me.recalibrate`."""
        # An import upwards, as `Tally.estimate` has one: the next step is one call away.
        from hdr4me.recalibration.estimates import recalibrate_estimate

        return recalibrate_estimate(self, method, **options)

    @property
    def _n_joint(self) -> int:
        return int((self.n_answers > 1).sum())

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """low and high of each numeric dimension."""
        numeric = [dimension for dimension in self.survey.schema if isinstance(dimension, Numeric)]
        return np.array([x.low for x in numeric]), np.array([x.high for x in numeric])


def estimate(tally: Tally) -> Estimate:
    """Calibrate a tally: every dimension's counts become its mean or its frequencies, with standard errors."""
    survey, layout, n = tally.survey, tally.layout, tally.n_reports
    moments = [Moments(randomizer) for randomizer in survey.randomizers]
    dimensions = survey.schema.dimensions
    d = len(dimensions)
    mean, variance = np.full(d, np.nan), np.full(d, np.nan)
    entry_totals = layout.totals(tally.counts)
    answers = entry_totals[np.cumsum(layout.entries) - layout.entries]
    numeric = np.array([isinstance(dimension, Numeric) for dimension in dimensions])
    for index, table in enumerate(moments):
        used = np.flatnonzero(numeric & (np.array(survey.assignment) == index) & (answers > 0))
        if used.size:
            cells = layout.offsets[used][:, None] + np.arange(table.randomizer.n_cells)
            mean[used], variance[used] = _answered(tally.counts[cells], answers[used], n, table)
    kept = np.flatnonzero(numeric)
    return Estimate(
        survey=survey,
        n_users=n,
        names=tuple(dimensions[j].name for j in kept.tolist()),
        n_answers=answers[kept],
        scaled_mean=mean[kept],
        scaled_standard_error=np.sqrt(variance[kept]),
        _frequencies={
            dimension.name: _frequencies(dimension, tally, j, int(answers[j]), moments[survey.assignment[j]])
            for j, dimension in enumerate(dimensions)
            if isinstance(dimension, Categorical)
        },
    )


def _answered(
    counts: NDArray[np.int64], answers: NDArray[np.int64], n: int, table: Moments
) -> tuple[Floats, Floats]:
    mean = counts @ table.decode / answers
    variance = np.full(len(mean), np.nan)
    several = answers > 1
    mean[several], variance[several] = value_moments(counts[several], n, table)
    return mean, variance


def _frequencies(dimension: Categorical, tally: Tally, j: int, answers: int, table: Moments) -> Frequencies:
    layout = tally.layout
    v, start = len(dimension.categories), int(layout.offsets[j])
    n_entries, n_cells = int(layout.entries[j]), int(layout.cells[j])
    frequency = error = np.full(v, np.nan)
    if answers:
        counts = tally.counts[start : start + n_entries * n_cells]
        shaped = counts if table.randomizer.kind == "category" else counts.reshape(n_entries, n_cells)
        frequency, variance = frequency_moments(shaped, tally.n_reports, table)
        error = np.sqrt(variance) if answers > 1 else error
    return Frequencies(dimension.name, dimension.categories, frequency, error, answers)


def _status(answers: int) -> str:
    return OK if answers > 1 else ONE if answers else NONE


def _row(
    name: str, category: str | None, value: float, error: float, answers: int, level: float, n_joint: int
) -> dict[str, Any]:
    status = _status(answers)
    reach = float(quantile(level, answers, n_joint)) * float(error)
    return {
        "dimension": name,
        "category": category,
        "estimate": None if status == NONE else float(value),
        "standard_error": float(error) if status == OK else None,
        "lower": float(value) - reach if status == OK else None,
        "upper": float(value) + reach if status == OK else None,
        "answers": answers,
        "status": status,
    }
