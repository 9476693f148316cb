"""An upper bound of E[(V₁ + … + V_n)₊] for independent V, by one Fourier transform of a tilted law.

Each value of V is split between the two neighboring multiples of a step h such that its mean is kept. This is a mean-
preserving spread, so the expectation of every convex function of the sum, including (·)₊, can only increase. The sum is
then a sum of integers. P is replaced by P·e^{λv}/M(λ) with λ such that the sum has mean zero, transformed, and tilted
back, so that the result keeps its relative accuracy however small it is. Sums beyond the window of the transform wrap
around, which only adds mass. Sums beyond the upper end of the window are bounded by Chernoff's inequality.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.optimize import brentq

from hdr4me.channels.blanket import Blanket

Floats = NDArray[np.float64]

_ATOMS = 4_000_000  # number of array elements that are processed at a time
_GRID = 1 << 16  # maximum number of multiples of the step that V takes
FINE, COARSE = 32, 8  # steps per standard deviation of V: for a result, and for the search
_LEAST = 1e-12  # the smallest tilt, in units of the largest value


class Law(NamedTuple):
    """Probabilities of the consecutive multiples first·h, (first + 1)·h, … of a step h."""

    probabilities: Floats
    first: int
    step: float


def spread(
    blankets: Sequence[tuple[Blanket, float]],
    pairs: Sequence[NDArray[np.int64]],
    factor: float,
    fineness: int = FINE,
) -> tuple[Law, list[NDArray[np.int64]]]:
    """The law that dominates V = ρ_x − factor·ρ_x' of all `pairs`, on a grid, and the pairs that attain it.

    Each blanket has its share of the questions. At every multiple of the step, the stop-loss transform π(t) = E(V − t)₊
    of the dominating law is the largest over all pairs. A maximum of convex functions is the transform of a law.
    """
    low = min(float(1.0 - factor * b.largest_ratio) for b, _ in blankets)
    high = max(0.0, max(b.largest_ratio for b, _ in blankets) - factor)
    step = max(math.sqrt(second_moment(blankets, factor)) / fineness, (high - low) / _GRID)
    first = math.floor(low / step) - 1
    size = math.ceil(high / step) - first + 2
    total, attained = np.zeros(size), []
    for (blanket, share), compared in zip(blankets, pairs, strict=True):
        law, best = _dominating(blanket, compared, factor, step, first, size)
        total += share * law
        attained.append(best)
    return Law(total, first, step), attained


def second_moment(blankets: Sequence[tuple[Blanket, float]], factor: float) -> float:
    """E V² of the first pair of inputs."""
    total = 0.0
    for blanket, share in blankets:
        x, y = blanket.pairs[0]
        total += share * float(blanket.mass @ (blanket.ratios[x] - factor * blanket.ratios[y]) ** 2)
    return total


def _dominating(
    blanket: Blanket, pairs: NDArray[np.int64], factor: float, step: float, first: int, size: int
) -> tuple[Floats, NDArray[np.int64]]:
    best = _stop_loss(_rounded(blanket, pairs[:1], factor, step, first, size), step)[0]
    whose = np.zeros(size, np.int64)
    chunk = max(1, _ATOMS // max(size, len(blanket.mass)))
    for start in range(1, len(pairs), chunk):
        laws = _rounded(blanket, pairs[start : start + chunk], factor, step, first, size)
        losses = _stop_loss(laws, step)
        top = losses.argmax(axis=0)
        found = losses[top, np.arange(size)]
        # Differences by rounding errors do not count.
        better = found > best + 1e-12 * (1.0 + np.abs(best))
        best[better], whose[better] = found[better], start + top[better]
    winners = np.unique(whose)
    if len(winners) == 1:
        return _rounded(blanket, pairs[winners], factor, step, first, size)[0], pairs[winners]
    law = np.zeros(size)
    law[1:-1] = np.maximum(np.diff(best, 2), 0.0) / step
    law[0] = max(0.0, 1.0 - law.sum())
    return law, pairs[winners]


def _rounded(
    blanket: Blanket, pairs: NDArray[np.int64], factor: float, step: float, first: int, size: int
) -> Floats:
    """Each pair's V on the grid: a value is split between its neighbors, mean kept; V = 0 outside the blanket."""
    place = (blanket.ratios[pairs[:, 0]] - factor * blanket.ratios[pairs[:, 1]]) / step - first
    below = np.floor(place).astype(np.int64)
    part = place - below
    flat = below + size * np.arange(len(pairs))[:, None]
    n = size * len(pairs)
    lower = np.bincount(flat.ravel(), ((1.0 - part) * blanket.mass).ravel(), n)
    upper = np.bincount(flat.ravel() + 1, (part * blanket.mass).ravel(), n)
    laws: Floats = (lower + upper).astype(np.float64).reshape(len(pairs), size)
    laws[:, -first] += max(0.0, 1.0 - blanket.gamma)
    return laws


