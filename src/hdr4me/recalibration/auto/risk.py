"""The error of a rule, measured on the data that it is applied to, and the choice between rules by this error.

For x ~ N(θ, Σ) and a rule δ, E Σ_j (δ_j(x) − θ_j)² = E[Σ_j (x_j − δ_j)² − tr Σ + 2·tr(Σ∇δ)]: Stein's unbiased
estimate. The last term, the response of the rule to the noise, is measured by applying the rule, including its fit, to
x ± tz for a few z with covariance Σ: the coupled bootstrap with antithetic z, in the limit of small t. All rules use
the same z, so the differences between rules are far more precise than the errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard
from scipy.special import ndtr

from hdr4me.recalibration.auto.posterior import normal_density
from hdr4me.recalibration.inputs import Floats, Inputs

Rule = Callable[[Floats], Floats]

# Small in relation to the noise: the measured error is that at 1 + t² = 1.01 times the variance.
_STEP = 0.1
_COORDINATES, _COORDINATES_DEPENDENT = 10, 32
_SEED = 20220
# The expected error is at least this share of that of the model: benchmarks/recalibration_real.py.
_LEAST_OF_MODEL = 0.75
# The allowed cost of a wrong choice, as a share of the error of the base: benchmarks/recalibration_hard.py.
_TOLERANCE = 0.01
# A rule replaces another rule if its gain exceeds this many standard errors: for a full share, for a partial share.
_SWITCH, _SWITCH_PART = 2.5, 1.0


class Measured(NamedTuple):
    """A squared error or a difference of two, its standard error as a measurement, and whether it is a bound."""

    value: float
    standard_error: float
    bound: bool = False

    def times(self, factor: float) -> Measured:
        """The value and its standard error times a factor."""
        return Measured(factor * self.value, factor * self.standard_error, self.bound)


class Probes(NamedTuple):
    """Rows z with mean(weight·z zᵀ) = Σ."""

    z: Floats
    weight: float


class Evaluation(NamedTuple):
    """The result of a rule, and for each dimension (Σ∇δ)_jj: the covariance of the result with the noise."""

    value: Floats
    response: Floats


def probes(s: Floats, *, dependent: bool = False, rank: NDArray[np.int64] | None = None) -> Probes:
    """Directions for independent noise: the coordinates if there are few dimensions, otherwise random signs.

    Signs measure the response of a rule in its own dimension exactly, and the influence of other dimensions averages
    out. A rule that smooths (`dependent`) needs more directions. `rank` is the position of each dimension on its curve.
    """
    d = s.size
    if d <= (_COORDINATES_DEPENDENT if dependent else _COORDINATES):
        return Probes(np.diag(s), float(d))
    number = 1 if d > 5_000 else 8 if dependent and d <= 500 else 2
    return Probes(s * _signs(number, np.arange(d) if rank is None else rank), 1.0)


def _signs(number: int, rank: NDArray[np.int64]) -> Floats:
    """Rows of signs: the mean of z zᵀ is 1 on the diagonal, 0 between neighbors, and has the sum d or nearly d.

    Each of `number` classes of dimensions has a column of a Hadamard matrix, with random signs inside the class.
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


def evaluate(rule: Rule, x: Floats, directions: Probes) -> Evaluation:
    """Apply a rule to x, and to x ± tz for every probe."""
    response = np.zeros_like(x)
    for z in directions.z:
        response += z * (rule(x + _STEP * z) - rule(x - _STEP * z)) / (2 * _STEP)
    return Evaluation(rule(x), response * (directions.weight / len(directions.z)))


def stein_risk(evaluation: Evaluation, x: Floats, s: Floats) -> Measured:
    """The mean squared error of a rule, and the standard error of this measurement.

    Var(estimate − loss) is itself estimated without bias by Σ 4s²(x−δ)² + 4(s²∂δ)² − 2s⁴ (Johnstone 1988).
    """
    v = s**2
    value = float(np.mean((x - evaluation.value) ** 2 - v + 2 * evaluation.response))
    spread = float(np.sum(4 * v * (x - evaluation.value) ** 2 + 4 * evaluation.response**2 - 2 * v**2))
    # The estimate of the variance can be negative; rules near the data have 2Σs⁴.
    return Measured(value, float(np.sqrt(max(spread, 0.5 * float(np.sum(v**2))))) / x.size)


def difference(one: Evaluation, two: Evaluation, x: Floats, s: Floats) -> Measured:
    """The mean squared error of `one` less that of `two`; the noise common to both cancels.

    With f = δ₁ − δ₂ the measurement errs by 2(⟨noise, f⟩ − div s²f), of variance 4E[Σ s²f² + (s²∂f)²].
    """
    f, response = one.value - two.value, one.response - two.response
    value = np.mean((x - one.value) ** 2 - (x - two.value) ** 2 + 2 * response)
    variance = 4 * float(np.sum(s**2 * f**2 + response**2))
    return Measured(float(value), float(np.sqrt(variance)) / x.size)


