"""Laws for small samples, where the normal law does not hold.

**Probabilities.** A dimension receives r ~ Binomial(n, p) reports. If np is small, r is summed over. Given r, the
error is N(0, v/r); or, if the largest error M of one report is given, Bernstein's bound (1946) is used:
P(|error| ≤ ξ) ≥ 1 − 2·exp(−rξ²/(2(v + Mξ/3))), for any values. Without a report no tolerance is kept.

**Intervals** are exact or conservative; `share_interval`, `category_interval`, `noise_reach` and `weighted_interval`
state their methods.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtr, ndtri
from scipy.stats import binom

from hdr4me.errors import InvalidInput
from hdr4me.framework.moments import Floats

SMALL_SAMPLE = 100.0  # below this many reports per dimension the number of reports is summed over
_MOST_POINTS = 4096
# The distance of `noise_reach` from 16 values of a table differs by at most 0.3 % from that of all values.
_VALUES, _MOST_FREQUENCIES = 24, 4096
# A normal error of this many standard deviations is added to a sum, which cannot reduce its tails: between 0.03 and
# 0.075 the distance changes by at most 1.5 %.
_SMOOTH = 0.05
_NEWTON, _OUTER, _HALVINGS = 80, 60, 20
_ROWS = 1024


@dataclass(frozen=True)
class Counts:
    """The number of reports of a dimension: Binomial(users, share)."""

    users: int
    share: float

    @property
    def small_sample(self) -> bool:
        """Whether the mean number is too small for the normal approximation."""
        return self.users * self.share < SMALL_SAMPLE

    @cached_property
    def law(self) -> tuple[Floats, Floats]:
        """The numbers r ≥ 1 that occur and their probabilities; the rest of the probability is that of r = 0."""
        if self.share >= 1:
            return np.array([float(self.users)]), np.ones(1)
        low = float(binom.ppf(1e-12, self.users, self.share))
        high = float(binom.isf(1e-12, self.users, self.share))
        r = np.arange(max(1.0, low), high + 1)
        return r, np.asarray(binom.pmf(r, self.users, self.share))

    @cached_property
    def mean_inverse(self) -> float:
        """E[1/r | r ≥ 1]."""
        r, mass = self.law
        return float(mass @ (1 / r) / mass.sum())


def probability_within_small(
    variances: ArrayLike, counts: Counts, tolerance: float, largest: float | None = None
) -> Floats:
    """P(|error| ≤ ξ) for each variance of one report; Bernstein's bound if the largest error is given."""
    r, mass = counts.law
    v = np.asarray(variances, np.float64)[..., None]
    if not math.isfinite(tolerance):
        return np.broadcast_to(mass.sum(), v.shape[:-1])
    if largest is not None:
        exponent = r * tolerance**2 / (2 * (v + largest * tolerance / 3))
        return np.asarray(np.maximum(1 - 2 * np.exp(-exponent), 0.0) @ mass)
    with np.errstate(over="ignore", divide="ignore"):
        return np.asarray((1 - 2 * ndtr(-tolerance * np.sqrt(r / v))) @ mass)


