"""The normal law of a deviation: probabilities, tolerances, and a bound of the distance to the exact law.

Everything is computed in logarithms, so that products over d = 10,000 dimensions neither under- nor overflow.

Theorems 3 and 4 state that re-calibration reduces the error with probability at least 1 − ∫…∫_{[−τ, τ]^d} f, with
τ = 1 for L1 and τ = 2 for L2. That expression is P(SOME dimension deviates by more than τ). The proofs assume that
EVERY dimension does, which has a far smaller probability. This module has a function for each.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, logsumexp, ndtri_exp

from hdr4me.framework.moments import Floats

L1_THRESHOLD, L2_THRESHOLD = 1.0, 2.0  # the premises |θ̂_j − θ̄_j| > 1 and > 2 of Lemmas 4 and 5
_C, _K = 0.33554, 0.415

# Below this width (in standard deviations) Φ(b) − Φ(a) loses digits to cancellation, while the midpoint
# rule with its first correction is good to a relative error of about width⁴·mid⁴/1920.
_NARROW = 1e-3


def _floats(given: ArrayLike) -> Floats:
    return np.asarray(given, dtype=np.float64)


def log_probability_within(bias: ArrayLike, sd: ArrayLike, tolerance: ArrayLike) -> Floats:
    """Natural logarithm of P(|X| ≤ ξ) for X ~ N(bias, sd²), elementwise and broadcast.

    It is log[Φ((ξ − δ)/σ) − Φ((−ξ − δ)/σ)], reflected so that both arguments lie in the left tail, where log Φ is
    accurate (the case study needs 1.01e-17). An sd of 0 is a point mass.
    """
    δ, σ, ξ = np.broadcast_arrays(*map(_floats, (bias, sd, tolerance)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        low, high = (-ξ - np.abs(δ)) / σ, (ξ - np.abs(δ)) / σ
        width, mid = high - low, 0.5 * (high + low)
        wide = log_ndtr(high) + np.log(-np.expm1(np.minimum(log_ndtr(low) - log_ndtr(high), 0.0)))
        # 1 − tails is the accurate form if the tails are small.
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
    """Natural logarithm of P(|X| > threshold) = Φ((δ − τ)/σ) + Φ((−δ − τ)/σ) for X ~ N(bias, sd²), broadcast."""
    δ, σ, τ = np.broadcast_arrays(*map(_floats, (bias, sd, threshold)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        both = np.logaddexp(log_ndtr((np.abs(δ) - τ) / σ), log_ndtr((-np.abs(δ) - τ) / σ))
        point = np.where(np.abs(δ) > τ, 0.0, -np.inf)
        result = np.where(σ > 0, np.minimum(both, 0.0), point)
        return np.asarray(np.where(τ < 0, 0.0, result), dtype=np.float64)


def _log1mexp(x: Any) -> Any:
    """log(1 − eˣ) for x ≤ 0 without cancellation at either end."""
    return np.where(x > -0.6931471805599453, np.log(-np.expm1(x)), np.log1p(-np.exp(x)))


def tolerance_for(sd: ArrayLike, probability: float, *, n: ArrayLike = 1) -> Floats:
    """The ξ that an unbiased normal deviation, or all of n copies of it, keeps with a probability.

    It is z·σ with Φ(z) = (1 + q)/2 and q = probability^{1/n}. The inverse uses log((1 − q)/2), which is accurate
    for n = 10,000.
    """
    half_miss = -0.5 * np.expm1(np.log(probability) / _floats(n))  # (1 − q)/2, accurately
    return np.asarray(_floats(sd) * -ndtri_exp(np.log(half_miss)))


def joint_tolerance(bias: ArrayLike, sd: ArrayLike, counts: ArrayLike, probability: float) -> float:
    """The smallest common ξ with Π_j P(|X_j| ≤ ξ)^{counts_j} ≥ probability.

    In closed form for copies of one unbiased deviation, otherwise by bisection.
    """
    δ, σ, k = (np.atleast_1d(_floats(a)) for a in (bias, sd, counts))
    target = np.log(probability)

    def short(ξ: float) -> bool:
        return bool(np.sum(k * log_probability_within(δ, σ, ξ)) < target)

    unbiased = not np.any(δ)
    if unbiased and σ.size == 1:
        return float(tolerance_for(σ[0], probability, n=k[0]))
    # A lower bound: each class alone. An upper bound: all classes with the largest tolerance, up to rounding.
    low = float(np.max(tolerance_for(σ, probability, n=k))) * (1 - 1e-12) if unbiased else 0.0
    high = float(np.max(np.abs(δ)) + np.max(tolerance_for(σ, probability, n=np.sum(k)))) * (1 + 1e-9)
    if not short(low):
        return low
    while high - low > 1e-13 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if short(middle) else (low, middle)
    return high


def log_probability_some_exceed(
    bias: ArrayLike, sd: ArrayLike, threshold: ArrayLike, *, counts: ArrayLike = 1
) -> float:
    """Logarithm of P(at least one |dev_j| > threshold_j), dimensions independent; `counts` are repetitions."""
    within = float(np.sum(_floats(counts) * log_probability_within(bias, sd, threshold)))
    # Too small for a double: the union bound Σ_j P(|dev_j| > τ_j) is exact to all digits.
    if within > -1e-300:
        exceed = np.atleast_1d(log_probability_exceed(bias, sd, threshold))
        return float(logsumexp(exceed, b=np.broadcast_to(_floats(counts), exceed.shape)))
    return math.log(-math.expm1(within)) if within > -math.log(2) else math.log1p(-math.exp(within))


def probability_some_exceed(
    bias: ArrayLike, sd: ArrayLike, threshold: ArrayLike, *, counts: ArrayLike = 1
) -> float:
    """P(SOME dimension deviates by more than the threshold): what Theorems 3 and 4 print."""
    return math.exp(log_probability_some_exceed(bias, sd, threshold, counts=counts))


def log_probability_all_exceed(
    bias: ArrayLike, sd: ArrayLike, threshold: ArrayLike, *, counts: ArrayLike = 1
) -> float:
    """Logarithm of P(every |dev_j| > threshold_j) = Σ_j log P(|dev_j| > τ_j)."""
    return float(np.sum(_floats(counts) * log_probability_exceed(bias, sd, threshold)))


def probability_all_exceed(
    bias: ArrayLike, sd: ArrayLike, threshold: ArrayLike, *, counts: ArrayLike = 1
) -> float:
    """P(EVERY dimension deviates by more than the threshold): the premise of the proofs of Theorems 3 and 4."""
    return math.exp(log_probability_all_exceed(bias, sd, threshold, counts=counts))


def berry_esseen_bound(abs_third_moment: ArrayLike, variance: ArrayLike, reports: ArrayLike) -> Floats:
    """0.33554 (ρ + 0.415 s³)/(s³ √r) with s² = `variance` of ONE report: Theorem 2 (Korolev, Shevtsova 2010)."""
    ρ, s, r = np.asarray(abs_third_moment), np.sqrt(variance), np.asarray(reports)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(_C * (ρ / s**3 + _K) / np.sqrt(r), dtype=np.float64)


def berry_esseen_printed(abs_third_moment: ArrayLike, sd_of_mean: ArrayLike, reports: ArrayLike) -> Floats:
    """Theorem 2 as printed: 0.33554 (ρ + 0.415 (r σ_j)³)/(r^{7/2} σ_j³), which is a bound only if r σ_j = s.

    With the true σ_j = s/√r it is far too small. The paper's example uses σ_j = s/r and half the true ρ.
    """
    ρ, σ, r = np.asarray(abs_third_moment), np.asarray(sd_of_mean), np.asarray(reports, dtype=np.float64)
    return np.asarray(_C * (ρ + _K * (r * σ) ** 3) / (r**3.5 * σ**3), dtype=np.float64)
