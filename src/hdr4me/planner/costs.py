"""The variance of every candidate, as arrays over m: the part of planning that must be quick.

Nothing is derived here: the variance of one report comes from `reports.py`, that of an estimate from the framework
(`sampled_variance`). What is assumed of the values:

- a prior for numbers (spread evenly unless told otherwise); frequencies of a category 1/v each; of a selection half of
  the choices that there can be, the same number for all users, spread evenly over the categories; vectors spread evenly
  in their ball (`vectors.py`); nine users in ten have what is optional (`optional.py`, `optional_vectors.py`);
- "worst": the largest that any population can give.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdr4me.framework.moments import mean_inverse_count, sampled_variance
from hdr4me.framework.optional import widening
from hdr4me.planner.blocks import BLOCKS, block_error, block_variances
from hdr4me.planner.numbers import alone_variances, pair_variances
from hdr4me.planner.optional import largest_optional_error, optional_variances
from hdr4me.planner.optional_vectors import largest_optional_vector_error, optional_vector_variances
from hdr4me.planner.pairs import PAIR
from hdr4me.planner.reports import (
    Effort,
    choice_variances,
    entry_variances,
    largest_error,
    number_variances,
)
from hdr4me.planner.vectors import largest_vector_error, vector_variances
from hdr4me.planner.workload import Group, Workload
from hdr4me.survey.budget import split_budget

__all__ = ["Classes", "classes", "farthest", "sampled_grid"]

Floats = NDArray[np.float64]

_FREQUENCIES = np.linspace(0.0, 1.0, 65)


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
    """Coordinates that are alike, a column each, one row per m: their variance and how many they are.

    `group` is the number of each column's group in the workload. A selection has two columns: shares, and numbers of
    choices over the most that there can be. So has an optional number: its mean among those who have one, and their
    share. A vector has one column, and two for the worst population; an optional one has its share beside them.
    `wider` is how many times wider than by the normal law a tolerance must be (`hdr4me.framework.optional.widening`).
    """

    sampled: tuple[int, ...]
    variances: Floats
    counts: Floats
    scales: Floats
    wider: Floats
    group: tuple[int, ...]

    @property
    def mse(self) -> Floats:
        """The expected MSE at each m."""
        return np.asarray(self.variances @ self.counts / self.counts.sum())

    @property
    def sds(self) -> Floats:
        """Standard deviations for tolerances, in units of each group's own; 0 where nothing is asked of a group."""
        asked = np.isfinite(self.scales)
        return np.where(asked, np.sqrt(self.variances) * self.wider / np.where(asked, self.scales, 1.0), 0.0)


