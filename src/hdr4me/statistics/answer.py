"""Answers: estimates with confidence intervals, before and after re-calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput, suggestion
from hdr4me.statistics.intervals import (
    APPROXIMATE_NOTE,
    NO_LAW_BELOW,
    NO_LAW_NOTE,
    NORMAL,
    SMALL_SAMPLE,
    SMALL_SAMPLE_NOTE,
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
# Of a dimension with more than SHOWN categories the significantly largest ones are shown, at most SHOWN; of a vector
# with more than _COORDINATES coordinates the first SHOWN.
SHOWN, _COORDINATES = 20, 40
OK, ONE, NONE, NOT_SIGNIFICANT = "ok", "one report", "no reports", "not significant: more reports are needed"
UNKNOWN = "no estimate"  # the row's note gives the reason
_IN_UNITS = ("mean", "mean_by", "quantile", "sd")
_REMARKS = 5  # notes below a figure
_BY_ROW = (
    "statistics", "dimensions", "categories", "notes",
    "value", "standard_error", "n_answers", "scaled_value", "scaled_error", "not_significant",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """Estimates with confidence intervals, one row each: a mean, a share, the frequency of one category, …

    Nothing is clipped: a frequency may be negative, and frequencies need not sum to 1, until `recalibrate` is called.
    A row without reports has NaN as its value, and a row with a single report has NaN as its standard error. `status`
    names these rows, and `table()` leaves their numbers empty.

    Parameters
    ----------
    survey, n_reports
        The survey, and the number of reports that were counted.
    statistics, dimensions, categories
        For each row the name of the statistic, of the dimension and of the category (None for a number).
    value, standard_error, n_answers
        The first two in units of the dimension; then the number of reports behind each row. After re-calibration
        the standard error is that of the method, or NaN.
    scaled_value, scaled_error
        The same on [−1, 1] for numbers, and as they are for shares.
    not_significant
        Rows that have no significant result, such as the mean of an optional number whose share is not significantly
        above 0.
    method, advice, recalibration
        "raw", or the method of re-calibration; its advice; and the re-calibration of the means.
    intervals
        A function that computes intervals, if they do not come from the standard error.
    notes
        A remark on each row; empty for most rows.
    small_sample
        The small-sample laws of rows whose sample may be too small for the normal law; see `laws`.
    stale
        Why memoized responses of this round may be stale. The answer has no intervals then: the estimates are about
        values that may have changed by any amount.

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
    stale: str = ""

    def __len__(self) -> int:
        return len(self.dimensions)

    def __repr__(self) -> str:
        known = f"{self.status.count(OK)} of {len(self)} rows estimated from {self.n_reports:,} reports"
        noted = f"; {sum(map(bool, self.notes)):,} with notes" if any(self.notes) else ""
        return f"<Answer of survey {self.survey.fingerprint[:12]}: {known}, {self.method}{noted}>"

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

    def _ipython_key_completions_(self) -> list[str]:
        return list(dict.fromkeys(self.dimensions))

    def __getitem__(self, dimension: str) -> Answer:
        """The rows of one dimension."""
        return self._of_dimension(dimension, "a dimension")

    def _of_dimension(self, name: str, what: str) -> Answer:
        if name not in self.dimensions:
            hint = suggestion(str(name), dict.fromkeys(self.dimensions))
            raise InvalidInput(f"{name!r} is not {what} of this answer{hint}")
        return self._select([i for i, own in enumerate(self.dimensions) if own == name])

    def of(self, statistic: str) -> Answer:
        """The rows of one statistic, such as "mean" or "frequency"; empty if the answer has none."""
        from hdr4me.statistics.statistic import STATISTICS

        if statistic not in self.statistics:
            STATISTICS[statistic]  # an error for an unknown name
        return self._select([i for i, own in enumerate(self.statistics) if own == statistic])

    @property
    def means(self) -> Answer:
        """The means of the numbers."""
        return self.of("mean")

    def frequencies(self, name: str) -> Answer:
        """The frequencies of a dimension's categories, one row for each."""
        return self.of("frequency")._of_dimension(name, "a categorical dimension")

    def top(self, most: int = 20, confidence: float = 0.95) -> Answer:
        """The categories of one dimension that are significantly larger than all others, the largest first.

        The intervals of these categories lie above those of all others, with simultaneous coverage `confidence`. The
        result is the largest such set with at most `most` categories; it may be empty.
        """
        if type(most) is not int or most < 1:
            raise InvalidInput.of("most", most, "a positive integer")
        if len(set(zip(self.dimensions, self.statistics, strict=True))) != 1:
            raise InvalidInput(
                "top() needs the rows of one statistic of one dimension: call answer.frequencies(name).top()"
            )
        order, sizes = significantly_largest(self.value, *joint_interval(self, confidence))
        return self._select(order[: max(sizes[sizes <= most].tolist(), default=0)])

    def _select(self, rows: Sequence[int] | NDArray[np.int64]) -> Answer:
        """Some of the rows."""
        chosen, whole = np.asarray(rows, np.int64), self.intervals

        def part(confidence: float, kind: str) -> tuple[Floats, Floats]:
            assert whole is not None
            low, high = whole(confidence, kind)
            return low[chosen], high[chosen]

        own: dict[str, Any] = {name: getattr(self, name) for name in _BY_ROW if len(getattr(self, name))}
        for name, values in own.items():
            array = isinstance(values, np.ndarray)
            own[name] = values[chosen] if array else tuple(values[i] for i in chosen.tolist())
        small_sample = None if self.small_sample is None else self.small_sample.subset(chosen)
        return replace(self, **own, intervals=None if whole is None else part, small_sample=small_sample)

    @property
    def status(self) -> tuple[str, ...]:
        """For each row "ok", "one report", "no reports", "no estimate", "not significant: …", or `stale`."""
        cases = [self.n_answers == 0, self.n_answers < 2, self.not_significant, np.isnan(self.value)]
        found = np.select(cases, [NONE, ONE, NOT_SIGNIFICANT, UNKNOWN], self.stale or OK)
        return tuple(found.tolist())

    @property
    def units(self) -> tuple[str, ...]:
        """The unit of each row, if the schema declares it; empty for shares and frequencies."""
        known = {d.name: d.unit_label for d in self.survey.schema.dimensions}
        squared = {name: f"{unit}²" if unit else "" for name, unit in known.items()}
        return tuple(
            squared[name] if statistic == "variance" else known[name] if statistic in _IN_UNITS else ""
            for name, statistic in zip(self.dimensions, self.statistics, strict=True)
        )

    def interval(
        self, confidence: float = 0.95, *, simultaneous: bool = False, kind: str | None = None
    ) -> tuple[Floats, Floats]:
        """Lower and upper ends in the dimensions' own units.

        Parameters
        ----------
        confidence
            The coverage: the probability that the interval contains the truth.
        simultaneous
            Whether the intervals of all rows contain the truth together with this probability.
        kind
            For distributions, quantiles and variances "conservative" (the default) or "approximate".
            After re-calibration "conservative" (the default), "average" or "credible".

        The ends are NaN if responses may be stale.
        """
        if self.stale:
            return np.full(len(self), np.nan), np.full(len(self), np.nan)
        if self.intervals is not None:
            if simultaneous and self.method != "raw":
                raise InvalidInput(
                    "simultaneous intervals are not available after re-calibration: use the answer before it"
                )
            joint = 1.0 - (1.0 - confidence) / max(len(self), 1) if simultaneous else confidence  # Bonferroni
            return self.intervals(joint, kind or "conservative")
        if kind not in (None, "raw"):
            raise InvalidInput.of("kind", kind, "None: this answer is not re-calibrated")
        n_joint = self._n_joint(simultaneous)
        reach = quantile(confidence, self.n_answers, n_joint) * self.standard_error
        low, high = self.value - reach, self.value + reach
        rows = self._small_sample_rows(confidence, simultaneous)
        if self.small_sample is not None and rows.size:
            ends = self.small_sample.ends(1.0 - (1.0 - confidence) / n_joint, rows)  # Bonferroni
            shown = ~self.not_significant[rows]  # an estimate that is not shown may lie far outside the range
            low[rows] = np.where(shown, np.minimum(ends[0], self.value[rows]), ends[0])
            high[rows] = np.where(shown, np.maximum(ends[1], self.value[rows]), ends[1])
        return low, high

    def laws(self, confidence: float = 0.95, *, simultaneous: bool = False) -> tuple[str, ...]:
        """The law behind each row's interval.

        "normal" is the standard error times a quantile of Student's t. "small sample" is an exact or a conservative
        law, used where the normal law does not hold. "own" is an interval that the statistic or the re-calibration
        computes itself.
        """
        if self.intervals is not None:
            return ("own",) * len(self)
        small_sample = set(self._small_sample_rows(confidence, simultaneous).tolist())
        return tuple(SMALL_SAMPLE if i in small_sample else NORMAL for i in range(len(self)))

    def _small_sample_rows(self, confidence: float, simultaneous: bool) -> NDArray[np.int64]:
        """The rows whose interval (after re-calibration: conservative interval) comes from a small-sample law."""
        if self.stale or self.small_sample is None or (self.intervals is not None and self.method == "raw"):
            return np.zeros(0, np.int64)
        small = self.small_sample.rows(1.0 - (1.0 - confidence) / self._n_joint(simultaneous))
        return np.flatnonzero((self.n_answers > 1) & small)

    def _without_law(self) -> NDArray[np.int64]:
        """The rows with a small sample whose statistic has neither a small-sample law nor intervals of its own."""
        if self.stale or (self.intervals is not None and self.method == "raw"):
            return np.zeros(0, np.int64)
        some = True if self.small_sample is None else np.isposinf(self.small_sample.effective)
        return np.flatnonzero((self.n_answers > 1) & (self.n_answers < NO_LAW_BELOW) & some)

    def _n_joint(self, simultaneous: bool) -> int:
        """The number of intervals with joint coverage: those of rows that have one."""
        return max(int((self.n_answers > 1).sum()), 1) if simultaneous else 1

    def table(
        self, confidence: float = 0.95, *, simultaneous: bool = False, kind: str | None = None
    ) -> list[dict[str, Any]]:
        """One dictionary of plain Python values for each row, for CSV or JSON; unknown numbers are None.

        Parameters
        ----------
        confidence, simultaneous, kind
            As for `interval`.
        """
        low, high = self.interval(confidence, simultaneous=simultaneous, kind=kind)
        units = self.units
        notes = list(self.notes or ("",) * len(self))
        own = kind in ("average", "credible") and self.recalibration is not None
        small_sample = set(self._small_sample_rows(confidence, simultaneous).tolist())
        for i in small_sample:
            if not (own and self.statistics[i] == "mean"):  # credible intervals come from the fitted prior
                notes[i] = joined_notes(notes[i], SMALL_SAMPLE_NOTE)
        if kind == "approximate":
            notes = [note or APPROXIMATE_NOTE for note in notes]
        for i in self._without_law().tolist():
            notes[i] = joined_notes(notes[i], NO_LAW_NOTE)
        # Computed once: there may be a million rows.
        with_unit, with_note = any(units), any(notes)

        def known(number: float, wanted: bool) -> float | None:
            return float(number) if wanted and np.isfinite(number) else None

        return [
            {
                "dimension": self.dimensions[i],
                "category": self.categories[i],
                "statistic": self.statistics[i],
                "estimate": known(self.value[i], status not in (NONE, NOT_SIGNIFICANT)),
                "standard_error": known(self.standard_error[i], status == OK),
                "lower": known(low[i], status == OK or (status == NOT_SIGNIFICANT and i in small_sample)),
                "upper": known(high[i], status == OK or (status == NOT_SIGNIFICANT and i in small_sample)),
                "answers": int(self.n_answers[i]),
                "status": status,
            }
            | ({"unit": units[i]} if with_unit else {})
            | ({"note": notes[i]} if with_note else {})
            for i, status in enumerate(self.status)
        ]

    def to_arrow(self, confidence: float = 0.95) -> pa.Table:
        """The table as an Arrow table."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.table(confidence))

    def to_pandas(self, confidence: float = 0.95) -> Any:
        """The table as a pandas data frame."""
        return self.to_arrow(confidence).to_pandas()

    def to_polars(self, confidence: float = 0.95) -> Any:
        """The table as a polars data frame."""
        from hdr4me.pages.answer import as_polars

        return as_polars(self.to_arrow(confidence))

    def plot(self, confidence: float = 0.95) -> Any:
        """A matplotlib figure of the estimates with their intervals; one panel per unit and statistic."""
        from hdr4me.pages.answer import plot

        rows, notes = largest_rows(self, self.table(confidence), confidence, where="answer.table()")
        remarks = list(dict.fromkeys(f"{row['dimension']}: {row['note']}" for row in rows if row.get("note")))
        more = [f"{len(remarks) - _REMARKS:,} more notes: answer.table()"] if len(remarks) > _REMARKS else []
        return plot(rows, self.survey.name, [*notes, *remarks[:_REMARKS], *more])

    def recalibrate(self, method: str = "auto", **options: Any) -> Answer:
        """All rows re-calibrated together; see `hdr4me.recalibrate` for methods and options."""
        from hdr4me.statistics.recalibrated import recalibrated

        return recalibrated(self, method, **options)


def joined_notes(*notes: str) -> str:
    """The different notes on a row as one text."""
    return "; ".join(dict.fromkeys(filter(None, notes)))


def joint_interval(answer: Answer, confidence: float) -> tuple[Floats, Floats]:
    """Simultaneous intervals of all rows."""
    if answer.method == "raw" or answer.intervals is None:
        return answer.interval(confidence, simultaneous=True)
    return answer.interval(1.0 - (1.0 - confidence) / max(len(answer), 1), kind="conservative")  # Bonferroni


def significantly_largest(value: Floats, low: Floats, high: Floats) -> tuple[Rows, Rows]:
    """The rows in decreasing order, and each k for which the intervals of the first k lie above all others."""
    order = np.argsort(-value, kind="stable")
    above = np.minimum.accumulate(low[order])[:-1]
    below = np.maximum.accumulate(high[order][::-1])[::-1][1:]
    return order, np.flatnonzero(above > below) + 1


def largest_rows(
    answer: Answer,
    rows: Sequence[Row],
    confidence: float = 0.95,
    *,
    simultaneous: bool = False,
    where: str = "--verbose or --json",
) -> tuple[list[Row], list[str]]:
    """The rows of an answer that are shown, and a note for each dimension of which some rows are not shown.

    Of a dimension with more than `SHOWN` categories the significantly largest rows are shown, at least 1 and at most
    `SHOWN`, with simultaneous intervals, because the largest of thousands of estimates have large errors.
    """
    shown: list[Row] = []
    notes: list[str] = []
    at = 0
    for (name, statistic), group in groupby(rows, key=lambda row: (row["dimension"], row["statistic"])):
        part = list(group)
        positions, at = np.arange(at, at + len(part)), at + len(part)
        if statistic == "mean" and len(part) > _COORDINATES:
            notes.append(f"{name}: {len(part) - SHOWN:,} more coordinates are not shown (use {where})")
            part = part[:SHOWN]
        elif statistic in ("frequency", "chosen") and len(part) > SHOWN:
            part, number = _largest(answer._select(positions), part, confidence, simultaneous)
            notes.append(_note(name, len(positions), number, confidence, where, answer.method))
        shown += part
    return shown, notes


def _largest(answer: Answer, rows: list[Row], confidence: float, simultaneous: bool) -> tuple[list[Row], int]:
    """The shown rows of one dimension with simultaneous intervals, and the number of significantly largest ones."""
    if simultaneous:  # the rows already have simultaneous intervals
        low, high = (np.array([row[end] for row in rows], np.float64) for end in ("lower", "upper"))
    else:
        low, high = joint_interval(answer, confidence)
    order, found = significantly_largest(answer.value, low, high)
    largest = found[found <= SHOWN]
    more = found[(found > SHOWN) & (found <= len(rows) // 2)]
    number = int(largest[-1]) if largest.size else int(more[0]) if more.size else 0
    exact = set(answer._small_sample_rows(1.0 - (1.0 - confidence) / len(rows), False).tolist())
    part = []
    for i in order[: min(max(number, 1), SHOWN)].tolist():
        row = dict(rows[i])
        if row["lower"] is not None and not simultaneous:
            row |= {"lower": float(low[i]), "upper": float(high[i])}
            if i in exact and SMALL_SAMPLE_NOTE not in row.get("note", ""):
                row["note"] = joined_notes(row.get("note", ""), SMALL_SAMPLE_NOTE)
        part.append(row)
    return part, number


def _note(name: str, size: int, number: int, confidence: float, where: str, method: str) -> str:
    """The note on a dimension of which some rows are not shown."""
    if not number:
        found = (
            f"no category differs significantly from all others; the largest of {size:,} estimates is shown"
        )
    elif number < SHOWN:
        top = f"top {number} differ" if number > 1 else "largest category differs"
        found = f"the {top} significantly; the order of the other {size - number:,} is not significant"
    else:
        found = f"the top {number:,} of {size:,} differ significantly from the others; {SHOWN} are shown"
    which = "" if method == "raw" else ", before re-calibration and clipped to [0, 1]"
    return f"{name}: {found} (all rows: {where}). Intervals: {100 * confidence:g} %, simultaneous{which}"
