"""Tables designed for a prior: for one number (`optimal_mean`), an optional number, and a pair of numbers.

All three solve one linear program and are rounded to integers. They are unbiased for every value; the prior determines
only for which values the variance is small. Inputs and reports are points x and y of R^k. The program finds the ε-LDP
channel with Σ_y P(y|x)·y = x of least Σ_x π(x)·Σ_y P(y|x)·c(y), c(y) = Σ_j w_j·y_j². With L(y) = e^ε·min_x P(y|x) it
reads

    P(y|x) = e^-ε·L(y) + (1 − e^-ε)·H(y|x),   0 ≤ H(y|x) ≤ L(y),   Σ_y P(y|x) = 1,   Σ_y P(y|x)·y = x.

A solution may be averaged over the signed permutations that preserve inputs, prior and cost, so that one input of each
orbit is sufficient. With the multipliers μ (mass) and ν (mean), an output y lowers the cost if and only if
F(y) = Σ_x min(c_x(y), e^ε·c_x(y)) < 0 with c_x(y) = π(x)·c(y) − ν_x·y − μ_x. The program starts with a coarse grid of
outputs and adds the negative local minima of F until the cost no longer falls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hdr4me.channels import Input
from hdr4me.channels import Table as TableChannel
from hdr4me.channels.proof import check_epsilon
from hdr4me.channels.response import probabilities
from hdr4me.channels.table.channel import MAX_CELLS
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.cache import cached_design
from hdr4me.mechanisms.law import Floats
from hdr4me.mechanisms.optimal import DUCHI_UP_TO
from hdr4me.mechanisms.priors import Prior, as_prior
from hdr4me.mechanisms.program import minimize
from hdr4me.mechanisms.table import Integers, TableMechanism, duchi_table, unbiased_rows, window_table

# The budgets of joint designs; larger budgets use the design of the largest.
JOINT_FROM, JOINT_UP_TO = 0.05, 10.0
_UNBIASED = 1e-12  # the largest bias of a row, relative to the largest decoded value
_ROUNDS = 12
_UNUSED = 1e-9  # outputs with less than this share of the light mass are dropped


def optional_number(
    epsilon: float, *, prior: Any = "uniform", present: float = 0.9, presence_weight: float = 0.3
) -> TableChannel:
    """One report for a number that may be missing: its value and whether it is present, under the full ε.

    The mean among users with a number is Σ value / Σ present over the reports. With R this mean, its variance is
    Var(value − R·present)/(n·present²) (delta method).
    """
    budget = _budget(epsilon)
    if not 0 < present < 1:
        raise InvalidInput.of("present", present, "a share between 0 and 1")
    if not (math.isfinite(presence_weight) and presence_weight > 0):
        raise InvalidInput.of("presence_weight", presence_weight, "a finite number > 0")
    law = as_prior(prior)
    n_levels = 9 if budget <= 2.0 else 17 if budget <= 4.0 else 33

    def make() -> TableChannel:
        levels = np.linspace(-1.0, 1.0, n_levels)
        inputs = np.concatenate([np.stack([levels, np.ones(n_levels)], axis=1), np.zeros((1, 2))])
        shares = np.append(present * law.on_levels(n_levels), 1 - present)
        question = Question(inputs, shares, np.array([1.0, presence_weight]))
        reach = optional_reach(budget)
        rows = solve(budget, question, np.array([reach, reach + 0.5]), coarse=15, fine=161)
        accepted = (Input("optional", n_levels + 1),)
        return _channel("optional", budget, accepted, *_rounded(budget, rows, question))

    key = {"takes": "optional", "epsilon": budget.hex(), "prior": law.key, "present": present}
    return cached_design({**key, "presence_weight": presence_weight}, make)


def optional_reach(epsilon: float) -> float:
    """A bound of the absolute decoded value of an optional number under the budget of a design."""
    budget = min(max(epsilon, JOINT_FROM), JOINT_UP_TO)
    return 1.6 * (math.exp(budget) + 2) / math.expm1(budget)


def number_pair(epsilon: float, *, first: Any = "uniform", second: Any = "uniform") -> TableChannel:
    """One report for two numbers, both unbiased, under the full ε."""
    budget = _budget(epsilon)
    laws = as_prior(first), as_prior(second)

    def question(n_levels: int) -> Question:
        levels = np.linspace(-1.0, 1.0, n_levels)
        inputs = np.stack([np.repeat(levels, n_levels), np.tile(levels, n_levels)], axis=1)
        return Question(inputs, np.outer(*(law.on_levels(n_levels) for law in laws)).ravel(), np.ones(2))

    # Two numbers with the same symmetric prior have all eight symmetries of the square.
    even = len(question(5).symmetries()) == 8
    settled = 1e-4 if even else 2e-3

    def make() -> TableChannel:
        # Randomized response among the four corners has outputs ±corner; sparse outputs are larger at small budgets.
        corner = (math.exp(budget) + 3) / math.expm1(budget)
        reach = np.full(2, (2.6 if budget < 2.8 else 1.7) * corner)
        most = 5 if budget <= 1.5 else 7 if budget <= (2.5 if even else 4.5) else 9
        for n_levels in range(most, 2, -2):
            candidate = question(n_levels)
            rows = solve(budget, candidate, reach, coarse=13, fine=161, settled=settled)
            if rows.shape[1] <= MAX_CELLS:
                accepted = (Input("number", n_levels),) * 2
                return _channel("pair", budget, accepted, *_rounded(budget, rows, candidate))
        raise ArithmeticError(f"no pair design at epsilon = {budget} has at most {MAX_CELLS} cells")

    key = {"takes": "pair", "epsilon": budget.hex(), "first": laws[0].key, "second": laws[1].key}
    return cached_design(key if even else {**key, "settled": settled}, make)


def second_moments(design: TableChannel) -> list[Floats]:
    """E[decoder²] of each row, for every decoder of a joint design."""
    rows = probabilities(design.weights)
    return [np.asarray(rows @ np.array(design.decoders[name]) ** 2) for name in design.targets]


def _budget(epsilon: float) -> float:
    """ε, limited to the largest budget of a joint design; a budget below the smallest is an error."""
    check_epsilon(epsilon)
    if epsilon < JOINT_FROM:
        raise InvalidInput.of("epsilon", epsilon, f"joint designs need at least {JOINT_FROM} for one report")
    return float(min(epsilon, JOINT_UP_TO))


def optimal_mean(epsilon: float, prior: Any = "uniform") -> TableMechanism:
    """The table of least E V(t) with t drawn from `prior`, among those that are ε-LDP and unbiased for every value."""
    check_epsilon(epsilon)
    law = as_prior(prior)
    if epsilon <= DUCHI_UP_TO:
        return duchi_table("optimal_mean", epsilon)
    if epsilon > JOINT_UP_TO:  # 256 cells limit the variance here, and not privacy
        windows = [window_table("optimal_mean", epsilon, 256, width) for width in (1, 2, 3, 4, 6, 8)]
        return min(windows, key=lambda table: prior_variance(table, law))
    budget = float(epsilon)
    key = {"takes": "number", "epsilon": budget.hex(), "prior": law.key}
    made = cached_design(key, lambda: _mean_design(budget, law))
    levels = np.linspace(-1.0, 1.0, made.inputs[0].n_levels)
    decode, weights = np.array(made.decoders["value"]), np.array(made.weights, np.int64)
    return TableMechanism("optimal_mean", budget, levels, decode, weights)


def prior_variance(table: TableMechanism, prior: Any) -> float:
    """E V(t) of a table's report, t drawn from the prior, with the random rounding to a level."""
    law = as_prior(prior)
    second = table.probabilities @ table.decode**2
    return float(law.on_levels(table.n_levels) @ second) - law.mean_square