def error_after(evaluation: Evaluation, part: Inputs, model: float | None, optimism: float) -> Measured:
    """The mean squared error of a result, measured on the data.

    The error M under a model is correct if its prior is. Stein's estimate S is correct for any means and has a standard
    error. They are combined as M + D·D²/(D² + se²) with D = S − M, and at least three quarters of M, because S is too
    small for means of few skewed answers. Where the noise far exceeds the domain, the result is an upper bound.
    """
    found = stein_risk(evaluation, part.calibrated, part.calibrated_errors)
    # The largest possible error for a true mean in the domain.
    farthest = np.maximum(np.abs(evaluation.value - part.low), np.abs(evaluation.value - part.high))
    most = float(np.mean(farthest**2))
    if found.standard_error > 0.5 * (0.5 * (part.high - part.low)) ** 2:
        return Measured(most, most, bound=True)
    value = max(found.value + optimism, 0.0)
    if model is not None:
        gap = value - model
        total = gap**2 + found.standard_error**2
        value = max(model + (gap**3 / total if total > 0 else 0.0), _LEAST_OF_MODEL * model)
    return Measured(min(value, most), min(found.standard_error, most))


Problem = tuple[Floats, float, float]  # The standard errors that rules use, and the ends of the domain.


class Choice(NamedTuple):
    """The chosen rule, its share in the result (the rest is the base), the result, and `_optimism`."""

    used: str
    share: float
    evaluation: Evaluation
    optimism: float = 0.0


def choose(
    rules: Mapping[str, Rule],
    base: Evaluation,
    x: Floats,
    s: Floats,
    measure: Callable[[Rule], Evaluation],
    problem: Problem | None = None,
    margins: Mapping[str, float] | None = None,
) -> Choice:
    """The best rule whose error is significantly not larger than that of the base, and its share; otherwise "base".

    The error of base + w·(rule − base) is quadratic in w, so from the measured difference D and the mean square Q of
    rule − base, the largest w at which D's upper confidence bound is not positive is 1 − (D + z·se)/Q, at most 1.
    """
    best = Choice("base", 0.0, base)
    for name, rule in rules.items():
        found = measure(rule)
        # A gain over the base must exceed this many standard errors. It is larger for few dimensions, which determine
        # neither the difference nor its standard error well (benchmarks/recalibration_hard.py).
        margin = (margins or {}).get(name, 1.5 * (1 + 10 / x.size))
        share = _share(found, base, x, s, problem, margin)
        if share <= 0:
            continue
        mixed = found
        if share < 1.0:
            mixed = Evaluation(*(b + share * (f - b) for f, b in zip(found, base, strict=True)))
        if best.used != "base":
            gap = difference(mixed, best.evaluation, x, s)
            # A gain above the largest possible error is noise.
            most = np.inf if problem is None else (0.5 * (problem[2] - problem[1])) ** 2
            clearly = _SWITCH if best.share == 1.0 else _SWITCH_PART
            if gap.value + clearly * gap.standard_error >= 0 or gap.value < -most:
                continue
        best = Choice(name, share, mixed, _optimism(difference(mixed, base, x, s), margin))
    return best


def _optimism(gap: Measured, margin: float) -> float:
    """The average excess of a gain that exceeded its margin; at most the gain.

    A gain G that exceeded z standard errors is too large by se·φ(u)/Φ(u) with u = G/se − z.
    """
    if gap.value >= 0 or gap.standard_error == 0:
        return 0.0
    above = -gap.value / gap.standard_error - margin
    mills = float(normal_density(np.asarray(above))) / max(float(ndtr(above)), 1e-12)
    return min(gap.standard_error * mills, -gap.value)


def _share(
    found: Evaluation, base: Evaluation, x: Floats, s: Floats, problem: Problem | None, margin: float
) -> float:
    Q = float(np.mean((found.value - base.value) ** 2))
    if Q <= 0:
        return 0.0
    gap = difference(found, base, x, s)
    noise = float(np.mean(s**2))
    allowed = _TOLERANCE * min(max(stein_risk(base, x, s).value, 0.0), noise)
    # A result at distance √Q from a base whose error is at most the noise gains at most 2√(Q·noise) − Q.
    upper = max(gap.value, Q - 2 * np.sqrt(Q * noise)) + margin * gap.standard_error
    if upper > allowed and problem is not None:
        upper = min(upper, _largest_difference(found, *problem))
    return float(np.clip(1 - (upper - allowed) / Q, 0.0, 1.0))


def _largest_difference(evaluation: Evaluation, s: Floats, low: float, high: float) -> float:
    """The largest error of the rule above that of clipping, over true means in the domain.

    The error of a rule with a small response is at most (δ_j − θ)² plus the variance of its result. The error of
    clipping is a known function of θ.
    """
    levels, place = np.unique(np.round(np.log(s), 2), return_inverse=True)
    θ = np.linspace(low, high, 21)
    clipping = clip_risk(θ, np.exp(levels)[:, None], low, high)
    variance = (evaluation.response / s) ** 2
    worst = np.full(s.size, -np.inf)
    for i, t in enumerate(θ.tolist()):
        np.maximum(worst, (evaluation.value - t) ** 2 + variance - clipping[place, i], out=worst)
    return float(worst.mean())


def clip_risk(θ: Floats, s: Floats, low: float, high: float) -> Floats:
    """E(clip(x) − θ)² for x ~ N(θ, s²), exactly."""
    a, b = (low - θ) / s, (high - θ) / s
    inside = ndtr(b) - ndtr(a) - b * normal_density(b) + a * normal_density(a)
    return np.asarray(s**2 * (inside + a**2 * ndtr(a) + b**2 * ndtr(-b)))
