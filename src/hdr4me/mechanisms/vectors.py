"""The linear programme of `optimal` for any prior, and for reports that answer several numbers at once.

Inputs are points x of R^k (one number; a pair of numbers; a value and whether there is one), a report is a point y of
R^k, and the channel P(y|x) is unbiased: Σ_y P(y|x)·y = x. Among all ε-LDP channels the programme finds, on a finite set
of outputs, the one of least Σ_x π(x)·Σ_y P(y|x)·c(y) with c(y) = Σ_j w_j·y_j² and a prior π. With
L(y) = e^ε·min_x P(y|x) it reads

    P(y|x) = e^-ε·L(y) + (1 − e^-ε)·H(y|x),   0 ≤ H(y|x) ≤ L(y),   Σ_y P(y|x) = 1,   Σ_y P(y|x)·y = x.

Signed permutations of the coordinates that leave inputs, prior and cost alone may be taken to leave L and H alone too
(the average of a solution over such a group is a solution): then one input of each orbit is enough.

The multipliers μ (mass) and ν (mean) tell which outputs are missing: an output y lowers the cost if and only if
F(y) = Σ_x min(c_x(y), e^ε·c_x(y)) < 0 with c_x(y) = π(x)·c(y) − ν_x·y − μ_x. So the programme starts with a coarse
grid of outputs and adds the local minima of F that are negative, until the cost no longer falls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from hdr4me.mechanisms.law import Floats

_minimise: Any = linprog  # its stubs know no sparse matrices
_ROUNDS = 12
_SETTLED = 1e-4
_UNUSED = 1e-9  # outputs with less than this share of the light mass are left out


@dataclass(frozen=True, eq=False)
class Question:
    """What the programme is asked.

    `inputs` has one row per input and one column per number, `prior` holds their shares, `cost` the weight of each
    number's second moment.
    """

    inputs: Floats
    prior: Floats
    cost: Floats

    def symmetries(self) -> Floats:
        """The signed permutation matrices that leave inputs, prior and cost alone; the identity is the first."""
        k = self.inputs.shape[1]
        home = _places(self.inputs)
        found = []
        for order in permutations(range(k)):
            for signs in product((1.0, -1.0), repeat=k):
                g = np.diag(signs)[:, order]
                moved = [home.get(tuple(key), -1) for key in _key(self.inputs @ g.T).tolist()]
                if min(moved) < 0 or not np.allclose(self.cost[list(order)], self.cost):
                    continue
                if np.allclose(self.prior[moved], self.prior, rtol=0, atol=1e-12):
                    found.append(g)
        return np.array(found)


@dataclass(frozen=True, eq=False)
class Channel:
    """Real probabilities `rows[x, y]` and the points `outputs[y]` that the cells stand for."""

    rows: Floats
    outputs: Floats


@dataclass(frozen=True, eq=False)
class _Found:
    """One solution: L, P, its cost, and the multipliers of every input."""

    outputs: Floats
    light: Floats
    rows: Floats
    cost: float
    mu: Floats
    nu: Floats


def solve(
    epsilon: float, question: Question, reach: Floats, coarse: int, fine: int, settled: float = _SETTLED
) -> Channel:
    """The channel of least cost."""
    group = question.symmetries()
    centre = (question.inputs.max(axis=0) + question.inputs.min(axis=0)) / 2

    def grid(points: int) -> list[Floats]:
        return [np.linspace(c - r, c + r, points) for c, r in zip(centre, reach, strict=True)]

    look = grid(fine)
    found = _programme(epsilon, question, group, _closed(_points(grid(coarse)), group))
    for _ in range(_ROUNDS):
        missing = _valleys(epsilon, question, found, look)
        if missing.size == 0:
            break
        last, used = found.cost, found.outputs[_used(found)]
        found = _programme(epsilon, question, group, _closed(np.concatenate([used, missing]), group))
        if last - found.cost < settled * last:
            break
    rows = found.rows[:, _used(found)]
    return Channel(rows / rows.sum(axis=1, keepdims=True), found.outputs[_used(found)])


def _used(found: _Found) -> NDArray[np.bool_]:
    return np.asarray(found.light > _UNUSED * found.light.sum())


def _points(axes: list[Floats]) -> Floats:
    return np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)


def _key(points: Floats) -> NDArray[np.int64]:
    """Points as integers, so that images of one point are recognised."""
    return np.rint(points * 1e7).astype(np.int64)


def _places(points: Floats) -> dict[tuple[int, ...], int]:
    return {tuple(key): i for i, key in enumerate(_key(points).tolist())}


def _closed(points: Floats, group: Floats) -> Floats:
    """The points and their images, each once."""
    images = np.concatenate([points @ g.T for g in group])
    _, index = np.unique(_key(images), axis=0, return_index=True)
    return np.asarray(images[np.sort(index)] + 0.0)


def _orbits(points: Floats, group: Floats) -> NDArray[np.int64]:
    """The number of each point's orbit."""
    images = np.concatenate([_key(points @ g.T) for g in group])
    _, label = np.unique(images, axis=0, return_inverse=True)
    least = label.reshape(len(group), len(points)).min(axis=0)
    return np.unique(least, return_inverse=True)[1]


