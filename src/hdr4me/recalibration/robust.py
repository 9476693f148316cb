"""Intervals that hold on average over the dimensions, whatever the means are: robust empirical Bayes.

Armstrong, Kolesár and Plagborg-Møller (Econometrica 90, 2022). The centre c + w·(x − c) has bias b_j·w·s_j with
b_j = (1/w − 1)(c − θ_j)/s_j, so the interval centre ± χ·w·s_j misses dimension j with probability r(b_j²) =
P(|N(b_j, 1)| > χ). Averaged over dimensions, the misses are at most the largest E r(t) of any distribution with E t =
mean b_j²: the concave envelope of r. Nothing but that second moment is assumed. w is chosen for the least length; w = 1
is the interval before re-calibration, so that the length never exceeds it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from hdr4me.recalibration.cells import Floats
from hdr4me.recalibration.rules import noise_levels

__all__ = ["critical_values", "robust_interval", "shortest"]

_FEWEST = 16

_SECOND_MOMENTS = np.concatenate([[0.0], np.geomspace(1e-4, 1e5, 120)])
_SHARES = np.linspace(0.005, 1.0, 200)


def _caution(n_dims: int) -> float:
    """Standard errors that are added to the estimated second moment, so that its own error does not cost coverage."""
    return 0.7 * (1 + 10 / n_dims)


def _largest_miss(second_moment: Floats, χ: Floats) -> Floats:
    """sup E r(t) over distributions with mean m: the better of t = m and any mixture of 0 and a t above m."""
    none = 2 * ndtr(-χ)
    most = np.zeros_like(χ)
    for factor in np.concatenate([[1.0], np.geomspace(1.02, 1e6, 160)]):
        b = np.sqrt(np.maximum(second_moment * factor, 1e-12))
        most = np.maximum(most, none + (ndtr(-χ - b) + ndtr(-χ + b) - none) / factor)
    return most


@lru_cache(maxsize=16)
def critical_values(level: float) -> Floats:
    """χ for each of a grid of second moments, by bisection.

    >>> values = critical_values(0.95)
    >>> float(values[0].round(3))   # no bias: the normal's
    1.96
    """
    low, high = np.full(_SECOND_MOMENTS.size, 0.5), np.sqrt(30 + _SECOND_MOMENTS / (1 - level)) + 5
    for _ in range(40):
        middle = 0.5 * (low + high)
        over = _largest_miss(_SECOND_MOMENTS, middle) > 1 - level
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return np.asarray(high)


def shortest(level: float, signal: float) -> tuple[float, float]:
    """The share w of the observation and the half-width in standard errors, for mean (θ − c)²/s² = signal.

    >>> [round(shortest(0.95, ratio)[1] / 1.95996, 2) for ratio in (0.05, 0.25, 1.0, 4.0)]
    [0.3, 0.53, 0.75, 0.9]
    """
    moments = (1 / _SHARES - 1) ** 2 * signal
    half = _SHARES * np.interp(moments, _SECOND_MOMENTS, critical_values(level))
    half[moments > _SECOND_MOMENTS[-1]] = np.inf
    best = int(np.argmin(half))
    return float(_SHARES[best]), float(half[best])


def robust_interval(
    x: Floats, s: Floats, low: float, high: float, level: float, steady: Floats
) -> tuple[Floats, Floats]:
    """Intervals around shrunken centres, not yet cut to the domain; levels of noise are treated apart.

    So the average coverage holds within each level, whether or not the means go with their standard errors. Levels,
    centres and shares come from the `steady` standard errors, lengths from s.
    """
    lower, upper = np.empty_like(x), np.empty_like(x)
    for part in noise_levels(steady):
        y, e = x[part], steady[part]
        centre = float(np.clip(np.average(y, weights=1 / e**2), low, high))
        signal = float(np.mean(((y - centre) / e) ** 2)) - 1 + 1 / y.size
        signal = max(signal, 0.0) + _caution(y.size) * float(np.sqrt((2 + 4 * max(signal, 0.0)) / y.size))
        farthest = max(high - centre, centre - low)
        w, half = shortest(level, min(signal, float(np.mean((farthest / e) ** 2))))
        if y.size < _FEWEST:
            w, half = 1.0, float(critical_values(level)[0])
        middle = centre + w * (y - centre)
        lower[part], upper[part] = middle - half * s[part], middle + half * s[part]
    return lower, upper