def _mean_design(epsilon: float, prior: Prior) -> TableChannel:
    """The design with the most levels that is unbiased: it needs at least as many cells as levels."""
    n_levels = 17 if epsilon <= 1.5 else 33 if epsilon <= 3.0 else 65
    # The largest report of a good unbiased channel is below 2C, where C is Duchi's bound.
    reach = np.array([2.0 / math.tanh(epsilon / 2)])
    while True:
        levels = np.linspace(-1.0, 1.0, n_levels)
        question = Question(levels[:, None], prior.on_levels(n_levels), np.ones(1))
        rows = solve(epsilon, question, reach, coarse=41, fine=801)
        weights, decoders = _rounded(epsilon, rows, question)
        miss = np.abs(probabilities(weights) @ decoders - question.inputs).max()
        if rows.shape[1] <= MAX_CELLS and miss < _UNBIASED * max(1.0, np.abs(decoders).max()):
            break
        n_levels = (n_levels + 1) // 2
    return _channel("number", epsilon, (Input("number", n_levels),), weights, decoders)


def _rounded(epsilon: float, rows: Floats, question: Question) -> tuple[Integers, Floats]:
    """Integer rows and the decoders of least mean square over the prior."""
    start = np.zeros((rows.shape[1], question.inputs.shape[1]))
    return unbiased_rows(rows, epsilon, question.inputs, start, question.prior)


