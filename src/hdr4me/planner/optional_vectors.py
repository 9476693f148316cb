"""Optional vectors in a plan: the error of a coordinate's mean among those who have a vector, and of their share.

The formulas are those of `hdr4me.framework.optional_vectors`. The error depends on E|x|², on |E x|² and on the share of
users who have a vector, which are told or assumed (`workload.py`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdr4me.framework.moments import sampled_variance, sampling_factor
from hdr4me.framework.optional import OptionalErrors
from hdr4me.framework.optional_vectors import OptionalVectorReport
from hdr4me.planner.vectors import codebook_scores, largest_vector_error
from hdr4me.planner.workload import Group

__all__ = ["largest_optional_vector_error", "optional_vector_variances"]

Floats = NDArray[np.float64]


def optional_vector_variances(
    group: Group, n_users: int, inverse: Floats, budgets: list[float], *, worst: bool
) -> list[tuple[Floats, float]]:
    """The variance of a coordinate's mean among those who have a vector, and of their share; how many are of each.

    "Worst" is over all vectors and shares for the share, and over all vectors for the mean, if as many have one as is
    assumed. As for vectors that everybody has, one coordinate then has all the length and the others have none: these
    are the last of three kinds.

    Parameters
    ----------
    group
        Optional vectors that are alike.
    n_users, inverse
        n, and E[1/r] of the number r of reports, for each budget.
    budgets
        The ε of one answer.
    worst
        Whether the largest variance of any population is meant.
    """
    d, π, count = group.length, group.expected_present, float(group.count)
    κ = np.broadcast_to(sampling_factor(n_users, inverse), (len(budgets),)).tolist()
    reports = [OptionalVectorReport(codebook_scores(epsilon, d + 1)) for epsilon in budgets]

    def variances(found: list[OptionalErrors]) -> tuple[Floats, Floats]:
        mean, share = (
            sampled_variance(np.array(each), 0.0, n_users, inverse) for each in zip(*found, strict=True)
        )
        return mean, share

    if not worst:
        energy, square = group.expected_energy / d, (group.squares or 0.0) / d
        mean, share = variances(
            [report.errors(energy, square, π, k) for report, k in zip(reports, κ, strict=True)]
        )
        return [(mean, count * d), (share, count)]
    mean, share = variances([report.worst(π, k) for report, k in zip(reports, κ, strict=True)])
    none, _ = variances([report.errors(0.0, 0.0, π, k) for report, k in zip(reports, κ, strict=True)])
    return [(mean, count), (share, count)] + ([(none, count * (d - 1))] if d > 1 else [])


def largest_optional_vector_error(epsilon: float, length: int, present: float) -> float:
    """The largest distance of (y − R·(1 + s))/π from its mean: what a bound for few reports needs."""
    reach = largest_vector_error(epsilon, length + 1) - 1.0
    return 2.0 + (2 * reach + 1.0) / present