def classes(
    workload: Workload,
    mechanism_name: str,
    method: str,
    n_users: int,
    epsilon: float,
    sampled: tuple[int, ...],
    *,
    worst: bool = False,
    effort: Effort = "table",
) -> Classes:
    """The coordinates' variances when `mechanism_name` serves numbers and `method` categories.

    Parameters
    ----------
    workload
        The groups of dimensions.
    mechanism_name, method
        The candidate.
    n_users, epsilon
        n, and the total budget of a user.
    sampled
        The numbers m of dimensions that a user reports.
    worst
        Whether the largest variance of any population is meant, or that of the groups' priors.
    effort
        How much is computed (see `reports.py`).

    Returns
    -------
    Classes
        One row for each m, one to three columns for each group.
    """
    questions = workload.n_questions(mechanism_name)
    inverse = np.array([mean_inverse_count(n_users, m / questions) for m in sampled])
    budgets = [split_budget(epsilon, m) for m in sampled]
    columns, counts, numbers, wider = [], [], [], []
    if mechanism_name == PAIR and workload.numeric:
        for variances, count, k in pair_variances(
            workload, n_users, inverse, budgets, worst=worst, effort=effort
        ):
            columns.append(variances)
            counts.append(count)
            numbers.append(k)
            wider.append(np.ones(len(sampled)))
    for k, group in enumerate(workload.groups):
        if mechanism_name == PAIR and group.is_number:
            continue
        every = float(group.count * max(group.size, 1))
        if group.choices:
            made = _choices(group, n_users, inverse, budgets, worst=worst)
        elif group.length and group.optional:
            made = optional_vector_variances(group, n_users, inverse, budgets, worst=worst)
        elif group.optional:
            exact = effort == "design"
            made = optional_variances(group, n_users, inverse, budgets, worst=worst, exact=exact)
        elif group.length:
            made = vector_variances(group, n_users, inverse, budgets, worst=worst)
        elif mechanism_name == BLOCKS:
            blocks = block_variances(group, n_users, epsilon, sampled, workload.n_dims, worst=worst)
            made = [(blocks, every)]
        elif group.size:
            made = [(_entries(group, mechanism_name, method, n_users, inverse, budgets, worst=worst), every)]
        else:
            laws = group.prior, workload.table_priors[k]
            found = alone_variances(
                mechanism_name, *laws, n_users, inverse, budgets, worst=worst, effort=effort
            )
            made = [(found, every)]
        columns += [variances for variances, _ in made]
        counts += [count for _, count in made]
        numbers += [k] * len(made)
        widest = np.ones(len(sampled))
        if group.optional:
            widest = widening(np.sqrt(made[1][0]), group.expected_present, workload.n_coordinates)
        wider += [np.ones(len(sampled)) if i == 1 else widest for i in range(len(made))]
    scales = np.array([workload.groups[k].scale for k in numbers])
    variances, factors = np.stack(columns, axis=1), np.stack(wider, axis=1)
    return Classes(sampled, variances, np.array(counts), scales, factors, tuple(numbers))


def farthest(workload: Workload, mechanism_name: str, epsilon: float, m: int) -> float | None:
    """The largest distance of a report from its value, for numbers and vectors; None if there are none.

    Frequencies and shares have no bound for few reports: theirs are taken as normal.

    Parameters
    ----------
    workload, mechanism_name, epsilon
        The groups of dimensions, the candidate, and the total budget of a user.
    m
        How many dimensions a user reports.
    """
    budget = split_budget(epsilon, m)
    found = [largest_vector_error(budget, length) for length, _ in workload.vectors]
    for group in workload.groups:
        if group.length and group.optional:
            found.append(largest_optional_vector_error(budget, group.length, group.expected_present))
        elif group.optional:
            found.append(largest_optional_error(budget, group.expected_present))
    if workload.numeric and mechanism_name == BLOCKS:
        found.append(block_error(epsilon, m))
    elif workload.numeric:
        found.append(largest_error(mechanism_name, budget))
    return max(found, default=None)


def _entries(
    group: Group,
    name: str,
    method: str,
    n_users: int,
    inverse: Floats,
    budgets: list[float],
    *,
    worst: bool,
) -> Floats:
    pairs = np.array([entry_variances(method, name, e, group.size) for e in budgets])
    f = _FREQUENCIES if worst else np.array([1.0 / group.size])
    each = pairs[:, :1] * (1 - f) + pairs[:, 1:] * f
    return np.asarray(sampled_variance(each, f * (1 - f), n_users, inverse[:, None]).max(axis=1))


def _choices(
    group: Group, n_users: int, inverse: Floats, budgets: list[float], *, worst: bool
) -> list[tuple[Floats, float]]:
    """The variance of a share, and of the mean number of choices over the most, and how many there are of each."""
    v, s = group.size, group.choices
    pairs = np.array([choice_variances(e, v, s) for e in budgets])
    f = _FREQUENCIES if worst else np.array([group.expected_choices / v])
    each = pairs[:, :1] * (1 - f) + pairs[:, 1:] * f
    share = sampled_variance(each, f * (1 - f), n_users, inverse[:, None]).max(axis=1)
    c = np.linspace(0.0, s, 65) if worst else np.array([group.expected_choices])
    noise = np.array([max(number_variances(e, v, s, c)) for e in budgets])
    spread = 0.25 if worst else 0.0  # of numbers over the most, on [0, 1]
    number = sampled_variance(noise, spread, n_users, inverse)
    return [(np.asarray(share), float(group.count * v)), (number, float(group.count))]
