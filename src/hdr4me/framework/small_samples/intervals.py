"""Intervals that hold for few reports, where a mean plus or minus two standard errors does not.

- A **share** of reports (a category's, a bit's) has the Clopper–Pearson interval. Reports of users with different
  values are not identically distributed; their number then varies less than a binomial one of the same mean, so the
  interval is kept at least as often as it says (Hoeffding 1956).
- A **category** where every user answered: of n users k have it. A report names it with probability p if its user has
  it and q if not, so that the number of reports that name it is Binomial(k, p) + Binomial(n − k, q), whose tails rise
  with k. The interval holds every k that neither tail refuses. The share's interval contains it (Hoeffding 1956).
- The **noise** of a table where every user answered. A report at one value has the characteristic function
  φ(u) = Σ_k P_k·exp(iu(y_k − mean)); the sum of r reports at the same value has φ^r, which is inverted. The interval
  takes the widest tail over the values: the levels of the table, and the middles between two levels, where the random
  rounding adds most.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from hdr4me.errors import InvalidInput

Floats = NDArray[np.float64]
_MOST_POINTS = 4096
_VALUES, _MOST_FREQUENCIES = 24, 4096
_SMOOTH = 0.05
"""A normal error of this many standard deviations is added to the sum: it makes the tails no lighter."""


def share_interval(hits: ArrayLike, reports: ArrayLike, level: float = 0.95) -> tuple[Floats, Floats]:
    """Clopper–Pearson: lower and upper ends for the probability behind `hits` of `reports`.

    >>> low, high = share_interval(0, 20)
    >>> float(low), round(float(high), 4)
    (0.0, 0.1684)
    """
    if not 0 < level < 1:
        raise InvalidInput.of("level", level, "it must lie between 0 and 1")
    α = 1 - level
    k, n = np.broadcast_arrays(np.asarray(hits, dtype=np.float64), np.asarray(reports, dtype=np.float64))
    inside = np.maximum(k, 1.0), np.maximum(n - k, 1.0)
    low = np.where(k > 0, betaincinv(inside[0], n - k + 1, α / 2), 0.0)
    high = np.where(k < n, betaincinv(k + 1, inside[1], 1 - α / 2), 1.0)
    return np.asarray(low), np.asarray(high)


def category_interval(
    named: Floats, reports: int, p: float, q: float, level: float = 0.95, *, everybody: bool = False
) -> tuple[Floats, Floats]:
    """Lower and upper ends for the share of users with each category; not cut to [0, 1] unless `everybody`.

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


def _at_values(probabilities: Floats) -> Floats:
    """The rows of the levels and of the middles between two levels."""
    middles = (probabilities[:-1] + probabilities[1:]) / 2
    return np.concatenate([probabilities, middles])


def _moments(rows: Floats, decode: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, variance and third central moment of each row."""
    mean = rows @ decode
    centred = decode - mean[:, None]
    return mean, (rows * centred**2).sum(axis=1), (rows * centred**3).sum(axis=1)


def widest_variance(probabilities: Floats, decode: Floats) -> float:
    """The largest variance of one report, rounding to a level included."""
    return float(_moments(_at_values(probabilities), decode)[1].max())


def skew_size(probabilities: Floats, decode: Floats) -> float:
    """The largest |third central moment| over variance of one report, among populations of one or two values.

    It is a length on the decoder's scale: the mean of r reports of variance v has a skewness of at most this length
    over √(r·v). For two cells it is their distance, which bounds it and stands for the steps of a count as well.

    >>> skew_size(np.array([[0.75, 0.25], [0.25, 0.75]]), np.array([-2.0, 2.0]))
    4.0
    """
    if decode.size == 2:
        return float(abs(decode[1] - decode[0]))
    few = np.unique(np.linspace(0, len(probabilities) - 1, _VALUES).astype(int))
    power = (decode - decode.mean()) ** np.arange(1, 4)[:, None]
    raw = probabilities[few] @ power.T  # the moments of a mixture are mixtures of the moments
    share = np.array([0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5])[:, None, None, None]
    first, second, third = np.moveaxis((1 - share) * raw[:, None] + share * raw[None], -1, 0)
    variance = np.maximum(second - first**2, 1e-300)
    return float(np.max(np.abs(third - 3 * first * second + 2 * first**3) / variance))


def noise_reach(probabilities: Floats, decode: Floats, reports: int, level: float) -> tuple[float, float]:
    """How far below and above its true value the mean of the reports may lie.

    >>> below, above = noise_reach(np.array([[0.75, 0.25], [0.25, 0.75]]), np.array([-2.0, 2.0]), 400, 0.95)
    >>> round(below, 2), round(above, 2)
    (0.2, 0.2)
    """
    return _reach(probabilities.tobytes(), decode.tobytes(), reports, level)


@lru_cache(maxsize=256)
def _reach(table: bytes, cells: bytes, reports: int, level: float) -> tuple[float, float]:
    decode = np.frombuffer(cells)
    rows = _at_values(np.frombuffer(table).reshape(-1, decode.size))
    _, variance, third = _moments(rows, decode)
    chosen = set(np.linspace(0, len(rows) - 1, _VALUES).astype(int).tolist())
    chosen |= {int(np.argmax(variance)), int(np.argmax(third)), int(np.argmin(third))}
    ends = [_quantiles(rows[i], decode, reports, level) for i in sorted(chosen)]
    return -min(low for low, _ in ends), max(high for _, high in ends)


def _quantiles(row: Floats, decode: Floats, reports: int, level: float) -> tuple[float, float]:
    """The outer quantiles of the mean's error at one value."""
    used = row > 0
    mass, error = row[used], decode[used] - float(row @ decode)
    sd = float(np.sqrt(reports * (mass @ error**2)))
    if sd == 0.0:
        return 0.0, 0.0
    half = 10 * sd + 10 * float(error.max() - error.min())
    frequencies = int(min(_MOST_FREQUENCIES, np.ceil(5 / (_SMOOTH * sd) * half / np.pi)))
    u = np.arange(frequencies + 1) * np.pi / half
    with np.errstate(divide="ignore"):
        log = np.log(np.exp(1j * np.outer(u, error)) @ mass)
    density = np.fft.irfft(np.exp(reports * log - (_SMOOTH * sd * u) ** 2 / 2).conj())
    size = density.size
    at = (np.arange(size) - size // 2) * (2 * half / size)
    below = np.cumsum(np.maximum(np.roll(density, size // 2), 0.0))
    below /= below[-1]
    α = (1 - level) / 2
    low = at[int(np.searchsorted(below, α))] - half / size
    high = at[min(int(np.searchsorted(below, 1 - α)), size - 1)] + half / size
    return float(low) / reports, float(high) / reports
