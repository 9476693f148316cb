"""The variance of every candidate, as arrays over m: the part of planning that must be quick.

For one value under ε/m an unbiased, symmetric mechanism has a variance V(t). A coordinate's variance is
A·(V̄ + κ S²) with A = E[1/r | r ≥ 1] and κ = 1 − 1/(nA) (see `framework.predict`), where V̄ and S² are
those of the assumed population:

- "uniform": values spread evenly over the domain (S² = 1/3); a category's frequencies all 1/v;
- "worst":   the largest that any population can give, max_t V(t) + κ t² (half the users at t, half at −t).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hdr4me.framework.laws import calibrate
from hdr4me.framework.moments import mean_inverse_count
from hdr4me.mechanisms import mechanism
from hdr4me.planner.optimal_curve import OptimalCurve
from hdr4me.planner.workload import Workload

__all__ = ["CATEGORICAL", "NUMERIC", "Classes", "Prior", "classes", "sampled_grid"]

Floats = NDArray[np.float64]
Prior = Literal["uniform", "worst"]

NUMERIC = ("optimal", "piecewise", "hybrid", "duchi", "square_wave", "laplace", "scdf", "staircase")
"""The mechanisms that a survey can deploy for numbers."""
CATEGORICAL = ("grr", "oue", "histogram")
"""… and for categories."""

MAX_GRR = 256  # a report is one byte

# Gauss–Legendre on [0, 1] (variances are even in t): exact for the quadratics they are; then a plain grid.
_GAUSS, _GAUSS_WEIGHTS = (np.asarray(a) for a in np.polynomial.legendre.leggauss(6))
_GRID = np.linspace(0.0, 1.0, 9)
_NODES = np.concatenate([(_GAUSS + 1) / 2, _GRID])
# A table has at most 256 levels, so that rounding to one of them costs Δ²/6 on average however large ε is.
_ROUNDING = (2.0 / 255) ** 2
_FREQUENCIES = np.linspace(0.0, 1.0, 65)


@lru_cache(maxsize=65536)
def _variances(name: str, epsilon: float) -> tuple[float, tuple[float, ...]]:
    """V̄ over the uniform prior, and V on the grid of |t|, of one calibrated report on [−1, 1]."""
    if name == "optimal":
        curve = OptimalCurve(epsilon)
        return curve.mean_variance, tuple(curve.variance(_GRID).tolist())
    options = {"domain": (-1.0, 1.0)} if name == "square_wave" else {}
    law = calibrate(mechanism(name, epsilon=epsilon, **options))
    v = np.asarray(law.variance(_NODES), dtype=np.float64)
    mean = max(float(v[:6] @ _GAUSS_WEIGHTS / 2), _ROUNDING / 6)
    return mean, tuple(np.maximum(v[6:], _ROUNDING / 6).tolist())


@lru_cache(maxsize=65536)
def entry_variances(method: str, base: str, epsilon: float, size: int) -> tuple[float, float]:
    """Var of one entry's report where the user has not, and has, the category.

    GRR: p = e^ε/(e^ε + v − 1), q = 1/(e^ε + v − 1); OUE: p = 1/2, q = 1/(e^ε + 1); both π(1−π)/(p−q)². Histogram
    encoding: the numeric mechanism `base` at ±1 under ε/2, mapped from [−1, 1] to [0, 1].
    """
    if method == "histogram":
        v = _variances(base, epsilon / 2)[1][-1] / 4
        return v, v
    e = math.exp(-epsilon)  # everything in e^{−ε}, which cannot overflow
    if method == "grr":
        p, q = 1 / (1 + (size - 1) * e), e / (1 + (size - 1) * e)
        not_p = (size - 1) * e / (1 + (size - 1) * e)
    else:
        p, not_p, q = 0.5, 0.5, e / (1 + e)
    return q * (1 - q) / (p - q) ** 2, p * not_p / (p - q) ** 2


def sampled_grid(n_dims: int, *, dense: int = 32, step: float = 1.1) -> list[int]:
    """The m to try: every one up to `dense`, then `step` times as many each time, and all of them.

    >>> sampled_grid(5)
    [1, 2, 3, 4, 5]
    >>> len(sampled_grid(10_000)), len(sampled_grid(10_000, dense=16, step=1.5))
    (93, 32)
    """
    grid = list(range(1, min(n_dims, dense) + 1))
    while grid[-1] < n_dims:
        grid.append(min(n_dims, max(grid[-1] + 1, round(grid[-1] * step))))
    return grid


@dataclass(frozen=True, eq=False)
class Classes:
    """Coordinates that are alike, one column per class, one row per m: their variance and how many they are."""

    sampled: tuple[int, ...]
    variances: Floats
    counts: Floats

    @property
    def mse(self) -> Floats:
        """The expected MSE at each m."""
        return np.asarray(self.variances @ self.counts / self.counts.sum())


def classes(
    workload: Workload,
    mechanism_name: str,
    method: str,
    n_users: int,
    epsilon: float,
    sampled: tuple[int, ...],
    prior: Prior,
) -> Classes:
    """The coordinates' variances when `mechanism_name` serves numbers and `method` categories."""
    d = workload.n_dims
    inverse = np.array([mean_inverse_count(n_users, m / d) for m in sampled])
    κ = np.maximum(1.0 - 1.0 / (n_users * inverse), 0.0)
    columns: list[Floats] = []
    counts: list[float] = []
    if workload.numeric:
        rows = [_variances(mechanism_name, epsilon / m) for m in sampled]
        if prior == "uniform":
            spread = np.array([mean for mean, _ in rows]) + κ / 3
        else:
            spread = np.max(np.array([grid for _, grid in rows]) + κ[:, None] * _GRID**2, axis=1)
        columns.append(inverse * spread)
        counts.append(workload.numeric)
    for size, count in workload.categorical:
        pairs = np.array([entry_variances(method, mechanism_name, epsilon / m, size) for m in sampled])
        f = np.array([1.0 / size]) if prior == "uniform" else _FREQUENCIES
        each = pairs[:, :1] * (1 - f) + pairs[:, 1:] * f + κ[:, None] * f * (1 - f)
        columns.append(inverse * np.max(each, axis=1))
        counts.append(size * count)
    return Classes(sampled, np.stack(columns, axis=1), np.array(counts))