def _programme(epsilon: float, question: Question, group: Floats, outputs: Floats) -> _Found:
    """The programme on these outputs, one equation of mass and k of mean for one input of each orbit."""
    inputs = question.inputs
    orbit, family = _orbits(outputs, group), _orbits(inputs, group)
    first = np.unique(family, return_index=True)[1]
    weight = np.bincount(family, weights=question.prior)
    n_light, n_heavy, k = int(orbit.max()) + 1, len(first) * len(outputs), inputs.shape[1]
    light, share = math.exp(-epsilon), -math.expm1(-epsilon)

    def equation(coefficient: Floats) -> list[Any]:
        common = np.bincount(orbit, weights=coefficient) * light
        heavy = sparse.kron(sparse.eye_array(len(first)), coefficient[None, :] * share)
        return [sparse.csr_array(np.tile(common, (len(first), 1))), heavy]

    cost = outputs**2 @ question.cost
    place = np.arange(n_heavy)
    below = sparse.csr_array(
        (-np.ones(n_heavy), (place, np.tile(orbit, len(first)))), shape=(n_heavy, n_light)
    )
    result = _minimise(
        np.concatenate([np.bincount(orbit, weights=cost) * light, np.outer(weight, cost * share).ravel()]),
        A_ub=sparse.hstack([below, sparse.eye_array(n_heavy)], format="csr"),
        b_ub=np.zeros(n_heavy),
        A_eq=sparse.block_array(
            [equation(np.ones(len(outputs))), *(equation(outputs[:, j]) for j in range(k))], format="csr"
        ),
        b_eq=np.concatenate([np.ones(len(first)), *(inputs[first, j] for j in range(k))]),
        method="highs-ipm",
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )
    if result.status != 0:
        raise ArithmeticError(f"the linear programme at epsilon = {epsilon} was not solved: {result.message}")
    spread = np.maximum(result.x[:n_light], 0.0)[orbit]
    heavy = np.clip(result.x[n_light:].reshape(len(first), len(outputs)), 0.0, spread)
    multipliers = result.eqlin.marginals.reshape(1 + k, len(first))
    size = np.bincount(family)[family]
    rows, nu = _unfolded(inputs, outputs, group, first, heavy, multipliers[1:])
    return _Found(
        outputs,
        spread,
        light * spread + share * rows,
        float(result.fun),
        multipliers[0][family] / size,
        nu / size[:, None],
    )


def _unfolded(
    inputs: Floats, outputs: Floats, group: Floats, first: NDArray[np.int64], heavy: Floats, nu: Floats
) -> tuple[Floats, Floats]:
    """H and ν of every input: the mean over the group elements that carry its orbit's first input to it."""
    home, cell = _places(inputs), _places(outputs)
    rows, slopes, hits = np.zeros((len(inputs), len(outputs))), np.zeros(inputs.shape), np.zeros(len(inputs))
    for g in group:
        to = [home[tuple(key)] for key in _key(inputs[first] @ g.T).tolist()]
        moved = [cell[tuple(key)] for key in _key(outputs @ g.T).tolist()]
        for number, row in enumerate(to):
            rows[row, moved] += heavy[number]
            slopes[row] += g @ nu[:, number]
            hits[row] += 1
    return rows / hits[:, None], slopes / hits[:, None]


def _valleys(epsilon: float, question: Question, found: _Found, axes: list[Floats]) -> Floats:
    """The local minima of F below nought on the grid, at most a hundred, deepest first."""
    points = _points(axes)
    square = points**2 @ question.cost
    value = np.zeros(len(points))
    for share, nu, mu in zip(question.prior, found.nu, found.mu, strict=True):
        c = share * square - points @ nu - mu
        value += np.minimum(c * math.exp(-epsilon), c)
    shape = tuple(len(a) for a in axes)
    grid = value.reshape(shape)
    padded = np.pad(grid, 1, constant_values=np.inf)
    low = np.ones(shape, dtype=np.bool_)
    for step in product((0, 1, 2), repeat=len(shape)):
        low &= grid <= padded[tuple(slice(s, s + n) for s, n in zip(step, shape, strict=True))]
    pick = np.flatnonzero(low.ravel() & (value < -1e-9))
    return np.asarray(points[pick[np.argsort(value[pick])][:100]])
