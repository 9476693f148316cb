"""The program against a plain one written from its definition, and its bound against everything known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from hdr4me.mechanisms.program import (
    Dual,
    Measure,
    certified,
    solve,
    window_rows,
    worst_outputs,
)


def plain(epsilon: float, levels: np.ndarray, outputs: np.ndarray, prior: np.ndarray | None) -> float:
    """min v, P(y|t) and l_y as variables, every constraint spelt out: no symmetry, no change of variables."""
    n, m = levels.size, outputs.size
    e = math.exp(epsilon)
    size = n * m + m + 1
    equal, equal_to, at_most, limit = [], [], [], []
    for i, t in enumerate(levels):
        for power, value in ((0, 1.0), (1, t)):
            row = np.zeros(size)
            row[i * m : (i + 1) * m] = outputs**power
            equal.append(row)
            equal_to.append(value)
        if prior is None:
            row = np.zeros(size)
            row[i * m : (i + 1) * m] = outputs**2
            row[-1] = -1
            at_most.append(row)
            limit.append(t * t)
        for y in range(m):
            low, high = np.zeros(size), np.zeros(size)
            low[i * m + y], low[n * m + y] = -1, 1
            high[i * m + y], high[n * m + y] = 1, -e
            at_most += [low, high]
            limit += [0.0, 0.0]
    cost = np.zeros(size)
    if prior is None:
        cost[-1] = 1
    else:
        cost[: n * m] = np.outer(prior, outputs**2).ravel()
    found = linprog(cost, np.array(at_most), limit, np.array(equal), equal_to, bounds=(0, None))
    assert found.status == 0
    return float(found.fun) - (0.0 if prior is None else float(prior @ levels**2))


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("averaged", [False, True])
def test_agrees_with_the_plain_linear_program(epsilon, averaged):
    unit = 1 / math.tanh(epsilon / 2)
    half, side = np.linspace(0, 1, 3) / unit, np.linspace(0, 1.5, 13)[1:]
    folded = np.array([0.2, 0.4, 0.4]) if averaged else None
    whole = np.array([0.2, 0.2, 0.2, 0.2, 0.2]) if averaged else None
    measure, dual = solve(epsilon, half, side, folded)
    levels = np.concatenate([-half[:0:-1], half])
    outputs = np.concatenate([-side[::-1], [0.0], side])
    expected = plain(epsilon, levels, outputs, whole)
    second = window_rows(measure, epsilon, levels) @ outputs**2
    value = dual.mu.sum() + dual.nu @ levels - dual.pi @ levels**2
    achieved = whole @ (second - levels**2) if averaged else (second - levels**2).max()
    # 1e-7: the solvers' tolerance
    assert value == pytest.approx(expected, rel=1e-7)
    assert achieved == pytest.approx(expected, rel=1e-7)
    # between the outputs of the grid the dual is violated a little, so the proven bound is a little lower
    assert 0.97 * expected < certified(dual, epsilon) <= expected


def test_bound_of_three_inputs_is_the_continuous_optimum():
    # repeated refinement of the outputs closes the gap between value and bound
    epsilon = 1.0
    half = np.array([0.0, 1.0]) * math.tanh(0.5)
    outputs = np.linspace(0, 1.6, 20)[1:]
    for _ in range(6):
        _, dual = solve(epsilon, half, outputs)
        y, value = worst_outputs(dual, epsilon)
        outputs = np.union1d(outputs, y[(y > 0) & (value < 0)])
    value = dual.mu.sum() + dual.nu @ dual.levels - dual.pi @ dual.levels**2
    assert certified(dual, epsilon) == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_worst_outputs_find_the_minimum_over_the_line(seed):
    rng = np.random.default_rng(seed)
    n, epsilon = 7, 1.3
    pi = rng.dirichlet(np.ones(n))
    pi[2] = 0.0
    dual = Dual(np.linspace(-1, 1, n), rng.normal(size=n) / 5, rng.normal(size=n) / 3, pi)
    y = np.linspace(-60, 60, 400_001)
    c = [p * y * y - v * y - m for p, v, m in zip(pi, dual.nu, dual.mu, strict=True)]
    total = sum(np.minimum(ci, math.exp(epsilon) * ci) for ci in c) * math.exp(-epsilon)
    found = worst_outputs(dual, epsilon)[1].min()
    # the grid's spacing is 3e-4
    assert found == pytest.approx(total.min(), abs=1e-6)
    assert found <= total.min() + 1e-12


def test_window_rows_are_the_best_rows_above_the_light_mass():
    epsilon = 1.5
    outputs = np.array([-1.4, -1.1, -0.3, 0.3, 1.1, 1.4])
    mass = np.array([0.1, 0.05, 0.06, 0.06, 0.05, 0.1])
    levels = np.linspace(-0.6, 0.6, 7)
    rows = window_rows(Measure(outputs, mass), epsilon, levels)
    e = math.exp(epsilon)
    assert rows.sum(axis=1) == pytest.approx(np.ones(7))
    assert rows @ outputs == pytest.approx(levels, abs=1e-12)
    assert (rows >= mass * (1 - 1e-12)).all()
    assert (rows <= e * mass * (1 + 1e-12)).all()
    for row, t in zip(rows, levels, strict=True):
        best = linprog(
            outputs**2,
            A_eq=[np.ones(6), outputs],
            b_eq=[1.0, t],
            bounds=list(zip(mass, e * mass, strict=True)),
        )
        assert row @ outputs**2 == pytest.approx(best.fun, rel=1e-9)


def test_says_so_when_it_cannot_be_solved():
    with pytest.raises(ArithmeticError, match="not solved"):
        solve(1.0, np.array([0.0, 1.0]), np.array([0.01]))  # no output reaches the level
