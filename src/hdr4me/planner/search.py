"""Solving for what is missing: users, ε or dimensions that reach a tolerance with a probability."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hdr4me.framework.supremum import log_probability_within
from hdr4me.planner.costs import MAX_GRR, Classes, Prior, classes, sampled_grid
from hdr4me.planner.workload import Workload

__all__ = [
    "MAX_DIMS",
    "MAX_EPSILON",
    "MAX_USERS",
    "Setting",
    "largest_dims",
    "smallest_epsilon",
    "smallest_users",
]

MAX_USERS = 8_000_000_000
"""Nobody has more users than there are people."""
MAX_EPSILON = 20.0
"""Beyond e^20 the word private has lost its meaning."""
MIN_EPSILON = 1e-4
MAX_DIMS = 65_536
"""The most that a survey's reports can name."""


@dataclass(frozen=True)
class Setting:
    """A complete question: what, from whom, under which budget, by which candidates."""

    workload: Workload
    n_users: int
    epsilon: float
    mechanisms: tuple[str, ...]
    methods: tuple[str, ...]
    prior: Prior
    jointly: bool = True

    def candidates(self) -> list[tuple[str, str]]:
        """Pairs (mechanism's name, method for categories); a purely categorical plan is named by its method."""
        if not self.workload.categorical:
            return [(name, "") for name in self.mechanisms]
        methods = [x for x in self.methods if x != "grr" or max(self.workload.categorical)[0] <= MAX_GRR]
        if not self.workload.numeric:
            return [(method, method) for method in methods]
        return [(name, method) for name in self.mechanisms for method in methods]

    def classes(self, candidate: tuple[str, str], sampled: tuple[int, ...] | None = None) -> Classes:
        """The candidate's variances over m."""
        name, method = candidate
        base = name if self.workload.numeric else "optimal"
        grid = tuple(sampled_grid(self.workload.n_dims)) if sampled is None else sampled
        return classes(self.workload, base, method, self.n_users, self.epsilon, grid, self.prior)

    def best_sampled(self, candidate: tuple[str, str]) -> int:
        """The m of least expected error, looked for between the grid's steps too."""
        made = self.classes(candidate)
        k = int(np.argmin(made.mse))
        low, high = made.sampled[max(k - 1, 0)], made.sampled[min(k + 1, len(made.sampled) - 1)]
        if high - low <= 2:
            return made.sampled[k]
        between = tuple(sorted({round(x) for x in np.linspace(low, high, 33)}))
        return int(between[int(np.argmin(self.classes(candidate, between).mse))])

    def success(self, tolerance: float) -> float:
        """The largest log-probability, over candidates and m, of keeping within the tolerance.

        The best m is about ε/2.5, at most eight under `MAX_EPSILON`: a coarse grid beyond 16 loses nothing.
        """
        best = -math.inf
        grid = tuple(sampled_grid(self.workload.n_dims, dense=16, step=1.5))
        for candidate in self.candidates():
            made = self.classes(candidate, grid)
            within = log_probability_within(0.0, np.sqrt(made.variances), tolerance)
            score = within @ made.counts if self.jointly else within.min(axis=1)
            best = max(best, float(score.max()))
        return best


def _least(meets: Callable[[float], bool], low: float, high: float, rounds: int) -> float:
    """The least x (geometrically bisected) at which a monotone condition holds; it holds at `high`."""
    for _ in range(rounds):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def smallest_users(setting: Setting, tolerance: float, probability: float) -> int | None:
    """The fewest users that reach it, exact to a user below 10⁶ and to 1e-6 of them above; None if none do."""
    target = math.log(probability)

    def meets(n: float) -> bool:
        return replace(setting, n_users=int(n)).success(tolerance) >= target

    if not meets(MAX_USERS):
        return None
    low, high = 1, MAX_USERS
    while high - low > max(1, high // 1_000_000):
        middle = math.isqrt(low * high) if high > 4 * low else (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return 1 if high == 2 and meets(1) else high


def smallest_epsilon(setting: Setting, tolerance: float, probability: float) -> float | None:
    """The least ε that reaches it, rounded up to four digits; None if even `MAX_EPSILON` does not."""
    target = math.log(probability)

    def meets(epsilon: float) -> bool:
        return replace(setting, epsilon=epsilon).success(tolerance) >= target

    if not meets(MAX_EPSILON):
        return None
    if meets(MIN_EPSILON):
        return MIN_EPSILON
    found = _least(meets, MIN_EPSILON, MAX_EPSILON, rounds=17)
    digits = 3 - math.floor(math.log10(found))
    return float(math.ceil(found * 10.0**digits) / 10.0**digits)


def largest_dims(setting: Setting, tolerance: float, probability: float) -> int | None:
    """The most dimensions (alike) that n users and ε carry; None if not even one."""
    target = math.log(probability)
    size = setting.workload.categorical[0][0] if setting.workload.categorical else None

    def meets(d: int) -> bool:
        return replace(setting, workload=Workload.of_size(d, size)).success(tolerance) >= target

    if not meets(1):
        return None
    if meets(MAX_DIMS):
        return MAX_DIMS
    low, high = 1, MAX_DIMS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if meets(middle) else (low, middle)
    return low
