"""Quantiles for intervals, one at a time or simultaneous, and the small-sample laws of statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

from hdr4me.errors import InvalidInput
from hdr4me.framework.small_samples import (
    category_interval,
    noise_reach,
    ratio_interval,
    skew_size,
    weighted_interval,
    widest_variance,
)
from hdr4me.statistics.calibrate import Functional


def quantile(confidence: float, answers: ArrayLike, n_joint: int = 1) -> NDArray[np.float64]:
    """The half-width of an interval in standard errors: Student's t with answers − 1 degrees of freedom.

    For `n_joint` simultaneous intervals each one has the confidence^(1/n_joint) (Šidák 1967). The joint coverage of
    normal estimates is then at least `confidence`, whatever their correlation.
    """
    if not isinstance(confidence, int | float | np.floating) or not 0.0 < confidence < 1.0:
        raise InvalidInput.of("confidence", confidence, "a number between 0 and 1, such as 0.95")
    outside = -np.expm1(np.log(confidence) / max(n_joint, 1))
    freedom = np.maximum(np.asarray(answers, np.float64) - 1.0, 1.0)
    return np.asarray(-stdtrit(freedom, outside / 2))


Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Intervals = Callable[[float, str], tuple[Floats, Floats]]  # (confidence, kind) → both ends of every row
SMALL_SAMPLE, NORMAL = "small sample", "normal"
SMALL_SAMPLE_NOTE = "small sample: conservative interval"
NO_LAW_NOTE = "small sample: the interval is a normal approximation"
APPROXIMATE_NOTE = "approximate: assumes a smooth distribution"
NO_LAW_BELOW = 500  # answers below which a row without a small-sample law has NO_LAW_NOTE
_SELECTED = (
    20  # rows with an uncertain ratio cover in 95 % of the printed cases if 5 % of all cases are printed
)
_NEEDED = 0.95  # the normal law needs this many effective answers times z⁵ (benchmarks/small_samples.py)


def effective_answers(r: ArrayLike, errors: ArrayLike, size: float) -> Floats:
    """The effective number of answers of means of r reports with these standard errors; `size` as by `skew_size`."""
    return np.asarray((np.asarray(r) * np.nan_to_num(errors) / size) ** 2)


def is_small(effective: ArrayLike, confidence: float) -> NDArray[np.bool_]:
    """Whether an effective number of answers is too small for the normal law at this confidence."""
    z = -float(ndtri((1 - confidence) / 2))
    return np.asarray(~(np.asarray(effective) >= _NEEDED * z**5))


@dataclass(frozen=True, eq=False)
class SmallSampleLaw:
    """A small-sample law of several rows: effective numbers of answers, and (confidence, rows) → interval ends."""

    effective: Floats
    ends: Callable[[float, Rows], tuple[Floats, Floats]]

    def rows(self, confidence: float) -> NDArray[np.bool_]:
        """Which rows have too small a sample for the normal law at this confidence."""
        return is_small(self.effective, confidence)

    def subset(self, chosen: Rows) -> SmallSampleLaw:
        """The small-sample law of some of the rows."""
        return SmallSampleLaw(
            self.effective[chosen], lambda confidence, rows: self.ends(confidence, chosen[rows])
        )


def joined(
    parts: Sequence[tuple[int, tuple[SmallSampleLaw, Rows] | None]], scale: Floats, middle: Floats
) -> SmallSampleLaw | None:
    """One law in units for all parts, each given as its number of rows, its law and its rows in that law, or None."""
    numbers: dict[SmallSampleLaw, int] = {}
    law_of, member, effective = [], [], []
    for size, small_sample in parts:
        law, rows = small_sample or (None, np.zeros(size, np.int64))
        law_of.append(np.full(size, -1 if law is None else numbers.setdefault(law, len(numbers))))
        member.append(rows)
        effective.append(np.full(size, np.inf) if law is None else law.effective[rows])
    if not numbers:
        return None
    number_of, row_of = np.concatenate(law_of), np.concatenate(member)

    def ends(confidence: float, rows: Rows) -> tuple[Floats, Floats]:
        low, high = np.full((2, rows.size), np.nan)
        for law, number in numbers.items():
            mine = np.flatnonzero(number_of[rows] == number)
            if mine.size:
                low[mine], high[mine] = law.ends(confidence, row_of[rows[mine]])
        return middle[rows] + scale[rows] * low, middle[rows] + scale[rows] * high

    return SmallSampleLaw(np.concatenate(effective), ends)


def mean_law(
    decoder: Functional, counts: Rows, errors: Floats, n_reports: int, *, noise: bool = False
) -> SmallSampleLaw:
    """The small-sample law of means of one decoder."""
    r = counts.sum(axis=1).astype(np.float64)
    rows, decode = decoder.rows, decoder.decode

    def ends(confidence: float, chosen: Rows) -> tuple[Floats, Floats]:
        low, high = weighted_interval(decode, counts[chosen], confidence)
        mine = np.flatnonzero(r[chosen] == n_reports)
        # If all_answered answered, only the noise is random. Its worst case is used where it is below the variance of
        # evenly spread values with their noise; the choice does not depend on the data.
        if noise and mine.size and widest_variance(rows, decode) <= decoder.row_variances.mean() + 1 / 3:
            below, above = noise_reach(rows, decode, n_reports, confidence)
            mean = counts[chosen[mine]] @ decode / n_reports
            low[mine], high[mine] = mean - above, mean + below
        return low, high

    return SmallSampleLaw(effective_answers(r, errors, skew_size(rows, decode)), ends)


def ratio_law(
    rows: Floats, first: Floats, second: Floats, counts: Floats, error: float, uncertain: bool
) -> SmallSampleLaw:
    """The small-sample law of a ratio of two means, first over second.

    If the second mean is `uncertain`, this law is used for any number of answers, with the error probability divided by
    _SELECTED: estimates are printed only where the second mean is significant, which may happen by chance.
    """
    r = counts.sum()
    mean = (counts @ first) / (counts @ second) if counts @ second > 0 else 0.0
    residual = first - mean * second
    share = abs(float(counts @ second)) / r if r else 1.0

    def ends(confidence: float, chosen: Rows) -> tuple[Floats, Floats]:
        low, high = ratio_interval(
            first, second, counts, 1 - (1 - confidence) / (_SELECTED if uncertain else 1)
        )
        return np.full(chosen.size, low), np.full(chosen.size, high)

    effective = effective_answers(np.array([r]), np.array([error * share]), skew_size(rows, residual))
    return SmallSampleLaw(np.zeros(1) if uncertain else effective, ends)


def frequency_law(decoder: Functional, counts: Rows, errors: Floats, n_reports: int) -> SmallSampleLaw:
    """The small-sample law of frequencies, from the cells of each category's indicator."""
    r, decode = counts.sum(axis=1).astype(np.float64), decoder.decode
    if decode.size > 2:
        return mean_law(decoder, counts, errors, n_reports)
    other, equal = decode.tolist()
    p, q = (1 - other) / (equal - other), -other / (equal - other)

    def ends(confidence: float, chosen: Rows) -> tuple[Floats, Floats]:
        low, high = np.empty((2, chosen.size))
        for answers in np.unique(r[chosen]).tolist():
            mine = np.flatnonzero(r[chosen] == answers)
            named = counts[chosen[mine], 1].astype(np.float64)
            all_answered = answers == n_reports
            low[mine], high[mine] = category_interval(
                named, int(answers), p, q, confidence, all_answered=all_answered
            )
        return low, high

    return SmallSampleLaw(effective_answers(r, errors, equal - other), ends)
