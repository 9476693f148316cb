"""Intervals that hold for few reports, where a mean plus or minus two standard errors does not.

- A **share** of reports (a category's, a bit's) has the Clopper–Pearson interval. Reports of users with different
  values are not identically distributed; their number then varies less than a binomial one of the same mean, so the
  interval is kept at least as often as it says (Hoeffding 1956).
- A **mean** of bounded reports has the interval of all m whose wealth stays small: for every λ with 1 + λ(y − m) ≥ 0
  the product Π(1 + λ(y_i − m)) has expectation at most 1 at the true mean of independent reports (their means may
  differ: the product of 1 + λ(m_i − m) is at most 1 where they average to m). Averaged over λ it is still at most 1, so
  that it exceeds 1/α with probability at most α (Markov; Waudby-Smith and Ramdas 2024). It adapts to the variance.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, logsumexp

from hdr4me.errors import InvalidInput

__all__ = ["mean_interval", "share_interval", "small_sample_interval"]

Floats = NDArray[np.float64]

_BETS = 24
_STEPS = 30


def _check_level(level: float) -> float:
    if not 0 < level < 1:
        raise InvalidInput.of("level", level, "it must lie between 0 and 1")
    return 1 - level


def share_interval(hits: ArrayLike, reports: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """Clopper–Pearson: lower and upper ends for the probability behind `hits` of `reports`.

    >>> low, high = share_interval(0, 20)
    >>> float(low), round(float(high), 4)
    (0.0, 0.1684)
    """
    α = _check_level(level)
    k, n = np.broadcast_arrays(np.asarray(hits, dtype=np.float64), np.asarray(reports, dtype=np.float64))
    inside = np.maximum(k, 1.0), np.maximum(n - k, 1.0)
    low = np.where(k > 0, betaincinv(inside[0], n - k + 1, α / 2), 0.0)
    high = np.where(k < n, betaincinv(k + 1, inside[1], 1 - α / 2), 1.0)
    return np.asarray(low), np.asarray(high)


def mean_interval(values: ArrayLike, counts: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Lower and upper ends for the mean of reports that took `values[k]` `counts[k]` times.

    Parameters
    ----------
    values
        Every value that a report can take, those that did not occur included: the smallest and the largest bound it.
    counts
        How many reports took each.
    level
        The probability that the interval holds the true mean, at least.

    Returns
    -------
    tuple
        The ends; the whole range where there is no report.

    Examples
    --------
    >>> low, high = mean_interval([-2.0, 2.0], [40, 60])
    >>> low < 0.4 < high
    True
    """
    α = _check_level(level)
    y, n = np.asarray(values, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    low, high = float(y.min()), float(y.max())
    if n.sum() == 0 or low == high:
        return low, high
    mean = float(n @ y / n.sum())
    used = n > 0
    y, n = y[used], n[used]

    def kept(m: float, side: int) -> bool:
        """Is the wealth of bets that the mean is above (side 1) or below (−1) m still below 2/α?"""
        bound = 1 / (m - low) if side > 0 else 1 / (high - m)
        # bets spaced evenly in the logarithm: whatever the variance, one is near the best
        bets = side * bound * np.geomspace(1.0, 1e-3, _BETS) * 0.999
        with np.errstate(divide="ignore"):
            wealth = np.log1p(bets[:, None] * (y - m)) @ n
        return bool(logsumexp(wealth) - math.log(_BETS) < math.log(2 / α))

    return _end(low, mean, lambda m: kept(m, 1)), _end(high, mean, lambda m: kept(m, -1))


def _end(far: float, mean: float, kept: object) -> float:
    """The m between `far` and the mean where `kept` begins to hold."""
    assert callable(kept)
    outside, inside = far, mean
    for _ in range(_STEPS):
        middle = (outside + inside) / 2
        if middle in (outside, inside):
            break
        outside, inside = (outside, middle) if kept(middle) else (middle, inside)
    return outside


def small_sample_interval(decode: ArrayLike, counts: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """An interval for the mean behind a table's cell counts that is kept with probability `level` for any few reports.

    With two cells it is the share's interval, exact; otherwise the bounded mean's.

    Parameters
    ----------
    decode
        What each cell counts for.
    counts
        How many reports each cell has.
    level
        The probability that the interval holds the mean, at least.

    Returns
    -------
    tuple
        Lower and upper end, on the decoder's scale.

    Examples
    --------
    >>> small_sample_interval([-2.0, 2.0], [0, 0])
    (-2.0, 2.0)
    """
    y, n = np.asarray(decode, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    if y.shape != n.shape or y.ndim != 1 or (n < 0).any():
        raise InvalidInput.of("counts", counts, f"one number >= 0 for each of {y.size} cells")
    if y.size != 2 or n.sum() == 0:
        return mean_interval(y, n, level)
    low, high = share_interval(n[1], n.sum(), level)
    ends = y[0] + (y[1] - y[0]) * np.array([float(low), float(high)])
    return float(ends.min()), float(ends.max())
