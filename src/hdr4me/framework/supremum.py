"""The probability that a normal deviation stays within a tolerance ξ, in log space.

The paper integrates Theorem 1's density over the box |θ̂_j − θ̄_j| ≤ ξ_j. The box factorises, so its
logarithm is a sum of one-dimensional logarithms and d = 10,000 neither under- nor overflows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtri_exp

__all__ = ["joint_tolerance", "log_probability_exceed", "log_probability_within", "tolerance_for"]

Floats = NDArray[np.float64]

# Below this width (in standard deviations) Φ(b) − Φ(a) loses digits to cancellation, while the midpoint
# rule with its first correction is good to a relative error of about width⁴·mid⁴/1920.
_NARROW = 1e-3


def _arrays(*arguments: ArrayLike) -> tuple[Floats, ...]:
    return tuple(np.asarray(a, dtype=np.float64) for a in arguments)


def log_probability_within(bias: ArrayLike, sd: ArrayLike, tolerance: ArrayLike) -> Floats:
    """Natural logarithm of P(|X| ≤ ξ) for X ~ N(bias, sd²), elementwise and broadcast.

    log[Φ((ξ − δ)/σ) − Φ((−ξ − δ)/σ)], reflected so that both arguments lie in the left tail, where
    log Φ keeps its digits (the case study needs 1.01e-17). A zero sd is a point mass.

    >>> round(float(np.exp(log_probability_within(0.0, 1.0, 1.959963984540054))), 12)
    0.95
    >>> float(log_probability_within(50.0, 1.0, 1.0))
    -1205.3...
    """
    δ, σ, ξ = np.broadcast_arrays(*_arrays(bias, sd, tolerance))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        low, high = (-ξ - np.abs(δ)) / σ, (ξ - np.abs(δ)) / σ
        width, mid = high - low, 0.5 * (high + low)
        wide = log_ndtr(high) + np.log(-np.expm1(np.minimum(log_ndtr(low) - log_ndtr(high), 0.0)))
        # Wider than the point 0 on the right: 1 − tails is the accurate form when little is missing.
        tails = np.logaddexp(log_ndtr(low), log_ndtr(-high))
        wide = np.where(high > 1.0, _log1mexp(tails), wide)
        correction = np.log1p(width**2 * (mid**2 - 1.0) / 24.0)
        narrow = np.log(width) - 0.5 * mid**2 - 0.5 * np.log(2 * np.pi) + correction
        use_narrow = width * np.maximum(1.0, np.abs(mid)) < _NARROW
        result = np.where(use_narrow, narrow, wide)
        point = np.where(np.abs(δ) <= ξ, 0.0, -np.inf)
        result = np.where(σ > 0, result, point)
        result = np.where(ξ > 0, result, np.where((σ > 0) | (ξ < 0), -np.inf, point))
        return np.asarray(np.where(np.isinf(ξ) & (ξ > 0), 0.0, result), dtype=np.float64)


def log_probability_exceed(bias: ArrayLike, sd: ArrayLike, threshold: ArrayLike) -> Floats:
    """Natural logarithm of P(|X| > threshold) for X ~ N(bias, sd²), elementwise and broadcast.

    log[Φ((δ − τ)/σ) + Φ((−δ − τ)/σ)].

    >>> round(float(np.exp(log_probability_exceed(0.0, 1.0, 1.959963984540054))), 12)
    0.05
    """
    δ, σ, τ = np.broadcast_arrays(*_arrays(bias, sd, threshold))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        both = np.logaddexp(log_ndtr((np.abs(δ) - τ) / σ), log_ndtr((-np.abs(δ) - τ) / σ))
        point = np.where(np.abs(δ) > τ, 0.0, -np.inf)
        result = np.where(σ > 0, np.minimum(both, 0.0), point)
        return np.asarray(np.where(τ < 0, 0.0, result), dtype=np.float64)


def _log1mexp(x: Any) -> Any:
    """log(1 − eˣ) for x ≤ 0 without cancellation at either end."""
    return np.where(x > -0.6931471805599453, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def tolerance_for(sd: ArrayLike, probability: float, *, n: ArrayLike = 1) -> Floats:
    """The ξ that an unbiased normal deviation keeps to with a probability, in each or in all of n copies.

    z·σ with Φ(z) = (1 + q)/2 and q = probability^{1/n}; the inverse works on log((1 − q)/2), so that n = 10,000
    loses nothing.

    >>> round(float(tolerance_for(1.0, 0.95)), 6)
    1.959964
    >>> round(float(tolerance_for(1.0, 0.95, n=750)), 4)
    3.9818
    """
    half_miss = -0.5 * np.expm1(
        np.log(probability) / np.asarray(n, dtype=np.float64)
    )  # (1 − q)/2, accurately
    return np.asarray(np.asarray(sd, dtype=np.float64) * -ndtri_exp(np.log(half_miss)))


def joint_tolerance(bias: ArrayLike, sd: ArrayLike, counts: ArrayLike, probability: float) -> float:
    """The smallest common ξ with Π_j P(|X_j| ≤ ξ)^{counts_j} ≥ probability.

    In closed form for copies of one unbiased deviation, otherwise by bisection.

    >>> round(joint_tolerance(0.0, 1.0, 1, 0.95), 6)
    1.959964
    """
    δ, σ, k = (np.atleast_1d(a) for a in _arrays(bias, sd, counts))
    target = np.log(probability)

    def short(ξ: float) -> bool:
        return bool(np.sum(k * log_probability_within(δ, σ, ξ)) < target)

    unbiased = not np.any(δ)
    if unbiased and σ.size == 1:
        return float(tolerance_for(σ[0], probability, n=k[0]))
    # Every class alone is easier than all together; all as bad as the worst is harder, up to the last bits.
    low = float(np.max(tolerance_for(σ, probability, n=k))) * (1 - 1e-12) if unbiased else 0.0
    high = float(np.max(np.abs(δ)) + np.max(tolerance_for(σ, probability, n=np.sum(k)))) * (1 + 1e-9)
    if not short(low):
        return low
    while high - low > 1e-13 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if short(middle) else (low, middle)
    return high
