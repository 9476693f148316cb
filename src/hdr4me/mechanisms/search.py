"""From coarse to fine: the linear programme solved on grids that its own last solution chooses."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hdr4me.mechanisms.law import Floats
from hdr4me.mechanisms.programme import (
    Dual,
    Measure,
    Solution,
    certified,
    solve,
    window_rows,
    worst_outputs,
)

__all__ = ["Objective", "Search"]

Objective = Literal["max", "mean"]

_FIRST_TOP = 1.4  # the largest output of an optimal mechanism is below 1.3 C at every budget
_FURTHEST = 4.0  # the dual is kept honest up to here; beyond, its parabolas rise by themselves


@dataclass
class Search:
    """The state of a design: the best light mass so far and the best bound, in units of C and C²."""

    epsilon: float
    objective: Objective
    bound: float = -math.inf
    measure: Measure | None = None
    dual: Dual | None = field(default=None, repr=False)
    _solution: Solution | None = field(default=None, repr=False)

    @property
    def unit(self) -> float:
        """C = coth(ε/2)."""
        return 1 / math.tanh(self.epsilon / 2)

    def run(self, n_levels: int, n_outputs: int, rounds: int) -> None:
        """Solve with this many levels and outputs, `rounds` times, each time with the outputs that were missed."""
        levels, prior, mean_square = self.inputs(n_levels)
        outputs, step = self._outputs(n_outputs)
        coarse, solution = self.measure, None
        for _ in range(rounds):
            allowed = None
            if coarse is not None:
                allowed = _near_windows(coarse, self.epsilon, levels, outputs, step)
                if solution is not None:
                    allowed |= _wanted(solution, levels.size, outputs)
            solution = solve(self.epsilon, levels, outputs, prior, allowed)
            bound = certified(solution.dual, self.epsilon, mean_square)
            if bound > self.bound:
                self.bound, self.dual = bound, solution.dual
            outputs = np.union1d(outputs, _missed(solution, self.epsilon))
            self.measure = solution.measure

    @property
    def proof(self) -> Floats | None:
        """The multipliers behind `bound`: levels, μ, ν and π as rows."""
        return (
            None
            if self.dual is None
            else np.stack([self.dual.levels, self.dual.mu, self.dual.nu, self.dual.pi])
        )

    def inputs(self, n: int) -> tuple[Floats, Floats | None, float | None]:
        """Non-negative levels, their weights and the inputs' mean square, the last two for "mean" only."""
        half = np.arange((n + 1) // 2)
        if self.objective == "max":
            return half / (half.size - 1) / self.unit, None, None
        prior = np.full(half.size + 1, 2.0 / n)
        prior[0], prior[-1] = 1.0 / n, 0.0
        return np.append(2.0 * half / n, 1.0) / self.unit, prior, 1 / (3 * self.unit**2)

    def _outputs(self, n: int) -> tuple[Floats, float]:
        """An even grid over the outputs in use, the outputs themselves, and a widening tail for the dual's sake."""
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
    """Which outputs are in or near the heavy window that the coarser solution gives to each level."""
    heavy = window_rows(coarse, epsilon, levels) > coarse.mass * (1 + 1e-6 * math.expm1(epsilon))
    heavy &= coarse.mass > 1e-9 * coarse.mass.sum()
    low = np.where(heavy, coarse.outputs, np.inf).min(axis=1)
    high = np.where(heavy, coarse.outputs, -np.inf).max(axis=1)
    margin = 0.25 * (high - low) + 2 * step
    y = _mirrored(outputs)
    return np.asarray((y >= (low - margin)[:, None]) & (y <= (high + margin)[:, None]))


def _wanted(solution: Solution, n_half: int, outputs: Floats) -> NDArray[np.bool_]:
    """Which level and output pairs the last dual would make heavy, whether or not they were allowed."""
    mu, nu, pi = (x[-n_half:, None] for x in (solution.dual.mu, solution.dual.nu, solution.dual.pi))
    y = _mirrored(outputs)
    return np.asarray(pi * y**2 - nu * y - mu < 0)


def _missed(solution: Solution, epsilon: float) -> Floats:
    """Positive outputs at which the dual is violated, one for each valley of F."""
    y, value = worst_outputs(solution.dual, epsilon)
    around = np.concatenate([[np.inf], value, [np.inf]])
    valley = (value <= around[:-2]) & (value <= around[2:]) & (value < -1e-12) & (y > 1e-9)
    return y[valley]
