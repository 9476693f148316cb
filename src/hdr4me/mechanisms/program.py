"""The linear program behind `optimal`, and the bound that its dual proves.

It minimizes v, the largest variance (or the mean variance, for t uniform on [-1, 1]), over the ε-LDP channels
P(y|t) = l(y) + (e^ε − 1)·h(y|t), 0 ≤ h ≤ l, with l symmetric and h(y|t) = h(−y|−t), under

    Σ_y h(y|t) = w,  Σ_y l(y) + (e^ε − 1)·w = 1,  (e^ε − 1)·Σ_y y·h(y|t) = t,  Σ_y y²·P(y|t) − t² ≤ v.

All lengths are in units of Duchi's C = coth(ε/2), which keeps small budgets well-conditioned. The dual needs no grid
of outputs. With multipliers μ (mass), ν (mean), π ≥ 0 (variance, Σπ = 1) on levels t_i, let
c_i(y) = π_i·y² − ν_i·y − μ_i. If F(y) = Σ_i min(c_i(y), e^ε·c_i(y)) ≥ 0 for every real y, then
Σ_i P(y|t_i)·c_i(y) ≥ l(y)·F(y) ≥ 0 for every ε-LDP unbiased mechanism; summed over y, max_i Var(t_i) ≥
Σ_i (μ_i + ν_i·t_i − π_i·t_i²). F is a parabola between the roots of the c_i, so its minimum is found exactly, and
lowering every μ_i by the same δ repairs a violation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from hdr4me.mechanisms.law import Floats

Objective = Literal["max", "mean"]

_FIRST_TOP = 1.4  # the largest output of an optimal mechanism is below 1.3 C at every budget
_FURTHEST = 4.0  # the largest output in the dual; F increases beyond it


class Dual(NamedTuple):
    """Multipliers of mass, mean and variance at `levels` (both signs, increasing)."""

    levels: Floats
    mu: Floats
    nu: Floats
    pi: Floats


class Measure(NamedTuple):
    """The light mass l: `mass` at `outputs` (both signs, increasing, symmetric)."""

    outputs: Floats
    mass: Floats


def minimize(epsilon: float, cost: Floats, **constraints: Any) -> Any:
    """The solution of a linear program by SciPy, whose type stubs do not include sparse matrices."""
    tolerances = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
    solver: Any = linprog
    found = solver(cost, **constraints, method="highs-ipm", options=tolerances)
    if found.status != 0:
        raise ArithmeticError(f"the linear program at epsilon = {epsilon} was not solved: {found.message}")
    return found


def solve(
    epsilon: float,
    levels: Floats,
    outputs: Floats,
    prior: Floats | None = None,
    allowed: NDArray[np.bool_] | None = None,
) -> tuple[Measure, Dual]:
    """The optimum for non-negative `levels` (first 0) and positive `outputs`, both mirrored, in units of C.

    Without `prior` the largest variance over the levels is minimized, with it the second moment averaged with these
    weights (of t and −t together). For inputs uniform on [-1, 1] each level represents the group of inputs around it:
    the average of a mechanism over a group is ε-LDP with the group's center as its mean, so that the program over the
    centers bounds every mechanism. t = 1 has weight 0, because it only has to be reached.
    `allowed[i, y]` (columns: mirrored outputs with 0 in the middle) is true where h may be positive.
    """
    n_half, n_side = levels.size, outputs.size
    both = _mirrored(outputs)
    fold = np.abs(np.arange(both.size) - n_side)  # which l an output uses
    if allowed is None:
        allowed = np.ones((n_half, both.size), dtype=np.bool_)
    row, column = np.nonzero(allowed)
    n_light, n_heavy = n_side + 1, row.size
    share, light = -math.expm1(-epsilon), math.exp(-epsilon)  # l and h are counted in units of e^-ε
    place = np.arange(n_heavy)

    def heavy(coefficient: Floats) -> Any:
        return sparse.csr_array((coefficient[column], (row, place)), shape=(n_half, n_heavy))

    def light_rows(coefficient: Floats, n_rows: int) -> Any:
        return np.tile(np.bincount(fold, weights=coefficient, minlength=n_light) * light, (n_rows, 1))

    # columns: l, h, w, v
    ones = np.ones((n_half, 1))
    mass = [None, heavy(np.ones(both.size)), -ones, np.zeros((n_half, 1))]
    mean = [None, heavy(both)[1:], None, None]  # at t = 0 the mirror image makes the mean 0
    unit = [light_rows(np.ones(both.size), 1), None, np.array([[share]]), None]
    second = [light_rows(both**2, n_half), heavy(both**2 * share), None, -ones]
    below_light = sparse.csr_array((-np.ones(n_heavy), (place, fold[column])), shape=(n_heavy, n_light))
    caps = [below_light, sparse.eye_array(n_heavy), np.zeros((n_heavy, 1)), np.zeros((n_heavy, 1))]
    if prior is None:
        cost = np.concatenate([np.zeros(n_light + n_heavy + 1), [1.0]])
        blocks, limit = [second, caps], np.concatenate([levels**2, np.zeros(n_heavy)])
    else:
        cost = np.concatenate([prior @ second[0], prior @ second[1], [0.0, 0.0]])
        blocks, limit = [caps], np.zeros(n_heavy)
    found = minimize(
        epsilon,
        cost,
        A_ub=sparse.block_array(blocks, format="csr"),
        b_ub=limit,
        A_eq=sparse.block_array([mass, mean, unit], format="csr"),
        b_eq=np.concatenate([np.zeros(n_half), levels[1:] / share, [1.0]]),
    )
    marginals = found.eqlin.marginals
    mu = marginals[:n_half] / share
    nu = np.concatenate([[0.0], marginals[n_half : 2 * n_half - 1]]) / share
    pi = np.maximum(-found.ineqlin.marginals[:n_half], 0.0) if prior is None else prior
    pi = pi / pi.sum()
    spread = np.maximum(found.x[:n_light], 0.0) * light
    all_levels = np.concatenate([-levels[:0:-1], levels])
    dual = Dual(all_levels, unfolded(mu, 1.0), unfolded(nu, -1.0), unfolded(pi, 1.0))
    return Measure(both, np.concatenate([spread[:0:-1], spread])), dual


def unfolded(half: Floats, sign: float) -> Floats:
    """Multipliers of the folded program, shared equally between t and −t; the one at 0 is not split."""
    return np.concatenate([sign * half[:0:-1] / 2, half[:1], half[1:] / 2])


def worst_outputs(dual: Dual, epsilon: float) -> tuple[Floats, Floats]:
    """The minimum of F on each interval between roots of the c_i: (outputs, values), in increasing order."""
    _, mu, nu, pi = dual
    inner = nu * nu + 4 * pi * mu
    real = (pi > 0) & (inner > 0)
    # The root of larger absolute value first, and the other one from their product, without cancellation.
    large = (nu[real] + np.copysign(np.sqrt(inner[real]), nu[real])) / 2
    flat = (pi == 0) & (nu != 0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        roots = np.concatenate([large / pi[real], -mu[real] / large, -mu[flat] / nu[flat], [0.0]])
    roots = np.unique(roots[np.isfinite(roots)])
    edges = np.concatenate([[roots[0] - 100.0], roots, [roots[-1] + 100.0]])
    middle = (edges[:-1] + edges[1:])[:, None] / 2
    # min(c, e^ε·c) is computed in units of e^ε, which may be large.
    scale = np.where(pi * middle**2 - nu * middle - mu < 0, 1.0, math.exp(-epsilon))
    a, b, c = scale @ pi, scale @ nu, scale @ mu
    low, high = edges[:-1].copy(), edges[1:].copy()
    low[0], high[-1] = -np.inf, np.inf
    y = np.clip(b / (2 * np.maximum(a, 1e-300)), low, high)
    return y, (a * y - b) * y - c


def certified(dual: Dual, epsilon: float, mean_square: float | None = None) -> float:
    """A lower bound, in units of C², of the variance of every ε-LDP mechanism with an unbiased report.

    Every μ_i is lowered by the least δ that bisection finds sufficient for F ≥ 0. `mean_square` is that of the inputs
    if the levels represent groups of them (see `solve`). The last factor covers rounding errors of this function.
    """
    # A bound of the rounding error of a sum of products, for outputs of the relevant size.
    slack = 1e-14 * float(np.abs(dual.mu).sum() + np.abs(dual.nu).sum() + dual.pi.sum())

    def proven(delta: float) -> bool:
        return bool(worst_outputs(dual._replace(mu=dual.mu - delta), epsilon)[1].min() >= slack)

    low, high = 0.0, 1e-9
    while not proven(high):
        low, high = high, 4 * high
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if proven(middle) else (middle, high)
    square = float(dual.pi @ dual.levels**2) if mean_square is None else mean_square
    value = float(dual.mu.sum() + dual.nu @ dual.levels) - square
    return (value - high * dual.mu.size) * (1 - 1e-9)


def window_starts(measure: Measure, epsilon: float, levels: Floats) -> tuple[Floats, float]:
    """The start of each level's heavy window, in cumulative light mass, and the common width of the windows.

    Given l, the row of least second moment is P = e^ε·l exactly where y² − νy − μ < 0, which is an interval: a heavy
    window of constant light mass that slides with t. Its mean is piecewise linear in its start.
    """
    total = measure.mass.sum()
    growth = math.expm1(epsilon)
    width = (1 - total) / growth
    cumulative = np.concatenate([[0.0], np.cumsum(measure.mass)])
    moment = np.concatenate([[0.0], np.cumsum(measure.mass * measure.outputs)])
    starts = np.unique(np.clip(np.concatenate([cumulative, cumulative - width]), 0.0, total - width))
    means = growth * (np.interp(starts + width, cumulative, moment) - np.interp(starts, cumulative, moment))
    return np.interp(levels, means + moment[-1], starts), float(width)


def window_rows(measure: Measure, epsilon: float, levels: Floats) -> Floats:
    """For each level the row of least variance above the light mass: the optimum in closed form."""
    start, width = window_starts(measure, epsilon, levels)
    cumulative = np.concatenate([[0.0], np.cumsum(measure.mass)])
    first, last = start[:, None], start[:, None] + width
    inside = np.minimum(last, cumulative[1:]) - np.maximum(first, cumulative[:-1])
    return np.asarray(measure.mass + math.expm1(epsilon) * np.clip(inside, 0.0, measure.mass))


@dataclass
class Search:
    """The state of a search: the best light mass and the best bound so far, in units of C and C²."""

    epsilon: float
    objective: Objective
    bound: float = -math.inf
    measure: Measure | None = None
    proof: Floats | None = None  # the multipliers behind `bound`: levels, μ, ν and π as rows

    @property
    def unit(self) -> float:
        """C = coth(ε/2)."""
        return 1 / math.tanh(self.epsilon / 2)

    def run(self, n_levels: int, n_outputs: int, rounds: int) -> None:
        """Solve with this many levels and outputs, `rounds` times, each time adding the missing outputs."""
        levels, prior, mean_square = self.inputs(n_levels)
        outputs, step = self._outputs(n_outputs)
        coarse, dual = self.measure, None
        for _ in range(rounds):
            allowed = None
            if coarse is not None:
                allowed = _near_windows(coarse, self.epsilon, levels, outputs, step)
                if dual is not None:  # also the cells that the last dual would make heavy
                    mu, nu, pi = (x[-levels.size :, None] for x in dual[1:])
                    y = _mirrored(outputs)
                    allowed |= pi * y**2 - nu * y - mu < 0
            self.measure, dual = solve(self.epsilon, levels, outputs, prior, allowed)
            bound = certified(dual, self.epsilon, mean_square)
            if bound > self.bound:
                self.bound, self.proof = bound, np.stack(dual)
            outputs = np.union1d(outputs, _missed(dual, self.epsilon))

    def inputs(self, n: int) -> tuple[Floats, Floats | None, float | None]:
        """Non-negative levels, their weights and the inputs' mean square, the last two for "mean" only."""
        half = np.arange((n + 1) // 2)
        if self.objective == "max":
            return half / (half.size - 1) / self.unit, None, None
        prior = np.full(half.size + 1, 2.0 / n)
        prior[0], prior[-1] = 1.0 / n, 0.0
        return np.append(2.0 * half / n, 1.0) / self.unit, prior, 1 / (3 * self.unit**2)

    def _outputs(self, n: int) -> tuple[Floats, float]:
        """An even grid over the outputs in use, these outputs, and a tail of increasing steps for the dual."""
        top, used = _FIRST_TOP, np.zeros(0)
        if self.measure is not None:
            used = self.measure.outputs[self.measure.mass > 1e-7 * self.measure.mass.sum()]
            used = used[used > 0]
            top = 1.02 * float(used.max())
        step = top / n
        tail = top + step * np.cumsum(1.25 ** np.arange(1, 40))
        return np.unique(np.concatenate([step * np.arange(1, n + 1), tail[tail < _FURTHEST], used])), step


def _mirrored(outputs: Floats) -> Floats:
    return np.concatenate([-outputs[::-1], [0.0], outputs])


def _near_windows(
    coarse: Measure, epsilon: float, levels: Floats, outputs: Floats, step: float
) -> NDArray[np.bool_]:
    """Whether each output is in or near the heavy window of each level in the coarser solution."""
    heavy = window_rows(coarse, epsilon, levels) > coarse.mass * (1 + 1e-6 * math.expm1(epsilon))
    heavy &= coarse.mass > 1e-9 * coarse.mass.sum()
    low = np.where(heavy, coarse.outputs, np.inf).min(axis=1)
    high = np.where(heavy, coarse.outputs, -np.inf).max(axis=1)
    margin = 0.25 * (high - low) + 2 * step
    y = _mirrored(outputs)
    return np.asarray((y >= (low - margin)[:, None]) & (y <= (high + margin)[:, None]))


def _missed(dual: Dual, epsilon: float) -> Floats:
    """Positive outputs at which the dual is violated, one for each valley of F."""
    y, value = worst_outputs(dual, epsilon)
    around = np.concatenate([[np.inf], value, [np.inf]])
    valley = (value <= around[:-2]) & (value <= around[2:]) & (value < -1e-12) & (y > 1e-9)
    return y[valley]
