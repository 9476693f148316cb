"""The answer: what a statistic found, with its error bars; one type before and after re-calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.statistics.intervals import (
    EXACT,
    FEW_NOTE,
    NORMAL,
    Floats,
    Intervals,
    Rows,
    SmallSampleLaw,
    quantile,
)
from hdr4me.survey import Survey

if TYPE_CHECKING:
    import pyarrow as pa

    from hdr4me.recalibration import Recalibration


Row = dict[str, Any]
# A dimension with more than SHOWN categories shows those that are significantly the largest, and at most so many; a
# vector with more than _COORDINATES coordinates shows the first SHOWN of them.
SHOWN, _COORDINATES = 20, 40
OK, ONE, NONE, NOT_SIGNIFICANT = "ok", "one report", "no reports", "too few have a value"
_IN_UNITS = ("mean", "mean_by", "quantile", "sd")
_BY_ROW = (
    "statistics", "dimensions", "categories", "notes",
    "value", "standard_error", "n_answers", "scaled_value", "scaled_error", "not_significant",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """One row for each thing that was asked: a mean, a share, the frequency of one category, …

    Nothing is clipped: a frequency may be negative and frequencies need not sum to 1, until `recalibrate` is asked for.
    A row that nobody answered has NaN as its value, and one that a single user answered has NaN as its standard error;
    `status` names them and `table()` leaves them empty.

    Parameters
    ----------
    survey, n_reports
        What was asked, and how many reports were counted.
    statistics, dimensions, categories
        What each row is: the statistic's name, the dimension's, and the category's (None for a number).
    value, standard_error, n_answers
        In the dimension's own units, and the number of reports that each row comes from. After re-calibration the
        standard error is the method's own, or NaN.
    scaled_value, scaled_error
        The same on [−1, 1] for numbers, and as they are for shares.
    unsure
        Rows of which too few users have a value.
    method, advice, recalibration
        "raw", or the method of re-calibration; its advice; and what was done to the means.
    intervals
        Where intervals come from, if not from the standard error.
    notes
        Remarks on each row; empty for most.
    few
        The small-sample laws of rows that may have too few answers for the normal law; see `laws`.

    Examples
    --------
    >>> from hdr4me.client import Client
    >>> from hdr4me.survey import Numeric, Schema
    >>> from hdr4me.tally import Tally
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), epsilon=4.0, mechanism="duchi")
    >>> answer = Tally(survey).add(Client(survey).report({"age": 30}) for _ in range(2000)).estimate()
    >>> low, high = answer.interval(0.99999999)
    >>> bool(low[0] < 30 < high[0]), answer.dimensions
    (True, ('age',))
    """

    survey: Survey
    n_reports: int
    statistics: tuple[str, ...]
    dimensions: tuple[str, ...]
    categories: tuple[str | None, ...]
    value: Floats
    standard_error: Floats
    n_answers: NDArray[np.int64]
    scaled_value: Floats
    scaled_error: Floats
    not_significant: NDArray[np.bool_]
    method: str = "raw"
    advice: tuple[str, ...] = ()
    intervals: Intervals | None = None
    recalibration: Recalibration | None = None
    notes: tuple[str, ...] = ()
    small_sample: SmallSampleLaw | None = None

    def __len__(self) -> int:
        return len(self.dimensions)

    def __repr__(self) -> str:
        known = f"{self.status.count(OK)} of {len(self)} rows known from {self.n_reports:,} reports"
        return f"<Answer of survey {self.survey.fingerprint[:12]}: {known}, {self.method}>"

    def _repr_html_(self) -> str:
        from hdr4me.pages.answer import draw
        from hdr4me.pages.html import figure, paragraph, table

        rows, notes = largest_rows(self, self.table(), where="answer.table()")
        columns = ["dimension", "category", "statistic", "estimate", "lower", "upper", "answers", "status"]
        columns += [more for more in ("unit", "note") if any(more in row for row in rows)]
        drawing = draw(rows)
        picture = "" if drawing is None else figure(drawing, "Estimates with their 95 % intervals.")
        cells = [[row.get(column) for column in columns] for row in rows]
        return picture + "".join(map(paragraph, notes)) + table(columns, cells)

    def __getitem__(self, dimension: str) -> Answer:
        """The rows of one dimension."""
        return self._of_dimension(dimension, "a dimension")

    def _of_dimension(self, name: str, what: str) -> Answer:
        if name not in self.dimensions:
            known = ", ".join(map(repr, dict.fromkeys(self.dimensions))) or "none"
            raise InvalidInput(f"{name!r} is not {what} of this answer, which has {known}")
        return self._taken([i for i, own in enumerate(self.dimensions) if own == name])

    def of(self, statistic: str) -> Answer:
        """The rows of one statistic, such as "mean" or "frequency"; none if it was not asked."""
        return self._taken([i for i, own in enumerate(self.statistics) if own == statistic])

    @property
    def means(self) -> Answer:
        """The means of the numbers."""
        return self.of("mean")

    def frequencies(self, name: str) -> Answer:
        """The frequencies of a dimension's categories, one row for each."""
        return self.of("frequency")._of_dimension(name, "a categorical dimension")

    def top(self, most: int = 20, level: float = 0.95) -> Answer:
        """The categories of one dimension that are significantly larger than the others, the largest first.

        They are the largest number, up to `most`, of categories whose intervals, which hold for all at once, lie above
        those of all others: with probability `level` these are the largest categories. There may be none.
        """
        if type(most) is not int or most < 1:
            raise InvalidInput.of("most", most, "a positive integer")
        if len(set(zip(self.dimensions, self.statistics, strict=True))) != 1:
            raise InvalidInput(
                "top() is of one statistic of one dimension: take answer.frequencies(name) first"
            )
        order, sure = significantly_largest(self.value, *joint_interval(self, level))
        return self._taken(order[: max(sure[sure <= most].tolist(), default=0)])

    def _taken(self, rows: Sequence[int] | NDArray[np.int64]) -> Answer:
        """Some of the rows."""
        chosen, whole = np.asarray(rows, np.int64), self.intervals

        def part(level: float, kind: str) -> tuple[Floats, Floats]:
            assert whole is not None
            low, high = whole(level, kind)
            return low[chosen], high[chosen]

        own: dict[str, Any] = {name: getattr(self, name) for name in _BY_ROW if len(getattr(self, name))}
        for name, values in own.items():
            array = isinstance(values, np.ndarray)
            own[name] = values[chosen] if array else tuple(values[i] for i in chosen.tolist())
        small_sample = None if self.small_sample is None else self.small_sample.taken(chosen)
        return replace(self, **own, intervals=None if whole is None else part, small_sample=small_sample)

    @property
    def status(self) -> tuple[str, ...]:
        """For each row: ok, one report, no reports, or too few have a value."""
        pairs = zip(self.n_answers.tolist(), self.not_significant.tolist(), strict=True)
        return tuple(
            NONE if not n else ONE if n < 2 else NOT_SIGNIFICANT if not_significant else OK
            for n, not_significant in pairs
        )

    @property
    def units(self) -> tuple[str, ...]:
        """What each row is measured in, where the schema says so; empty for shares and frequencies."""
        known = {d.name: getattr(d, "unit", None) or "" for d in self.survey.schema.dimensions}
        squared = {name: f"{unit}²" if unit else "" for name, unit in known.items()}
        return tuple(
            squared[name] if statistic == "variance" else known[name] if statistic in _IN_UNITS else ""
            for name, statistic in zip(self.dimensions, self.statistics, strict=True)
        )

    def interval(
        self, level: float = 0.95, *, simultaneous: bool = False, kind: str | None = None
    ) -> tuple[Floats, Floats]:
        """Lower and upper ends in the dimensions' own units.

        Parameters
        ----------
        level
            The probability that the truth lies inside.
        simultaneous
            Whether that probability is of all rows of this answer at once.
        kind
            Of distributions, quantiles and variances: "conservative" (the default) or "approximate".
            After re-calibration: "conservative" (the default), "average" or "credible".
        """
        if self.intervals is not None:
            if simultaneous and self.method != "raw":
                raise InvalidInput("simultaneous intervals are those of the answer before re-calibration")
            joint = 1.0 - (1.0 - level) / max(len(self), 1) if simultaneous else level  # Bonferroni
            return self.intervals(joint, kind or "conservative")
        if kind not in (None, "raw"):
            raise InvalidInput.of("kind", kind, "None, for this answer is not re-calibrated")
        n_joint = self._n_joint(simultaneous)
        reach = quantile(level, self.n_answers, n_joint) * self.standard_error
        low, high = self.value - reach, self.value + reach
        rows = self._few_rows(level, simultaneous)
        if self.small_sample is not None and rows.size:
            ends = self.small_sample.ends(1.0 - (1.0 - level) / n_joint, rows)  # Bonferroni
            low[rows] = np.minimum(ends[0], self.value[rows])
            high[rows] = np.maximum(ends[1], self.value[rows])
        return low, high

    def laws(self, level: float = 0.95, *, simultaneous: bool = False) -> tuple[str, ...]:
        """Which law each row's interval comes from.

        "normal" is the standard error times a quantile of Student's t. "few answers" is used where that would not hold:
        exact tails, or tails bounded for any values. "own" are intervals of the statistic's, or re-calibration's, own.
        """
        if self.intervals is not None:
            return ("own",) * len(self)
        small_sample = set(self._few_rows(level, simultaneous).tolist())
        return tuple(EXACT if i in small_sample else NORMAL for i in range(len(self)))

    def _few_rows(self, level: float, simultaneous: bool) -> NDArray[np.int64]:
        """The rows whose interval, or honest interval after re-calibration, comes from a small-sample law."""
        if self.small_sample is None or (self.intervals is not None and self.method == "raw"):
            return np.zeros(0, np.int64)
        wanted = self.small_sample.rows(1.0 - (1.0 - level) / self._n_joint(simultaneous))
        return np.flatnonzero((self.n_answers > 1) & wanted)

    def _n_joint(self, simultaneous: bool) -> int:
        """How many intervals have to hold at once: those of the rows that have one."""
        return max(int((self.n_answers > 1).sum()), 1) if simultaneous else 1

    def table(
        self, level: float = 0.95, *, simultaneous: bool = False, kind: str | None = None
    ) -> list[dict[str, Any]]:
        """One row for each number, of plain Python values for CSV or JSON; what is not known is None.

        Parameters
        ----------
        level, simultaneous, kind
            As for `interval`.
        """
        low, high = self.interval(level, simultaneous=simultaneous, kind=kind)
        units = self.units
        notes = list(self.notes or ("",) * len(self))
        own = kind in ("average", "credible") and self.recalibration is not None
        for i in self._few_rows(level, simultaneous).tolist():
            if not (own and self.statistics[i] == "mean"):  # such an interval comes from the fitted prior
                notes[i] = "; ".join(note for note in (notes[i], FEW_NOTE) if note)
        # Once for all rows: there may be a million of them.
        with_unit, with_note = any(units), any(notes)

        def known(number: float, wanted: bool) -> float | None:
            return float(number) if wanted and np.isfinite(number) else None

        return [
            {
                "dimension": self.dimensions[i],
                "category": self.categories[i],
                "statistic": self.statistics[i],
                "estimate": known(self.value[i], status != NONE),
                "standard_error": known(self.standard_error[i], status == OK),
                "lower": known(low[i], status == OK),
                "upper": known(high[i], status == OK),
                "answers": int(self.n_answers[i]),
                "status": status,
            }
            | ({"unit": units[i]} if with_unit else {})
            | ({"note": notes[i]} if with_note else {})
            for i, status in enumerate(self.status)
        ]

    def to_arrow(self, level: float = 0.95) -> pa.Table:
        """The table as an Arrow table."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.table(level))

    def recalibrate(self, method: str = "auto", **options: Any) -> Answer:
        """All rows made better together; the methods and options are those of `hdr4me.recalibrate`."""
        from hdr4me.statistics.recalibrated import recalibrated

        return recalibrated(self, method, **options)


def joint_interval(answer: Answer, level: float) -> tuple[Floats, Floats]:
    """Ends that hold for all rows at once."""
    if answer.method == "raw" or answer.intervals is None:
        return answer.interval(level, simultaneous=True)
    return answer.interval(1.0 - (1.0 - level) / max(len(answer), 1), kind="conservative")  # Bonferroni


def significantly_largest(value: Floats, low: Floats, high: Floats) -> tuple[Rows, Rows]:
    """The rows from the largest value to the smallest, and each k for which the first k lie above all the others."""
    order = np.argsort(-value, kind="stable")
    above = np.minimum.accumulate(low[order])[:-1]
    below = np.maximum.accumulate(high[order][::-1])[::-1][1:]
    return order, np.flatnonzero(above > below) + 1


def largest_rows(
    answer: Answer,
    rows: Sequence[Row],
    level: float = 0.95,
    *,
    simultaneous: bool = False,
    where: str = "--all, --csv or --json",
) -> tuple[list[Row], list[str]]:
    """The rows of an answer that are shown, and a note for each dimension that was cut.

    Of a dimension with more than `SHOWN` categories these are the rows that are significantly larger than all the
    others, at least 1 and at most `SHOWN`, with intervals that hold for all its categories at once: the largest of
    thousands of estimates are mostly those with the largest errors.
    """
    shown: list[Row] = []
    notes: list[str] = []
    at = 0
    for (name, statistic), group in groupby(rows, key=lambda row: (row["dimension"], row["statistic"])):
        part = list(group)
        places, at = np.arange(at, at + len(part)), at + len(part)
        if statistic == "mean" and len(part) > _COORDINATES:
            notes.append(f"{name}: {len(part) - SHOWN:,} more coordinates are not shown ({where})")
            part = part[:SHOWN]
        elif statistic in ("frequency", "chosen") and len(part) > SHOWN:
            part, sure = _surest(answer._taken(places), part, level, simultaneous)
            notes.append(_note(name, len(places), sure, level, where, answer.method))
        shown += part
    return shown, notes


def _surest(answer: Answer, rows: list[Row], level: float, simultaneous: bool) -> tuple[list[Row], int]:
    """The rows of one dimension that are shown, with joint intervals, and how many are significantly the largest."""
    if simultaneous:  # the rows have joint intervals already
        low, high = (np.array([row[end] for row in rows], np.float64) for end in ("lower", "upper"))
    else:
        low, high = joint_interval(answer, level)
    order, found = significantly_largest(answer.value, low, high)
    shown = found[found <= SHOWN]
    more = found[(found > SHOWN) & (found <= len(rows) // 2)]
    sure = int(shown[-1]) if shown.size else int(more[0]) if more.size else 0
    exact = set(answer._few_rows(1.0 - (1.0 - level) / len(rows), False).tolist())
    part = []
    for i in order[: min(max(sure, 1), SHOWN)].tolist():
        row = dict(rows[i])
        if row["lower"] is not None and not simultaneous:
            row |= {"lower": float(low[i]), "upper": float(high[i])}
            if i in exact and FEW_NOTE not in row.get("note", ""):
                row["note"] = "; ".join(note for note in (row.get("note", ""), FEW_NOTE) if note)
        part.append(row)
    return part, sure


def _note(name: str, size: int, sure: int, level: float, where: str, method: str) -> str:
    """The note on one dimension that was cut."""
    number, are = (f"{sure:,}", "are" if sure > 1 else "is") if sure else ("none", "is")
    rest = "the largest estimate is shown" if not sure else f"{SHOWN} of them are shown"
    if 0 < sure <= SHOWN:
        rest = f"the other {size - sure:,} {'cannot be put in order' if sure < SHOWN else 'are not shown'}"
    which = "" if method == "raw" else ", before re-calibration and cut to [0, 1]"
    return (
        f"{name}: {number} of {size:,} {are} surely larger than all the others; {rest} ({where}). "
        f"This and the intervals shown: {100 * level:g} %, all {size:,} at once{which}"
    )