def tolerance_within(
    variances: Floats, numbers: ArrayLike, counts: Counts, probability: float, largest: float | None = None
) -> float:
    """The smallest ξ that all coordinates keep with this probability; infinite if there is none."""

    def holds(tolerance: float) -> bool:
        with np.errstate(divide="ignore"):
            within = np.log(probability_within_small(variances, counts, tolerance, largest))
        return bool(np.asarray(numbers, np.float64) @ within >= math.log(probability))

    widest = math.sqrt(float(np.max(variances)))
    low, high = 0.0, 4 * widest
    while not holds(high):
        high *= 2
        if high > 1e9 * math.sqrt(widest**2 + 1e-300):
            return math.inf
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def share_interval(hits: ArrayLike, reports: ArrayLike, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """The Clopper–Pearson interval for a probability, from `hits` among `reports`.

    The number of hits of users with different values varies less than a binomial one of the same mean, so that the
    interval is conservative (Hoeffding 1956).
    """
    if not 0 < confidence < 1:
        raise InvalidInput.of("confidence", confidence, "it must lie between 0 and 1")
    α = 1 - confidence
    k, n = np.broadcast_arrays(np.asarray(hits, dtype=np.float64), np.asarray(reports, dtype=np.float64))
    inside = np.maximum(k, 1.0), np.maximum(n - k, 1.0)
    low = np.where(k > 0, betaincinv(inside[0], n - k + 1, α / 2), 0.0)
    high = np.where(k < n, betaincinv(k + 1, inside[1], 1 - α / 2), 1.0)
    return np.asarray(low), np.asarray(high)


def category_interval(
    named: Floats, reports: int, p: float, q: float, confidence: float = 0.95, *, all_answered: bool = False
) -> tuple[Floats, Floats]:
    """Lower and upper ends for the share of users with each category; not cut to [0, 1] unless `everybody`.

    If every user answered and k of n have the category, the number of reports that name it is Binomial(k, p) +
    Binomial(n − k, q). The interval holds every k that neither tail rejects.
    """
    # Thousands of categories have a small number of distinct counts.
    named, again = np.unique(named, return_inverse=True)
    share_low, share_high = share_interval(named, reports, confidence)
    low, high = (share_low - q) / (p - q), (share_high - q) / (p - q)
    spread = np.sqrt(reports * np.maximum(share_high * (1 - share_low), 1.0 / reports))
    points = int(16 * spread.max()) + 64
    if not all_answered or points > _MOST_POINTS:
        return low[again], high[again]
    α = (1 - confidence) / 2
    first = np.clip(np.floor(low * reports), 0, reports)
    last = np.clip(np.ceil(high * reports), 0, reports)
    # The least k whose upper tail reaches α, and the largest k whose lower tail does.
    least = _least_integer(first, last, lambda k: _tail(k, named, reports, p, q, points) > α)
    most = _least_integer(first, last, lambda k: 1 - _tail(k, named + 1, reports, p, q, points) <= α)
    lower_tail = 1 - _tail(most, named + 1, reports, p, q, points)
    most = np.where(lower_tail <= α, np.maximum(most - 1, 0), most)
    return (least / reports)[again], (np.maximum(most, least) / reports)[again]


def _least_integer(first: Floats, last: Floats, holds: Callable[[Floats], NDArray[np.bool_]]) -> Floats:
    """The least integer from `first` on for which `holds`, which stays true above it; `last` if there is none."""
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
    centered = np.exp(log - 1j * np.outer(named, u))
    mass = np.fft.fft(centered, axis=1).real / points  # mass[x] = P(S − named = x), x modulo the window
    return np.asarray(np.clip(mass[:, : points // 2].sum(axis=1), 0.0, 1.0))


def _at_values(probabilities: Floats) -> Floats:
    """The rows of the levels and of the midpoints between two levels."""
    middles = (probabilities[:-1] + probabilities[1:]) / 2
    return np.concatenate([probabilities, middles])


def _moments(rows: Floats, decode: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, variance and third central moment of each row."""
    mean = rows @ decode
    centered = decode - mean[:, None]
    return mean, (rows * centered**2).sum(axis=1), (rows * centered**3).sum(axis=1)


def widest_variance(probabilities: Floats, decode: Floats) -> float:
    """The largest variance of one report, rounding to a level included."""
    return float(_moments(_at_values(probabilities), decode)[1].max())


def skew_size(probabilities: Floats, decode: Floats) -> float:
    """The largest |third central moment| over variance of one report, among populations of one or two values.

    It is a length on the decoder's scale: the mean of r reports of variance v has a skewness of at most this length
    over √(r·v). For two cells it is their distance, which bounds it and also covers the steps of a count.
    """
    if decode.size == 2:
        return float(abs(decode[1] - decode[0]))
    some = np.unique(np.linspace(0, len(probabilities) - 1, _VALUES).astype(int))
    power = (decode - decode.mean()) ** np.arange(1, 4)[:, None]
    raw = probabilities[some] @ power.T  # the moments of a mixture are mixtures of the moments
    share = np.array([0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5])[:, None, None, None]
    first, second, third = np.moveaxis((1 - share) * raw[:, None] + share * raw[None], -1, 0)
    variance = np.maximum(second - first**2, 1e-300)
    return float(np.max(np.abs(third - 3 * first * second + 2 * first**3) / variance))


def noise_reach(
    probabilities: Floats, decode: Floats, reports: int, confidence: float
) -> tuple[float, float]:
    """The largest distances of the mean of the reports below and above its true value, if every user answered.

    The characteristic function of the sum of r reports at one value, (Σ_k P_k·exp(iu(y_k − mean)))^r, is inverted. The
    result is the maximum over the table's levels and their midpoints, where random rounding adds most.
    """
    return _reach(probabilities.tobytes(), decode.tobytes(), reports, confidence)


@lru_cache(maxsize=256)
def _reach(table: bytes, cells: bytes, reports: int, confidence: float) -> tuple[float, float]:
    decode = np.frombuffer(cells)
    rows = _at_values(np.frombuffer(table).reshape(-1, decode.size))
    _, variance, third = _moments(rows, decode)
    chosen = set(np.linspace(0, len(rows) - 1, _VALUES).astype(int).tolist())
    chosen |= {int(np.argmax(variance)), int(np.argmax(third)), int(np.argmin(third))}
    ends = [_quantiles(rows[i], decode, reports, confidence) for i in sorted(chosen)]
    return -min(low for low, _ in ends), max(high for _, high in ends)


def _quantiles(row: Floats, decode: Floats, reports: int, confidence: float) -> tuple[float, float]:
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
    α = (1 - confidence) / 2
    low = at[int(np.searchsorted(below, α))] - half / size
    high = at[min(int(np.searchsorted(below, 1 - α)), size - 1)] + half / size
    return float(low) / reports, float(high) / reports


def gamma_tail(values: Floats, shapes: Floats, start: Floats) -> tuple[Floats, Floats]:
    """P(Σ g_k·z_k > 0) for each row, g_k ~ Gamma(shape_k), and the saddlepoint, which is searched from `start`.

    Each row has values of both signs with positive shapes.
    """
    used = shapes > 0
    low = 1 / np.where(used, values, np.inf).min(axis=1)
    high = 1 / np.where(used, values, -np.inf).max(axis=1)
    span = high - low
    s = np.where((start > low) & (start < high), start, 0.0)
    for _ in range(_NEWTON):
        term = values / (1 - s[:, None] * values)
        part = shapes * term
        slope, curve = part.sum(axis=1), (part * term).sum(axis=1)
        low, high = np.where(slope < 0, s, low), np.where(slope > 0, s, high)
        step = s - slope / curve
        moved = np.where((step > low) & (step < high), step, (low + high) / 2)
        near = np.abs(moved - s) <= 1e-9 * span
        s = np.where(slope == 0, s, moved)
        if (near | (slope == 0)).all():
            break
    left = 1 - s[:, None] * values
    height = (shapes * np.log(left)).sum(axis=1)
    curve = (shapes * (values / left) ** 2).sum(axis=1)
    w = np.sign(s) * np.sqrt(2 * np.maximum(height, 0.0))
    u = s * np.sqrt(curve)
    middle = np.abs(w) < 1e-5  # at the mean itself the formula is 0/0, and its limit is near one half
    safe = np.where(middle, 1.0, w)
    tail = np.where(middle, 0.5, ndtr(-(safe + np.log(np.where(middle, 1.0, u) / safe) / safe)))
    return np.asarray(tail), s


def weighted_interval(
    decode: ArrayLike, counts: ArrayLike, confidence: float = 0.95
) -> tuple[Floats, Floats]:
    """Lower and upper ends for the mean behind each row of cell counts, each with at least one report (Gaffke 2005).

    `decode` is one for all rows or one for each. One more report is added at the largest possible value, and the
    reports have Dirichlet weights; the upper end is the upper quantile of the weighted mean. With two values the
    interval is Clopper's and Pearson's; otherwise every case examined supports it (Learned-Miller and Thomas 2020;
    `benchmarks/small_samples.py`). A weighted mean exceeds m if Σ g_k·(y_k − m) > 0 with g_k ~ Gamma(c_k), by the
    saddlepoint formula of Lugannani and Rice (1980).
    """
    y, n = (np.atleast_2d(np.asarray(x, np.float64)) for x in (decode, counts))
    y, n = np.broadcast_arrays(y, n)
    if y.shape[1] == 2:
        low, high = share_interval(n[:, 1], n.sum(axis=1), confidence)
        ends = np.sort(y[:, 0] + (y[:, 1] - y[:, 0]) * np.stack([low, high]), axis=0)
        return ends[0], ends[1]
    α = (1 - confidence) / 2
    chunks = [slice(i, i + _ROWS) for i in range(0, len(n), _ROWS)]
    low, high = (np.concatenate([_upper(side * y[i], n[i], α) for i in chunks]) for side in (-1.0, 1.0))
    return -low, high


def _upper(y: Floats, n: Floats, α: float) -> Floats:
    """m with P(weighted mean > m) = α in each row, with one added report at the row's largest value."""
    largest: Floats = y.max(axis=1)
    top = y == largest[:, None]
    shapes = n + top / top.sum(axis=1, keepdims=True)
    total = shapes.sum(axis=1)
    mean = (shapes * y).sum(axis=1) / total
    found = largest.copy()
    open_ = np.flatnonzero(((n > 0) & ~top).any(axis=1))
    if not open_.size:
        return found
    mean, total, largest = mean[open_], total[open_], largest[open_]
    # The positive shapes of each row; shorter rows are padded with shapes of 0.
    used = shapes[open_] > 0
    order = np.argsort(~used, axis=1, kind="stable")[:, : int(used.sum(axis=1).max())]
    values, shapes = (np.take_along_axis(x[open_], order, axis=1) for x in (y, shapes))
    sd = np.sqrt(np.maximum((shapes * values**2).sum(axis=1) / total - mean**2, 0.0) / (total + 1))
    target = -float(ndtri(α))
    below, above = mean.copy(), largest
    m, s = np.minimum(mean + target * sd, (below + above) / 2), np.zeros(open_.size)
    for _ in range(_OUTER):
        p, s = gamma_tail(values - m[:, None], shapes, s)
        below, above = np.where(p > α, m, below), np.where(p > α, above, m)
        normal = -ndtri(np.clip(p, 1e-300, 0.4999999))
        guess = mean + (m - mean) * target / normal
        moved = np.where((guess > below) & (guess < above), guess, (below + above) / 2)
        near = np.abs(moved - m) <= 1e-4 * sd
        m = moved
        if near.all():
            break
    found[open_] = m
    return found


def ratio_interval(
    first: ArrayLike, second: ArrayLike, counts: ArrayLike, confidence: float = 0.95
) -> tuple[float, float]:
    """Lower and upper ends in [−1, 1] for a ratio of two means: of E[first] over E[second] > 0.

    `first` and `second` are the contributions of each cell to the numerator and to the denominator.
    """
    a, b, n = (np.asarray(x, np.float64) for x in (first, second, counts))
    α = (1 - confidence) / 2

    def refused(m: float, side: float) -> bool:
        """Whether a mean of side·(first − m·second) of 0 or more (for side 1: or less) is rejected."""
        z: Any = side * (a - m * b)
        largest = z.max()
        if largest <= 0:
            return True
        shapes = n + (z == largest) / np.count_nonzero(z == largest)
        if not ((shapes > 0) & (z < 0)).any():
            return False
        used = shapes > 0
        return bool(gamma_tail(z[None, used], shapes[None, used], np.zeros(1))[0][0] < α)

    ends = []
    center = float(np.clip((n @ a) / (n @ b), -1.0, 1.0)) if n @ b > 0 else 0.0
    for side in (-1.0, 1.0):
        near, far = center, side
        for _ in range(_HALVINGS if refused(far, side) else 0):
            middle = (near + far) / 2
            near, far = (near, middle) if refused(middle, side) else (middle, far)
        ends.append(far)
    return ends[0], ends[1]
