"""Intervals of three kinds for the noisy dimensions: "conservative", "average" and "credible".

`average` is the robust empirical-Bayes interval of Armstrong, Kolesár and Plagborg-Møller (Econometrica 90, 2022). The
center c + w·(x − c) has bias b_j·w·s_j with b_j = (1/w − 1)(c − θ_j)/s_j, so the interval center ± χ·w·s_j misses
dimension j with probability r(b_j²) = P(|N(b_j, 1)| > χ): on average at most the concave envelope of r at mean b_j².
w is chosen for the least length; w = 1 is the interval before re-calibration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from hdr4me.recalibration.auto.posterior import Belief, Posterior, noise_levels
from hdr4me.recalibration.inputs import Floats, Inputs

# Fewer dimensions do not determine the second moment: benchmarks/recalibration_hard.py, also for `caution`.
_FEWEST = 16
_SECOND_MOMENTS = np.concatenate([[0.0], np.geomspace(1e-4, 1e5, 120)])
_SHARES = np.linspace(0.005, 1.0, 200)


@dataclass(frozen=True)
class Intervals:
    """The data that the intervals of the noisy dimensions are computed from."""

    part: Inputs
    posterior: Posterior
    beliefs: Sequence[Belief]

    def around(self, estimate: Floats, level: float, kind: str) -> tuple[Floats, Floats]:
        """The interval of each dimension, extended where needed to contain the estimate."""
        part = self.part
        arguments = (part.calibrated, part.calibrated_errors, part.low, part.high, level)
        if kind == "average":
            found = average_interval(*arguments, estimate, part.calibrated_steady)
        elif kind == "credible":
            found = self.posterior.interval(level, self.beliefs)
        else:
            found = conservative_interval(*arguments)
        return containing(estimate, *found)


def conservative_interval(
    x: Floats, s: Floats, low: float, high: float, level: float
) -> tuple[Floats, Floats]:
    """x ± z·s, cut to the domain."""
    reach = float(ndtri(0.5 * (1 + level))) * s
    return np.clip(x - reach, low, high), np.clip(x + reach, low, high)


def average_interval(
    x: Floats, s: Floats, low: float, high: float, level: float, estimate: Floats, steady: Floats
) -> tuple[Floats, Floats]:
    """The robust empirical-Bayes interval, extended to the estimate and cut to the domain.

    Each level of noise has its own intervals, so that the average coverage holds within each level even if the means
    are correlated with their standard errors. Levels, centers and shares come from the `steady` standard errors,
    lengths from s. An interval that becomes longer than x ± z·s is replaced by x ± z·s. The conservative intervals are
    returned if they are shorter on average.
    """
    reach = float(ndtri(0.5 * (1 + level))) * s
    lower, upper = np.empty_like(x), np.empty_like(x)
    for part in noise_levels(steady):
        y, e = x[part], steady[part]
        center = float(np.clip(np.average(y, weights=1 / e**2), low, high))
        signal = float(np.mean(((y - center) / e) ** 2)) - 1 + 1 / y.size
        # Standard errors are added to the estimated second moment, so that its error does not reduce the coverage.
        caution = 0.7 * (1 + 10 / y.size)
        signal = max(signal, 0.0) + caution * float(np.sqrt((2 + 4 * max(signal, 0.0)) / y.size))
        farthest = max(high - center, center - low)
        w, half = shortest(level, min(signal, float(np.mean((farthest / e) ** 2))))
        if y.size < _FEWEST:
            w, half = 1.0, float(critical_values(level)[0])
        middle = center + w * (y - center)
        lower[part], upper[part] = middle - half * s[part], middle + half * s[part]
    lower, upper = containing(estimate, lower, upper)
    far = upper - lower > 2 * reach
    lower, upper = np.where(far, x - reach, lower), np.where(far, x + reach, upper)
    lower, upper = np.clip(lower, low, high), np.clip(upper, low, high)
    plain = conservative_interval(x, s, low, high, level)
    return (lower, upper) if np.mean(upper - lower) <= np.mean(plain[1] - plain[0]) else plain


def containing(estimate: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """The intervals, extended where needed to contain the estimate; the coverage can only increase."""
    return np.minimum(lower, estimate), np.maximum(upper, estimate)


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
    """χ for a grid of second moments, by bisection; the first is the normal quantile."""
    low, high = np.full(_SECOND_MOMENTS.size, 0.5), np.sqrt(30 + _SECOND_MOMENTS / (1 - level)) + 5
    for _ in range(40):
        middle = 0.5 * (low + high)
        over = _largest_miss(_SECOND_MOMENTS, middle) > 1 - level
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return np.asarray(high)


def shortest(level: float, signal: float) -> tuple[float, float]:
    """The share w of the observation and the half-width in standard errors, for mean (θ − c)²/s² = signal."""
    moments = (1 / _SHARES - 1) ** 2 * signal
    half = _SHARES * np.interp(moments, _SECOND_MOMENTS, critical_values(level))
    half[moments > _SECOND_MOMENTS[-1]] = np.inf
    best = int(np.argmin(half))
    return float(_SHARES[best]), float(half[best])
