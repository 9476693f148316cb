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
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom

__all__ = ["FEW_REPORTS", "Counts", "bernstein_within", "normal_within", "tolerance_within", "within_few"]

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


def normal_within(variance: float, counts: Counts, tolerance: float) -> float:
    """P(|error| ≤ ξ) with the error N(0, variance/r) given r reports.

    >>> round(normal_within(1.0, Counts(13, 1.0), 1.96 / 13**0.5), 3)
    0.95
    """
    r, mass = counts.law
    with np.errstate(over="ignore", divide="ignore"):
        z = tolerance * np.sqrt(r / variance) if variance > 0 else np.full_like(r, np.inf)
    return float(mass @ (1 - 2 * ndtr(-z)))


def within_few(sds: Floats, counts: Counts, tolerance: float, largest: float | None = None) -> Floats:
    """The same for estimates whose standard deviations, r summed over, are `sds`.

    Parameters
    ----------
    sds
        Standard deviations.
    counts
        How many reports there are.
    tolerance
        ξ.
    largest
        Where given, Bernstein's bound is used with this size of one report's error.
    """
    single = (np.asarray(sds) ** 2 / counts.mean_inverse).tolist()
    if largest is not None:
        return np.array([bernstein_within(v, largest, counts, tolerance) for v in single])
    return np.array([normal_within(v, counts, tolerance) for v in single])


def bernstein_within(variance: float, largest: float, counts: Counts, tolerance: float) -> float:
    """A lower bound of P(|error| ≤ ξ), whatever the law of one report's error.

    Parameters
    ----------
    variance
        The largest variance of one report's error.
    largest
        The largest size of one report's error.
    counts
        How many reports there are.
    tolerance
        ξ.

    Returns
    -------
    float
        Between 0 and 1.
    """
    r, mass = counts.law
    if not math.isfinite(tolerance):
        return float(mass.sum())
    exponent = r * tolerance**2 / (2 * (variance + largest * tolerance / 3))
    return float(mass @ np.maximum(1 - 2 * np.exp(-exponent), 0.0))


def tolerance_within(
    variances: Floats, numbers: Floats, counts: Counts, probability: float, largest: float | None = None
) -> float:
    """The smallest ξ that all coordinates keep with this probability; infinite if no ξ is.

    Parameters
    ----------
    variances, numbers
        The variance of one report's error for each class of coordinates, and how many coordinates it has.
    counts
        How many reports a dimension receives.
    probability
        Of all coordinates at once.
    largest
        Where given, Bernstein's bound is used with this size of one report's error.

    Returns
    -------
    float
        ξ.
    """

    def within(tolerance: float) -> float:
        total = 0.0
        for v, k in zip(variances.tolist(), numbers.tolist(), strict=True):
            p = (
                normal_within(v, counts, tolerance)
                if largest is None
                else bernstein_within(v, largest, counts, tolerance)
            )
            if p <= 0:
                return -math.inf
            total += k * math.log(p)
        return total

    target = math.log(probability)
    high = 4 * math.sqrt(float(np.max(variances)))
    while within(high) < target:
        high *= 2
        if high > 1e9 * math.sqrt(float(np.max(variances)) + 1e-300):
            return math.inf
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if within(middle) >= target else (middle, high)
    return high