def _channel(
    name: str, epsilon: float, inputs: tuple[Input, ...], weights: Integers, decoders: Floats
) -> TableChannel:
    second = "present" if name == "optional" else "value 2"
    columns = dict(zip(("value", second), map(tuple, decoders.T.tolist()), strict=False))
    return TableChannel(name, epsilon, columns, tuple(map(tuple, weights.tolist())), inputs)


# -- the linear program -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Question:
    """The data of the linear program."""

    inputs: Floats  # one row per input, one column per number
    prior: Floats  # the share of each input
    cost: Floats  # the weight of each number's second moment

    def symmetries(self) -> Floats:
        """The signed permutation matrices that preserve inputs, prior and cost; the first is the identity."""
        k = self.inputs.shape[1]
        own = _places(self.inputs)
        found = []
        for order in permutations(range(k)):
            for signs in product((1.0, -1.0), repeat=k):
                g = np.diag(signs)[:, order]
                moved = [own.get(tuple(key), -1) for key in _key(self.inputs @ g.T).tolist()]
                if min(moved) < 0 or not np.allclose(self.cost[list(order)], self.cost):
                    continue
                if np.allclose(self.prior[moved], self.prior, rtol=0, atol=1e-12):
                    found.append(g)
        return np.array(found)


class _Solution(NamedTuple):
    """One solution: L, P, its cost, and the multipliers of every input."""

    outputs: Floats
    light: Floats
    rows: Floats
    cost: float
    mu: Floats
    nu: Floats

    def used(self) -> NDArray[np.bool_]:
        return np.asarray(self.light > _UNUSED * self.light.sum())


def solve(
    epsilon: float, question: Question, reach: Floats, coarse: int, fine: int, settled: float = 1e-4
) -> Floats:
    """P(y|x) of the channel of least cost."""
    group = question.symmetries()
    center = (question.inputs.max(axis=0) + question.inputs.min(axis=0)) / 2

    def grid(points: int) -> Floats:
        axes = np.linspace(center - reach, center + reach, points, axis=1)
        return np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)

    look = grid(fine)
    found = _linear_program(epsilon, question, group, _closure(grid(coarse), group))
    for _ in range(_ROUNDS):
        missing = _valleys(epsilon, question, found, look, (fine,) * len(reach))
        if missing.size == 0:
            break
        last, used = found.cost, found.outputs[found.used()]
        found = _linear_program(epsilon, question, group, _closure(np.concatenate([used, missing]), group))
        if last - found.cost < settled * last:
            break
    rows = found.rows[:, found.used()]
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _key(points: Floats) -> NDArray[np.int64]:
    """Points as integers, so that equal images are recognized."""
    return np.rint(points * 1e7).astype(np.int64)


def _places(points: Floats) -> dict[tuple[int, ...], int]:
    return {tuple(key): i for i, key in enumerate(_key(points).tolist())}


def _closure(points: Floats, group: Floats) -> Floats:
    """The distinct points and images of points."""
    images = np.concatenate([points @ g.T for g in group])
    _, index = np.unique(_key(images), axis=0, return_index=True)
    return np.asarray(images[np.sort(index)] + 0.0)


