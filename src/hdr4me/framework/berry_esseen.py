"""Theorem 2: how far the deviation's true distribution can be from its normal.

With s² = Var(t*) and ρ = E|t* − E t*|³, the mean of r independent, identically distributed reports satisfies

    sup_x |F̄(x) − F̂(x)| ≤ 0.33554 (ρ + 0.415 s³) / (s³ √r)        (Korolev and Shevtsova 2010).

The paper prints the same with (r σ_j)³ in place of s³ and r^{7/2} σ_j³ below. That agrees with the bound only
if r σ_j = s, but σ_j² = s²/r gives r σ_j = √r s; the printed form is kept here for comparison.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["berry_esseen_bound", "berry_esseen_independent", "berry_esseen_printed"]

_C, _K = 0.33554, 0.415
_INDEPENDENT = 0.5600

Floats = NDArray[np.float64]


def berry_esseen_bound(abs_third_moment: ArrayLike, variance: ArrayLike, reports: ArrayLike) -> Floats:
    """0.33554 (ρ + 0.415 s³)/(s³ √r) with s² = `variance` of ONE report: Theorem 2, normalised rightly.

    >>> scale = 2.0  # the paper's example: Laplace, r = 1000; ρ = 6 λ³ and s² = 2 λ²
    >>> print(f"{berry_esseen_bound(6 * scale**3, 2 * scale**2, 1000):.6%}")
    2.691215%
    """
    ρ, s, r = np.asarray(abs_third_moment), np.sqrt(variance), np.asarray(reports)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(_C * (ρ / s**3 + _K) / np.sqrt(r), dtype=np.float64)


def berry_esseen_printed(abs_third_moment: ArrayLike, sd_of_mean: ArrayLike, reports: ArrayLike) -> Floats:
    """Theorem 2 to the letter: 0.33554 (ρ + 0.415 (r σ_j)³)/(r^{7/2} σ_j³).

    With the true σ_j = s/√r it is far too small to be a bound. The paper's own example puts σ_j = s/r and
    ρ = 3 λ³ (half the true moment):

    >>> scale = 2.0
    >>> print(f"{berry_esseen_printed(3 * scale**3, 2**0.5 * scale / 1000, 1000):.6%}")
    1.565780%
    """
    ρ, σ, r = np.asarray(abs_third_moment), np.asarray(sd_of_mean), np.asarray(reports, dtype=np.float64)
    return np.asarray(_C * (ρ + _K * (r * σ) ** 3) / (r**3.5 * σ**3), dtype=np.float64)


def berry_esseen_independent(abs_third_moment: ArrayLike, variance: ArrayLike, reports: ArrayLike) -> Floats:
    """0.5600 ρ̄/(s̄³ √r): the bound for reports that are independent but NOT identically distributed.

    Under a bounded mechanism users with different values send differently distributed reports, for which the
    constant above is not proven; Shevtsova's (2010) is. ρ̄ and s̄² are means over the users.

    >>> print(f"{berry_esseen_independent(48.0, 8.0, 1000):.6%}")
    3.756594%
    """
    ρ, s, r = np.asarray(abs_third_moment), np.sqrt(variance), np.asarray(reports)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(_INDEPENDENT * ρ / (s**3 * np.sqrt(r)), dtype=np.float64)
