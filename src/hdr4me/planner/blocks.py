"""Agreement blocks as a candidate of a plan: m numbers of d, rounded to signs and asked together under the whole ε."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels.agreement import MAX_SIZE
from hdr4me.channels.agreement.design import block_sizes, quick_second_moment
from hdr4me.framework.moments import mean_inverse_count, sampled_variance
from hdr4me.planner.workload import Group

__all__ = ["BLOCKS", "block_error", "block_names", "block_variances", "blocks_fit", "n_questions", "possible"]

BLOCKS = "agreement"
"""The candidate's name."""
LEAST_EPSILON = 1.5
"""Below, a block never wins, and a plan does not try it of its own accord."""
_NEVER = 1e12
"""The variance of sizes that no block can have."""

Floats = NDArray[np.float64]


def blocks_fit(schema: Any, n_dims: int, n_categories: int | None) -> bool:
    """Whether all dimensions are numbers that are not optional, and there are several."""
    if schema is not None:
        return len(schema) > 1 and all(dimension.reads == "number" for dimension in schema.dimensions)
    return n_categories is None and n_dims > 1


def possible(size: int, n_dims: int) -> bool:
    """Whether `n_dims` numbers fall into blocks of at most `size`, each of at least two.

    >>> [possible(size, 5) for size in (1, 2, 3, 5, 6)]
    [False, False, True, True, False]
    """
    return 2 <= size <= min(n_dims, MAX_SIZE) and n_dims // n_questions(size, n_dims) >= 2


def n_questions(size: int, n_dims: int) -> int:
    """How many blocks there are: each user answers one of them."""
    return -(-n_dims // size)


def block_variances(
    group: Group, n_users: int, epsilon: float, sizes: tuple[int, ...], n_dims: int, *, worst: bool
) -> Floats:
    """The variance of a mean for each size of the blocks.

    A decoded sign has the mean square 1/c², whatever the value: its variance is 1/c² − t², which is largest for values
    in the middle of the range. Blocks differ by one in size at most, and the variance is the mean over dimensions.

    Parameters
    ----------
    group
        Numbers that are alike.
    n_users, epsilon
        n, and the budget of a user.
    sizes
        How many numbers a block has at most.
    n_dims
        How many numbers there are.
    worst
        Whether the largest variance of any population is meant.
    """
    found = []
    for size in sizes:
        if not possible(size, n_dims):
            found.append(_NEVER)
            continue
        n_blocks = n_questions(size, n_dims)
        least, more = divmod(n_dims, n_blocks)
        # `more` blocks have one number more than the others
        square = (n_blocks - more) * least * quick_second_moment(epsilon, least) / n_dims
        if more:
            square += more * (least + 1) * quick_second_moment(epsilon, least + 1) / n_dims
        inverse = np.array(mean_inverse_count(n_users, 1 / n_blocks))
        noise, spread = square, 0.0
        if not worst:
            spread = group.prior.variance
            noise -= float(group.prior.shares @ group.prior.values**2)
        found.append(float(sampled_variance(np.array(noise), spread, n_users, inverse)))
    return np.array(found)


def block_error(epsilon: float, size: int) -> float:
    """The largest distance of a decoded sign from its value."""
    return float(1.0 + np.sqrt(quick_second_moment(epsilon, size)))


def block_names(names: tuple[str, ...], size: int) -> list[tuple[str, ...]]:
    """The dimensions of each block: neighbours in the schema."""
    found, at = [], 0
    for b in block_sizes(len(names), size):
        found.append(names[at : at + b])
        at += b
    return found