def _orbits(points: Floats, group: Floats) -> NDArray[np.int64]:
    """The index of each point's orbit."""
    images = np.concatenate([_key(points @ g.T) for g in group])
    _, label = np.unique(images, axis=0, return_inverse=True)
    least = label.reshape(len(group), len(points)).min(axis=0)
    return np.unique(least, return_inverse=True)[1]


def _linear_program(epsilon: float, question: Question, group: Floats, outputs: Floats) -> _Solution:
    """The solution for these outputs: one equation of mass and k of mean for one input of each orbit."""
    inputs = question.inputs
    orbit, family = _orbits(outputs, group), _orbits(inputs, group)
    first = np.unique(family, return_index=True)[1]
    weight = np.bincount(family, weights=question.prior)
    n_light, n_heavy = int(orbit.max()) + 1, len(first) * len(outputs)
    light, share = math.exp(-epsilon), -math.expm1(-epsilon)

    def equation(coefficient: Floats) -> list[Any]:
        common = np.bincount(orbit, weights=coefficient) * light
        heavy = sparse.kron(sparse.eye_array(len(first)), coefficient[None, :] * share)
        return [sparse.csr_array(np.tile(common, (len(first), 1))), heavy]

    cost = outputs**2 @ question.cost
    where = np.arange(n_heavy), np.tile(orbit, len(first))
    below = sparse.csr_array((-np.ones(n_heavy), where), shape=(n_heavy, n_light))
    equations = [equation(y) for y in (np.ones(len(outputs)), *outputs.T)]
    result = minimize(
        epsilon,
        np.concatenate([np.bincount(orbit, weights=cost) * light, np.outer(weight, cost * share).ravel()]),
        A_ub=sparse.hstack([below, sparse.eye_array(n_heavy)], format="csr"),
        b_ub=np.zeros(n_heavy),
        A_eq=sparse.block_array(equations, format="csr"),
        b_eq=np.concatenate([np.ones(len(first)), *inputs[first].T]),
    )
    spread = np.maximum(result.x[:n_light], 0.0)[orbit]
    heavy = np.clip(result.x[n_light:].reshape(len(first), len(outputs)), 0.0, spread)
    mu, *nu = result.eqlin.marginals.reshape(-1, len(first))
    size = np.bincount(family)[family]
    # H and ν of every input: the mean over the group elements that map its orbit's first input to it.
    slope = np.stack(nu, axis=1)
    home, cell = _places(inputs), _places(outputs)
    rows, slopes, hits = np.zeros((len(inputs), len(outputs))), np.zeros(inputs.shape), np.zeros(len(inputs))
    for g in group:
        to = [home[tuple(key)] for key in _key(inputs[first] @ g.T).tolist()]
        moved = [cell[tuple(key)] for key in _key(outputs @ g.T).tolist()]
        for number, row in enumerate(to):
            rows[row, moved] += heavy[number]
            slopes[row] += g @ slope[number]
            hits[row] += 1
    channel = light * spread + share * (rows / hits[:, None])
    slopes = slopes / hits[:, None] / size[:, None]
    return _Solution(outputs, spread, channel, float(result.fun), mu[family] / size, slopes)


def _valleys(
    epsilon: float, question: Question, found: _Solution, points: Floats, shape: tuple[int, ...]
) -> Floats:
    """The negative local minima of F on the grid, at most a hundred, deepest first."""
    square = points**2 @ question.cost
    value = np.zeros(len(points))
    for share, nu, mu in zip(question.prior, found.nu, found.mu, strict=True):
        c = share * square - points @ nu - mu
        value += np.minimum(c * math.exp(-epsilon), c)
    grid = value.reshape(shape)
    padded = np.pad(grid, 1, constant_values=np.inf)
    low = np.ones(shape, dtype=np.bool_)
    for step in product((0, 1, 2), repeat=len(shape)):
        low &= grid <= padded[tuple(slice(s, s + n) for s, n in zip(step, shape, strict=True))]
    pick = np.flatnonzero(low.ravel() & (value < -1e-9))
    return np.asarray(points[pick[np.argsort(value[pick])][:100]])
