"""Quantiles for intervals: one quantity at a time, or all of them at once."""

from __future__ import annotations

from collections.abc import Callable
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


def quantile(level: float, answers: ArrayLike, n_joint: int = 1) -> NDArray[np.float64]:
    """How many standard errors an interval reaches to either side: Student's t with answers − 1 degrees of freedom.

    For `n_joint` quantities at once each interval has level^(1/n_joint) (Šidák 1967): the joint coverage of
    normal estimates is then at least `level`, however they are correlated.
    """
    if not 0.0 < level < 1.0:
        raise InvalidInput.of("level", level, "it must lie strictly between 0 and 1")
    outside = -np.expm1(np.log(level) / max(n_joint, 1))
    freedom = np.maximum(np.asarray(answers, np.float64) - 1.0, 1.0)
    return np.asarray(-stdtrit(freedom, outside / 2))


Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Intervals = Callable[[float, str], tuple[Floats, Floats]]  # (level, kind) → both ends of every row
EXACT, NORMAL = "few answers", "normal"
FEW_NOTE = "few answers: the interval holds for any values"
_NEEDED = 0.95  # effective answers that the normal law needs, over z⁵


@dataclass(frozen=True, eq=False)
class SmallSampleLaw:
    """Rows that share a law for few answers: their effective answers, and (level, rows) → their ends."""

    effective: Floats
    ends: Callable[[float, Rows], tuple[Floats, Floats]]

    def rows(self, level: float) -> NDArray[np.bool_]:
        """Which rows have too few answers for the normal law at this level."""
        z = -float(ndtri((1 - level) / 2))
        return np.asarray(~(self.effective >= _NEEDED * z**5))

    def taken(self, chosen: Rows) -> SmallSampleLaw:
        """The law of some of the rows."""
        return SmallSampleLaw(self.effective[chosen], lambda level, rows: self.ends(level, chosen[rows]))


def joined(
    parts: list[tuple[int, tuple[SmallSampleLaw, Rows] | None]], scale: Floats, middle: Floats
) -> SmallSampleLaw | None:
    """One law in own units, from the number of rows of each part, its law and its rows there; None if none has one."""
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

    def ends(level: float, rows: Rows) -> tuple[Floats, Floats]:
        low, high = np.full((2, rows.size), np.nan)
        for law, number in numbers.items():
            mine = np.flatnonzero(number_of[rows] == number)
            if mine.size:
                low[mine], high[mine] = law.ends(level, row_of[rows[mine]])
        return middle[rows] + scale[rows] * low, middle[rows] + scale[rows] * high

    return SmallSampleLaw(np.concatenate(effective), ends)


def few_means(
    found: Functional, counts: Rows, errors: Floats, n_reports: int, *, noise: bool = False
) -> SmallSampleLaw:
    """Of means of one decoder."""
    r = counts.sum(axis=1).astype(np.float64)
    rows, decode = found.rows, found.decode

    def ends(level: float, chosen: Rows) -> tuple[Floats, Floats]:
        low, high = weighted_interval(decode, counts[chosen], level)
        mine = np.flatnonzero(r[chosen] == n_reports)
        # Whether the noise of the worst value is less than that of spread values with their spread: not by the data.
        if noise and mine.size and widest_variance(rows, decode) <= found.row_variances.mean() + 1 / 3:
            below, above = noise_reach(rows, decode, n_reports, level)
            mean = counts[chosen[mine]] @ decode / n_reports
            low[mine], high[mine] = mean - above, mean + below
        return low, high

    return SmallSampleLaw(_effective(r, errors, skew_size(rows, decode)), ends)


def few_ratio(rows: Floats, first: Floats, second: Floats, counts: Floats, error: float) -> SmallSampleLaw:
    """Of one ratio of means, first over second."""
    r = counts.sum()
    mean = (counts @ first) / (counts @ second) if counts @ second > 0 else 0.0
    residual = first - mean * second
    share = abs(float(counts @ second)) / r if r else 1.0

    def ends(level: float, chosen: Rows) -> tuple[Floats, Floats]:
        low, high = ratio_interval(first, second, counts, level)
        return np.full(chosen.size, low), np.full(chosen.size, high)

    return SmallSampleLaw(
        _effective(np.array([r]), np.array([error * share]), skew_size(rows, residual)), ends
    )


def few_indicators(found: Functional, counts: Rows, errors: Floats, n_reports: int) -> SmallSampleLaw:
    """Of frequencies, from the cells of each category's indicator."""
    r, decode = counts.sum(axis=1).astype(np.float64), found.decode
    if decode.size > 2:
        return few_means(found, counts, errors, n_reports)
    other, equal = decode.tolist()
    p, q = (1 - other) / (equal - other), -other / (equal - other)

    def ends(level: float, chosen: Rows) -> tuple[Floats, Floats]:
        low, high = np.empty((2, chosen.size))
        for answers in np.unique(r[chosen]).tolist():
            mine = np.flatnonzero(r[chosen] == answers)
            named = counts[chosen[mine], 1].astype(np.float64)
            everybody = answers == n_reports
            low[mine], high[mine] = category_interval(named, int(answers), p, q, level, everybody=everybody)
        return low, high

    return SmallSampleLaw(_effective(r, errors, equal - other), ends)


def _effective(r: Floats, errors: Floats, size: float) -> Floats:
    return np.asarray((r * np.nan_to_num(errors) / size) ** 2)
