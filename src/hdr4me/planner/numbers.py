"""The variance of the means of numbers that everybody has: each asked by itself, or two by two."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from hdr4me.framework.moments import sampled_variance, sampling_factor
from hdr4me.mechanisms.priors import Prior
from hdr4me.planner.pairs import pair_noise, pair_worst
from hdr4me.planner.reports import Effort, noise, worst_noise
from hdr4me.planner.workload import Workload

__all__ = ["ALONE", "alone_variances", "pair_variances"]

ALONE = "optimal"
"""What serves the number that is in no pair."""

Floats = NDArray[np.float64]


def alone_variances(
    name: str,
    prior: Prior,
    designed: Prior,
    n_users: int,
    inverse: Floats,
    budgets: list[float],
    *,
    worst: bool,
    effort: Effort,
) -> Floats:
    """The variance of the mean of a number that is asked by itself, for each budget.

    Parameters
    ----------
    name
        The mechanism.
    prior, designed
        The number's own prior, and the one that its table is designed for.
    n_users, inverse
        n, and E[1/r] of the number r of reports, for each budget.
    budgets
        The ε of one answer.
    worst
        Whether the largest variance of any population is meant.
    effort
        How much is computed (see `reports.py`).
    """
    if worst:
        κ = sampling_factor(n_users, inverse)
        both = [worst_noise(name, e, float(k), designed, effort) for e, k in zip(budgets, κ, strict=True)]
        return sampled_variance(np.array(both), 0.0, n_users, inverse)
    each = np.array([noise(name, e, prior, effort, designed) for e in budgets])
    return sampled_variance(each, prior.variance, n_users, inverse)


def pair_variances(
    workload: Workload, n_users: int, inverse: Floats, budgets: list[float], *, worst: bool, effort: Effort
) -> list[tuple[Floats, float, int]]:
    """For numbers in pairs: the variance of a mean at each budget, how many numbers have it, and their group.

    Numbers of one group may have different errors: a pair's table answers both of its numbers.

    Parameters
    ----------
    workload
        Groups of dimensions with at least two numbers, or one, which is then asked by itself.
    n_users, inverse
        n, and E[1/r] of the number r of reports, for each budget.
    budgets
        The ε of one answer.
    worst
        Whether the largest variance of any population is meant.
    effort
        How much is computed: "design" asks the very table.
    """
    exact = effort == "design"
    made: list[tuple[Floats, float, int]] = []
    if workload.pairs:
        laws = workload.pair_laws
        if worst:
            most = np.array([pair_worst(e, laws, exact=exact) for e in budgets])
            same = sampled_variance(most, 0.0, n_users, inverse)
            count = Counter(k for pair in workload.pairs.elements() for k in pair)
            made += [(same, float(n), k) for k, n in count.items()]
        for pair, n in {} if worst else workload.pairs.items():
            own = workload.groups[pair[0]].prior, workload.groups[pair[1]].prior
            both = np.array([pair_noise(e, laws, own, exact=exact) for e in budgets])
            for place, k in enumerate(pair):
                found = sampled_variance(both[:, place], own[place].variance, n_users, inverse)
                made.append((found, float(n), k))
    if len(workload.numbers) % 2:
        k = workload.numbers[-1]
        prior = workload.groups[k].prior
        alone = alone_variances(ALONE, prior, prior, n_users, inverse, budgets, worst=worst, effort=effort)
        made.append((alone, 1.0, k))
    return made
