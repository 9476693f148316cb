"""Vectors in a plan: the variance of a coordinate's mean, on the scale on which the largest norm is 1.

One report about a coordinate x_j of a vector x has the variance (1 + (E[z²] − 1)·x_j²)/E[z]² − x_j², with the scores z
of the codebook. It is linear in x_j², so its mean over users and coordinates depends on E|x|² only.
What is assumed of the vectors:

- vectors spread evenly in the ball, for which E|x|² = d/(d + 2), or what is told of them;
- "worst": for one coordinate all vectors on its axis, which leaves nothing to the other coordinates, since |x| ≤ 1.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels.codebook import values
from hdr4me.channels.codebook.design import Scores, codebook_channel, scores_of, total_error
from hdr4me.framework.moments import sampled_variance, sampling_factor
from hdr4me.planner.workload import Group

__all__ = ["CODEBOOK", "codebook_scores", "coordinate_error", "largest_vector_error", "vector_variances"]

CODEBOOK = "codebook"
"""The mechanism that serves vectors."""

Floats = NDArray[np.float64]


def coordinate_error(length: int, norm: float, n_users: int, epsilon: float) -> float:
    """The standard error of a coordinate's mean if each user reports one vector of this norm with the whole budget.

    Parameters
    ----------
    length, norm
        The vector's.
    n_users, epsilon
        n, and the budget of a user.

    Returns
    -------
    float
        In the vector's own units: the root mean square over the coordinates.

    Examples
    --------
    >>> round(coordinate_error(100, 2.0, 10_000, 4.0), 4)
    0.0132
    """
    return norm * math.sqrt(total_error(codebook_channel(epsilon, length)) / length / n_users)


@lru_cache(maxsize=8192)
def codebook_scores(epsilon: float, length: int) -> Scores:
    """The moments of the scores of the codebook that a survey has."""
    return scores_of(codebook_channel(epsilon, length))


def _noise(scores: Scores, square: float) -> float:
    """The variance of one report about a coordinate whose mean square over users is `square`."""
    return float(scores.square(square) - square)


def vector_variances(
    group: Group, n_users: int, inverse: Floats, budgets: list[float], *, worst: bool
) -> list[tuple[Floats, float]]:
    """The variance of a coordinate's mean for each budget, and how many coordinates have it.

    For the worst population there are two kinds of coordinates: one of each vector that has all the length, and the
    others, which have none. Of all populations that one has the largest sum of variances. It also has the largest
    error of all coordinates at once, wherever each is kept with 90 % probability or more: the probability that an
    error is too large is then a convex function of its variance.

    Parameters
    ----------
    group
        Vectors that are alike.
    n_users, inverse
        n, and E[1/r] of the number r of reports, for each budget.
    budgets
        The ε of one answer.
    worst
        Whether the largest variance of any population is meant.
    """
    d, scores = group.length, [codebook_scores(epsilon, group.length) for epsilon in budgets]
    if not worst:
        square = group.expected_energy / d
        spread = square - (group.squares or 0.0) / d
        each = np.array([_noise(found, square) for found in scores])
        return [(sampled_variance(each, max(spread, 0.0), n_users, inverse), float(group.count * d))]
    none = np.array([_noise(found, 0.0) for found in scores])
    whole = np.array([_noise(found, 1.0) for found in scores]) + sampling_factor(n_users, inverse)
    made = [(sampled_variance(np.maximum(none, whole), 0.0, n_users, inverse), float(group.count))]
    others = [(sampled_variance(none, 0.0, n_users, inverse), float(group.count * (d - 1)))]
    return made + (others if d > 1 else [])


def largest_vector_error(epsilon: float, length: int) -> float:
    """The largest distance of a report from its coordinate: what a bound for few reports needs."""
    return 1.0 + max(map(abs, values())) / codebook_scores(epsilon, length).contrast
