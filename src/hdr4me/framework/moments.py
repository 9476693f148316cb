"""The number of reports of a dimension, and its effect on the variance of a mean.

Each user answers a dimension with probability p (its inclusion: m/d if m of d dimensions are drawn uniformly), so a
dimension's count is r ~ Binomial(n, p). The paper sets r = np everywhere; the exact variance needs E[1/r | r ≥ 1].
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_EXPAND_FROM = 1e4
# Standard errors above 0 that the share of users with a value needs before their mean is estimated.
SIGNIFICANT = 3.0


@lru_cache(maxsize=65536)
def mean_inverse_count(users: int, share: float) -> float:
    """E[1/r | r ≥ 1] for r ~ Binomial(users, share).

    Below np = 10⁴ it is the binomial sum over ±(12 sd + 60) about the mean, which omits less than 1e-15. Above, it is
    the expansion of 1/r to the sixth central moment, with a relative remainder of about 105/(np)⁴ ≤ 1.1e-14.
    """
    n, p, q = float(users), share, 1.0 - share
    μ = n * p
    if q <= 0.0:
        return 1.0 / n
    if μ >= _EXPAND_FROM:
        c = n * p * q
        pq = p * q
        m2, m3 = c, c * (q - p)
        m4 = c * (1 + 3 * (n - 2) * pq)
        m5 = c * (q - p) * (1 + (10 * n - 12) * pq)
        m6 = c * (1 - 30 * pq * (1 - 4 * pq) + 5 * n * pq * (5 - 26 * pq) + 15 * (n * pq) ** 2)
        return (1 + m2 / μ**2 - m3 / μ**3 + m4 / μ**4 - m5 / μ**5 + m6 / μ**6) / μ
    reach = 12.0 * (μ * q) ** 0.5 + 60.0
    k = np.arange(max(1.0, np.floor(μ - reach)), min(n, np.ceil(μ + reach)) + 1)
    # Ratios of neighboring terms keep the digits that lnΓ of a large n loses; normalizing by the window's
    # own mass conditions on r ≥ 1.
    steps = np.log((n - k[:-1]) / k[1:]) + np.log(p) - np.log1p(-p)
    log_mass = np.concatenate([[0.0], np.cumsum(steps)])
    mass = np.exp(log_mass - log_mass.max())
    return float(np.sum(mass / k) / np.sum(mass))


def sampling_factor(users: float, inverse_count: ArrayLike) -> Floats:
    """κ = 1 − 1/(n E[1/r]), the share of the values' variance that the sampling of users adds; 0 if all report."""
    return np.maximum(1.0 - 1.0 / (users * np.asarray(inverse_count, dtype=np.float64)), 0.0)


def sampled_variance(noise: ArrayLike, spread: ArrayLike, users: float, inverse_count: ArrayLike) -> Floats:
    """Var θ̂_j = E[1/r]·(V̄ + κ·S²), the same as E[1/r]·(V̄ + S²) − S²/n.

    V̄ is the mean variance of a report given its user's value, S² the variance over users of a report's mean.
    """
    inverse = np.asarray(inverse_count, dtype=np.float64)
    return np.asarray(inverse * (np.asarray(noise) + sampling_factor(users, inverse) * np.asarray(spread)))


def shared_draw(users: float, dims: int, sampled: int, *, even: bool = True) -> float:
    """−(d−m)/(nm(d−1)), the factor of a covariance of the values; 0 if all dimensions are reported.

    For more than one dimension drawn unevenly the factor is not known, and the errors count as independent.
    """
    if dims == sampled or not (even or sampled == 1):
        return 0.0
    return -(dims - sampled) / (users * sampled * (dims - 1))


def widening(share_error: ArrayLike, present: float, n_means: int) -> Floats:
    """The factor by which a tolerance for means among users with a value exceeds its first-order approximation.

    The estimated share π̂ divides all means of a dimension. With δ its standard error over π, a quantile of x standard
    errors moves to x·(1 + δ²x²/2), where x² = 2·ln(2k/0.05) exceeds the 95 % quantile of the largest of k errors.
    The factor is infinite if the share is less than `SIGNIFICANT` standard errors above 0: then no mean is estimated.
    """
    δ = np.asarray(share_error, np.float64) / present
    return np.where(SIGNIFICANT * δ < 1, 1.0 + δ**2 * np.log(2 * n_means / 0.05), np.inf)
