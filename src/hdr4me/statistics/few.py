"""Intervals of rows with few answers: exact tails, or tails bounded for any values, where the normal law fails.

The error of a row is a mean of r bounded numbers. Its skewness is at most b/√(r·v), v being the variance of one number
and b a length that follows from the channel alone (`skew_size`). With SE the standard error, N = (r·SE/b)² is the
number of effective answers: for a category it is the variance of the number of reports that name it. The normal law at
z standard errors is used from N = 0.95·z⁵ on: 27 for 95 %, 179 for 12 rows at once, 475 for a hundred. There the tails
of a count are at most 1.25 times what they are called, where they are worst.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from hdr4me.channels import Channel, Entries, HeavySet
from hdr4me.channels.proof import BITS
from hdr4me.framework.noise_tails import noise_reach, skew_size, widest_variance
from hdr4me.framework.two_groups import category_interval
from hdr4me.framework.weighted_means import ratio_interval, weighted_interval
from hdr4me.statistics.moments import Moments
from hdr4me.statistics.supports import support_counts

__all__ = ["EXACT", "FEW_NOTE", "NORMAL", "Few", "FewLaw", "few_categories", "few_means", "few_ratio"]

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
EXACT, NORMAL = "few answers", "normal"
FEW_NOTE = "few answers: the interval holds for any values"
_NEEDED = 0.95
"""Effective answers that the normal law needs, over z⁵."""


@dataclass(frozen=True, eq=False)
class FewLaw:
    """Rows that share a law for few answers: their effective answers, and (level, rows) → their ends."""

    effective: Floats
    ends: Callable[[float, Rows], tuple[Floats, Floats]]


@dataclass(frozen=True, eq=False)
class Few:
    """The laws of all rows of an answer: law number (−1 for none), row in that law, and the way to own units."""

    laws: tuple[FewLaw, ...]
    law_of: Rows
    member: Rows
    scale: Floats
    middle: Floats
    effective: Floats = field(repr=False)

    @classmethod
    def of(
        cls, parts: list[tuple[int, tuple[FewLaw, Rows] | None]], scale: Floats, middle: Floats
    ) -> Few | None:
        """From the number of rows of each part and its law; None if no part has one."""
        laws: dict[int, tuple[int, FewLaw]] = {}
        law_of, member, effective = [], [], []
        for size, few in parts:
            if few is None:
                law_of += [-1] * size
                member += [0] * size
                effective += [np.inf] * size
            else:
                law, rows = few
                number = laws.setdefault(id(law), (len(laws), law))[0]
                law_of += [number] * size
                member += rows.tolist()
                effective += law.effective[rows].tolist()
        if not laws:
            return None
        kept = tuple(law for _, law in laws.values())
        return cls(kept, np.array(law_of), np.array(member), scale, middle, np.array(effective))

    def rows(self, level: float) -> NDArray[np.bool_]:
        """Which rows the normal law does not serve at this level."""
        z = -float(ndtri((1 - level) / 2))
        return np.asarray(~(self.effective >= _NEEDED * z**5))

    def ends(self, level: float, rows: Rows) -> tuple[Floats, Floats]:
        """The ends of these rows in own units."""
        low, high = np.full((2, rows.size), np.nan)
        for number, law in enumerate(self.laws):
            mine = np.flatnonzero(self.law_of[rows] == number)
            if mine.size:
                low[mine], high[mine] = law.ends(level, self.member[rows[mine]])
        return self.middle[rows] + self.scale[rows] * low, self.middle[rows] + self.scale[rows] * high

    def taken(self, chosen: Rows) -> Few:
        """The laws of some of the rows."""
        return Few(
            self.laws,
            self.law_of[chosen],
            self.member[chosen],
            self.scale[chosen],
            self.middle[chosen],
            self.effective[chosen],
        )


def few_means(
    moments: Moments, decode: Floats, counts: Floats, errors: Floats, n_reports: int, *, noise: bool = False
) -> FewLaw:
    """Of means of one decoder.

    `noise` says that the rows' means are the values themselves, so that the noise alone makes the error where all
    answered.
    """
    r = counts.sum(axis=1)
    rows = moments.probabilities

    def ends(level: float, chosen: Rows) -> tuple[Floats, Floats]:
        low, high = weighted_interval(decode, counts[chosen], level)
        whole = chosen[r[chosen] == n_reports]
        # Whether the noise of the worst value is less than that of spread values with their spread: not by the data.
        if noise and whole.size and widest_variance(rows, decode) <= moments.row_variances.mean() + 1 / 3:
            below, above = noise_reach(rows, decode, n_reports, level)
            mine = np.flatnonzero(r[chosen] == n_reports)
            mean = counts[whole] @ decode / n_reports
            low[mine], high[mine] = mean - above, mean + below
        return low, high

    return FewLaw(_effective(r, errors, skew_size(rows, decode)), ends)


def few_ratio(rows: Floats, first: Floats, second: Floats, counts: Floats, error: float) -> FewLaw:
    """Of one ratio of means, first over second."""
    r = counts.sum()
    mean = (counts @ first) / (counts @ second) if counts @ second > 0 else 0.0
    residual = first - mean * second
    share = abs(float(counts @ second)) / r if r else 1.0

    def ends(level: float, chosen: Rows) -> tuple[Floats, Floats]:
        low, high = ratio_interval(first, second, counts, level)
        return np.full(chosen.size, low), np.full(chosen.size, high)

    return FewLaw(_effective(np.array([r]), np.array([error * share]), skew_size(rows, residual)), ends)


def few_categories(
    channel: Channel, counts: NDArray[np.int64], answers: int, errors: Floats, n_reports: int
) -> FewLaw:
    """Of the frequencies of one dimension's categories."""
    made: Any = channel
    r = np.full(len(errors), float(answers))
    if isinstance(channel, Entries):
        cells = counts.reshape(channel.size, channel.n_cells)
        if channel.n_cells > 2:
            decode = np.array(channel.decode)
            size = skew_size(np.ldexp(np.array(channel.weights, np.float64), -BITS), decode)
            return FewLaw(
                _effective(r, errors, size), lambda level, k: weighted_interval(decode, cells[k], level)
            )
        other, equal = channel.decode
        named = cells[:, 1]
    else:
        equal, other = made.decode
        named = support_counts(channel, counts) if isinstance(channel, HeavySet) else counts
    p, q = (1 - other) / (equal - other), -other / (equal - other)

    def ends(level: float, chosen: Rows) -> tuple[Floats, Floats]:
        asked = np.asarray(named, np.float64)[chosen]
        return category_interval(asked, answers, p, q, level, everybody=answers == n_reports)

    return FewLaw(_effective(r, errors, equal - other), ends)


def _effective(r: Floats, errors: Floats, size: float) -> Floats:
    return np.asarray((r * np.nan_to_num(errors) / size) ** 2)
