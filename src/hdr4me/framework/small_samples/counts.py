"""Few reports: probabilities that hold where the normal law does not carry.

A dimension receives r ~ Binomial(n, p) reports. Where np is small, two things are lost if r is replaced by its mean and
the error by a normal one: some dimensions receive far fewer reports than the mean, and a bounded report may be skewed.

- `normal_within`: given r the error is taken as N(0, v/r), and r is summed over. Without a report nothing is kept.
- `bernstein_within`: P(|error| ≤ ξ) ≥ 1 − 2·exp(−rξ²/(2(v + Mξ/3))) for independent errors of one report that have
  variance v at most and size M at most (Bernstein 1946), summed over r: a bound, whatever the values are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr
from scipy.stats import binom

Floats = NDArray[np.float64]

FEW_REPORTS = 100.0
"""Below this many reports per dimension the number of reports is summed over."""


@dataclass(frozen=True)
class Counts:
    """How many reports a dimension receives: Binomial(n_users, share)."""

    n_users: int
    share: float

    @property
    def few(self) -> bool:
        """Is the mean number so small that the normal law is not relied on?"""
        return self.n_users * self.share < FEW_REPORTS

    @cached_property
    def law(self) -> tuple[Floats, Floats]:
        """The numbers r ≥ 1 that occur, and their probabilities; what is missing from one is r = 0."""
        if self.share >= 1:
            return np.array([float(self.n_users)]), np.ones(1)
        low = float(binom.ppf(1e-12, self.n_users, self.share))
        high = float(binom.isf(1e-12, self.n_users, self.share))
        r = np.arange(max(1.0, low), high + 1)
        return r, np.asarray(binom.pmf(r, self.n_users, self.share))

    @cached_property
    def mean_inverse(self) -> float:
        """E[1/r | r ≥ 1]."""
        r, mass = self.law
        return float(mass @ (1 / r) / mass.sum())


def normal_within(variances: ArrayLike, counts: Counts, tolerance: float) -> Floats:
    """P(|error| ≤ ξ) for each variance of one report, with the error N(0, variance/r) given r reports.

    >>> round(float(normal_within(1.0, Counts(13, 1.0), 1.96 / 13**0.5)), 3)
    0.95
    """
    r, mass = counts.law
    with np.errstate(over="ignore", divide="ignore"):
        z = tolerance * np.sqrt(r / np.asarray(variances, np.float64)[..., None])
    return np.asarray((1 - 2 * ndtr(-z)) @ mass)


def bernstein_within(variances: ArrayLike, largest: float, counts: Counts, tolerance: float) -> Floats:
    """A lower bound of P(|error| ≤ ξ), from the largest variance and the largest size of one report's error."""
    r, mass = counts.law
    v = np.asarray(variances, np.float64)[..., None]
    if not math.isfinite(tolerance):
        return np.broadcast_to(mass.sum(), v.shape[:-1])
    exponent = r * tolerance**2 / (2 * (v + largest * tolerance / 3))
    return np.asarray(np.maximum(1 - 2 * np.exp(-exponent), 0.0) @ mass)


def within_few(
    variances: ArrayLike, counts: Counts, tolerance: float, largest: float | None = None
) -> Floats:
    """P(|error| ≤ ξ) for each variance of one report; Bernstein's bound where the largest error is given."""
    if largest is None:
        return normal_within(variances, counts, tolerance)
    return bernstein_within(variances, largest, counts, tolerance)


def tolerance_within(
    variances: Floats, numbers: ArrayLike, counts: Counts, probability: float, largest: float | None = None
) -> float:
    """The smallest ξ that all coordinates keep with this probability; infinite if no ξ is."""

    def kept(tolerance: float) -> bool:
        with np.errstate(divide="ignore"):
            within = np.log(within_few(variances, counts, tolerance, largest))
        return bool(np.asarray(numbers, np.float64) @ within >= math.log(probability))

    widest = math.sqrt(float(np.max(variances)))
    low, high = 0.0, 4 * widest
    while not kept(high):
        high *= 2
        if high > 1e9 * math.sqrt(widest**2 + 1e-300):
            return math.inf
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if kept(middle) else (middle, high)
    return high
