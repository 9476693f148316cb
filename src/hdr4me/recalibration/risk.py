"""The error of a rule, measured on the data that it is applied to: Stein's unbiased estimate for any rule.

For x ~ N(θ, Σ) and a rule δ, E Σ_j (δ_j(x) − θ_j)² = E[Σ_j (x_j − δ_j)² − tr Σ + 2·tr(Σ∇δ)]. The last
term, how strongly the rule follows the noise, is measured by applying the whole rule (its fit included) to x ± tz
for a few z with covariance Σ: the coupled bootstrap with antithetic z, whose limit for small t this is. No derivative
is needed, so that one function serves Bayes rules, thresholds, projections and curves alike; common z make the
differences between rules far better known than the errors themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard

from hdr4me.recalibration.cells import Floats

__all__ = ["Measured", "Probes", "Reading", "Rule", "difference", "probes", "read", "risk"]

Rule = Callable[[Floats], Floats]

# Small beside the noise, so that the error is that at the noise itself: (1 + t²) = 1.01 of its variance.
_STEP = 0.1
_COORDINATES, _COORDINATES_DEPENDENT = 10, 32
_SEED = 20220


class Measured(NamedTuple):
    """A mean squared error, or a difference of two, and its standard error as a measurement."""

    value: float
    standard_error: float


class Probes(NamedTuple):
    """Rows z with mean(weight·z zᵀ) = Σ."""

    z: Floats
    weight: float


class Reading(NamedTuple):
    """What a rule answers, and for each dimension (Σ∇δ)_jj: the covariance of its answer with the noise."""

    value: Floats
    response: Floats


def probes(s: Floats, *, dependent: bool = False, rank: NDArray[np.int64] | None = None) -> Probes:
    """Directions for independent noise: each coordinate for few dimensions, signs for many.

    With signs, what a rule does to its own dimension is measured without error, and what all dimensions do in common,
    such as shrinking towards their mean, nearly so. The influence of single other dimensions is averaged out, that of
    near neighbours wholly: a rule that smooths (`dependent`) takes more directions, and `rank` is the place of each
    dimension along its curve.
    """
    d = s.size
    if d <= (_COORDINATES_DEPENDENT if dependent else _COORDINATES):
        return Probes(np.diag(s), float(d))
    number = 1 if d > 5_000 else 8 if dependent and d <= 500 else 2
    return Probes(s * _signs(number, np.arange(d) if rank is None else rank), 1.0)


def _signs(number: int, rank: NDArray[np.int64]) -> Floats:
    """Rows of signs, z zᵀ of which has the mean 1 on its diagonal, 0 between neighbours, and the sum d, or nearly so.

    Dimensions are dealt out to `number` classes, each of which has a column of a Hadamard matrix; the random signs
    inside a class have a sum near the root of its size.

    >>> z = _signs(2, np.arange(20))
    >>> (z.sum(axis=1) ** 2).mean(), (z[:, 0] * z[:, 1]).mean()
    (np.float64(20.0), np.float64(0.0))
    """
    rng = np.random.default_rng(_SEED)
    sign = np.ones(rank.size)
    size = squares = 0
    for one in range(number):
        members = np.flatnonzero(rank % number == one)
        size += members.size
        root = int(max(size - squares, 0) ** 0.5)
        near = (
            t for t in range(max(root - 2, 0), root + 4) if t <= members.size and (members.size - t) % 2 == 0
        )
        total = min(near, key=lambda t: abs(squares + t**2 - size))
        squares += total**2
        sign[rng.permutation(members)[: (members.size - total) // 2]] = -1.0
    return np.asarray(hadamard(number)[:, rank % number] * sign)


def read(rule: Rule, x: Floats, directions: Probes) -> Reading:
    """Apply a rule to x, and to x ± tz for every probe."""
    response = np.zeros_like(x)
    for z in directions.z:
        response += z * (rule(x + _STEP * z) - rule(x - _STEP * z)) / (2 * _STEP)
    return Reading(rule(x), response * (directions.weight / len(directions.z)))


def risk(reading: Reading, x: Floats, s: Floats) -> Measured:
    """The mean squared error of a rule, and the standard error of this measurement.

    Var(estimate − loss) is itself estimated without bias by Σ 4s²(x−δ)² + 4(s²∂δ)² − 2s⁴ (Johnstone 1988).
    """
    v = s**2
    value = float(np.mean((x - reading.value) ** 2 - v + 2 * reading.response))
    spread = float(np.sum(4 * v * (x - reading.value) ** 2 + 4 * reading.response**2 - 2 * v**2))
    # The estimate of the variance can be negative in a single draw; 2Σs⁴ is what rules near the data have.
    return Measured(value, float(np.sqrt(max(spread, 0.5 * float(np.sum(v**2))))) / x.size)


def difference(one: Reading, two: Reading, x: Floats, s: Floats) -> Measured:
    """The mean squared error of `one` less that of `two`; the noise common to both cancels.

    With f = δ₁ − δ₂ the measurement errs by 2(⟨noise, f⟩ − div s²f), of variance 4E[Σ s²f² + (s²∂f)²].
    """
    f, response = one.value - two.value, one.response - two.response
    value = np.mean((x - one.value) ** 2 - (x - two.value) ** 2 + 2 * response)
    variance = 4 * float(np.sum(s**2 * f**2 + response**2))
    return Measured(float(value), float(np.sqrt(variance)) / x.size)
