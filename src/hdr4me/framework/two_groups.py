"""How many users have a category, from how many reports name it: the exact law where every user answered.

Of n users k have the category. A report names it with probability p if its user has it and q if not, so that the number
of reports that name it is Binomial(k, p) + Binomial(n − k, q): one unknown whole number k, and tails that rise with k.
The interval holds every k that neither tail refuses. Clopper's and Pearson's interval for the share of reports contains
it (Hoeffding 1956), and is used where k is too large to be searched or only some of the users answered.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hdr4me.framework.small_samples import share_interval

__all__ = ["category_interval"]

Floats = NDArray[np.float64]
_MOST_POINTS = 4096


def category_interval(
    named: Floats, reports: int, p: float, q: float, level: float = 0.95, *, everybody: bool = False
) -> tuple[Floats, Floats]:
    """Lower and upper ends for the share of users with each category; not cut to [0, 1] unless `everybody`.

    Parameters
    ----------
    named
        How many reports name each category.
    reports
        How many reports there are.
    p, q
        The probability that a report names a category of its user, and one that its user has not.
    level
        The probability that an interval holds its share.
    everybody
        Whether all users whose share is asked for have answered.

    Returns
    -------
    tuple
        The lower and the upper ends.

    Examples
    --------
    >>> named = np.array([3.0, 60.0])
    >>> low, high = category_interval(named, 100, 0.9, 0.05)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([-0.051, 0.526], [0.041, 0.761])
    >>> low, high = category_interval(named, 100, 0.9, 0.05, everybody=True)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.59], [0.02, 0.71])
    """
    named, again = np.unique(named, return_inverse=True)  # thousands of categories have few different numbers
    share_low, share_high = share_interval(named, reports, level)
    low, high = (share_low - q) / (p - q), (share_high - q) / (p - q)
    spread = np.sqrt(reports * np.maximum(share_high * (1 - share_low), 1.0 / reports))
    points = int(16 * spread.max()) + 64
    if not everybody or points > _MOST_POINTS:
        return low[again], high[again]
    α = (1 - level) / 2
    first = np.clip(np.floor(low * reports), 0, reports)
    last = np.clip(np.ceil(high * reports), 0, reports)
    # The least k whose upper tail reaches α, and the largest k whose lower tail does.
    least = _least(first, last, lambda k: _tail(k, named, reports, p, q, points) > α)
    most = _least(first, last, lambda k: 1 - _tail(k, named + 1, reports, p, q, points) <= α)
    lower_tail = 1 - _tail(most, named + 1, reports, p, q, points)
    most = np.where(lower_tail <= α, np.maximum(most - 1, 0), most)
    return (least / reports)[again], (np.maximum(most, least) / reports)[again]


def _least(first: Floats, last: Floats, holds: Callable[[Floats], NDArray[np.bool_]]) -> Floats:
    """The least whole number from `first` on for which `holds`, which stays true above it; `last` if none does."""
    low, high = first.copy(), last.copy()
    while (low < high).any():
        middle = np.floor((low + high) / 2)
        true = holds(middle)
        low, high = (
            np.where(true | (low >= high), low, middle + 1),
            np.where(true & (low < high), middle, high),
        )
        low = np.minimum(low, high)
    return low


def _tail(k: Floats, named: Floats, reports: int, p: float, q: float, points: int) -> Floats:
    """P(Binomial(k, p) + Binomial(n − k, q) ≥ named), by the characteristic function on a window about `named`."""
    u = 2 * np.pi * np.arange(points) / points
    turn = np.exp(1j * u)
    with np.errstate(divide="ignore"):
        log = k[:, None] * np.log(1 - p + p * turn) + (reports - k)[:, None] * np.log(1 - q + q * turn)
    centred = np.exp(log - 1j * np.outer(named, u))
    mass = np.fft.fft(centred, axis=1).real / points  # mass[x] = P(S − named = x), x modulo the window
    return np.asarray(np.clip(mass[:, : points // 2].sum(axis=1), 0.0, 1.0))