def _stop_loss(laws: Floats, step: float) -> Floats:
    """π(t_k) = Σ_{i>k} p_i (t_i − t_k) for each law and grid point."""
    beyond = np.cumsum(laws[:, ::-1], axis=1)[:, ::-1]
    losses = np.zeros_like(laws)
    losses[:, :-1] = step * np.cumsum(beyond[:, :0:-1], axis=1)[:, ::-1]
    return losses


def log_excess(law: Law, n: int) -> float:
    """log E[(V₁ + … + V_n)₊]; −∞ if V is never positive."""
    used = np.flatnonzero(law.probabilities > 0)
    p, v = law.probabilities[used], (law.first + used.astype(np.float64)) * law.step
    if v[-1] <= 0:
        return -math.inf
    tilt = _tilt(p, v, 0.0)
    cumulant = _cumulant(p, v, tilt)
    tilted = p * np.exp(tilt * v - cumulant)
    deviation = math.sqrt(n * float(tilted @ (v - tilted @ v) ** 2))
    window = 7.0 * deviation + float(v[-1]) + law.step
    while True:
        size = next_fast_len(2 * math.ceil(window / law.step) + 2, real=True)
        inside = _inside(law, used, tilted, tilt, n, size)
        beyond = _beyond(p, v, tilt, cumulant, n, (size // 2) * law.step)
        if beyond <= 1e-9 * inside or window > n * float(v[-1]):
            return n * cumulant + math.log(inside + beyond)
        window *= 1.5


def _inside(law: Law, used: NDArray[np.int64], tilted: Floats, tilt: float, n: int, size: int) -> float:
    folded = np.bincount((used + law.first) % size, tilted, size)
    transform = rfft(folded)
    power = np.zeros_like(transform)
    power[transform != 0] = np.exp(n * np.log(transform[transform != 0]))
    sums = irfft(power, size)[1 : size // 2]
    s = law.step * np.arange(1, size // 2)
    return float(np.maximum(sums, 0.0) @ (s * np.exp(-tilt * s)))


def _beyond(p: Floats, v: Floats, tilt: float, cumulant: float, n: int, end: float) -> float:
    """The part that `_inside` leaves out, Σ_{s ≥ end} s·e^{−λs}·P(S = s) under the tilted law, by Chernoff's bound.

    For θ ≥ 1/end and s ≥ end, s ≤ end·e^{θ(s − end)}; so the sum is at most end·e^{−λ·end}·e^{n·K(θ) − θ·end}.
    """
    if n * v[-1] < end:
        return 0.0
    if end / n >= v[-1] * (1.0 - 1e-9):
        exponent = n * (math.log(p[-1]) + tilt * float(v[-1]) - cumulant)
    else:
        steeper = max(_tilt(p, v, end / n), tilt + 1.0 / end)
        exponent = n * (_cumulant(p, v, steeper) - cumulant) - (steeper - tilt) * end
    return end * math.exp(exponent - tilt * end)


def _cumulant(p: Floats, v: Floats, tilt: float) -> float:
    top = float((tilt * v).max())
    return top + math.log(float(p @ np.exp(tilt * v - top)))


def _tilt(p: Floats, v: Floats, mean: float) -> float:
    """λ > 0 at which the tilted law has this mean; the smallest allowed λ if the mean is larger without a tilt."""

    def distance(tilt: float) -> float:
        w = p * np.exp(tilt * v - (tilt * v).max())
        return float(w @ v / w.sum()) - mean

    if distance(0.0) >= 0:
        return _LEAST / float(v[-1])
    upper = 1.0 / float(v[-1])
    while distance(upper) < 0:
        upper *= 2.0
    return max(float(brentq(distance, 0.0, upper, xtol=1e-14 * upper, rtol=1e-12)), _LEAST / float(v[-1]))
