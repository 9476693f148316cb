"""Vectors in a schema that is to be planned: the refusal, with what to do instead and the error of each vector."""

from __future__ import annotations

import math
from typing import Any

from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.codebook import codebook_channel, total_error

__all__ = ["coordinate_error", "refuse_vectors"]


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


def refuse_vectors(schema: Any, n_users: int | None, epsilon: float | None) -> None:
    """Refuse a schema with a vector.

    Raises
    ------
    InvalidInput
        If a dimension is a vector; the sentences say what to do.
    """
    vectors = [dimension for dimension in schema.dimensions if dimension.reads == "vector"]
    if not vectors:
        return
    first, more = vectors[0], len(vectors) - 1
    beside = f" (and {more} more)" if more else ""
    rest = (
        "; plan the other dimensions with a schema without vectors"
        if len(vectors) < len(schema.dimensions)
        else ""
    )
    told = ""
    if n_users is not None and epsilon is not None:
        error = coordinate_error(first.length, first.norm, int(n_users), float(epsilon))
        told = (
            f" If the vector {first.name!r} is all that a user is asked, the standard error of one of its "
            f"{first.length:,} coordinates is {error:.3g} with {int(n_users):,} users at ε = {epsilon:g}."
        )
    raise InvalidInput(
        f"the schema has the vector {first.name!r}{beside}, and a plan is for numbers, categories and selections: "
        f"`hdr4me survey` makes a survey with vectors without a plan{rest}.{told} docs/vectors.md says more"
    )
