"""The budget: how it is shared among the values sent, and that no table spends more; standard library only."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from hdr4me.errors import InvalidInput
from hdr4me.survey.randomizer import Randomizer
from hdr4me.survey.schema import Schema

__all__ = ["MAX_ROWS", "check_budget", "check_tables", "split_budget"]

MAX_ROWS = 65536
"""Rows of all tables together: a client may lay them end to end and address one with 16 bits and a fraction."""


def split_budget(epsilon: float, n_sampled: int) -> float:
    """The largest float x with n_sampled·x ≤ epsilon, exactly.

    >>> split_budget(1.0, 3) * 3, Fraction(split_budget(1.0, 3)) * 3 <= 1
    (1.0, True)
    """
    share = epsilon / n_sampled
    while Fraction(share) * n_sampled > Fraction(epsilon):
        share = math.nextafter(share, 0.0)
    return share


def check_budget(schema: Any, epsilon: Any, n_sampled: Any) -> None:
    """0 < ε ≤ 65536 and 1 ≤ m ≤ d, or InvalidInput."""
    if not isinstance(schema, Schema):
        raise InvalidInput(f"schema = {schema!r} must be a Schema")
    try:
        positive = not isinstance(epsilon, bool | str) and 0 < float(epsilon) <= 65536
    except (TypeError, ValueError, OverflowError):
        positive = False
    if not positive:
        raise InvalidInput(f"epsilon = {epsilon!r} is not allowed: it must be positive and at most 65536")
    whole = hasattr(n_sampled, "__index__") and not isinstance(n_sampled, bool)
    if not whole or not 1 <= n_sampled <= len(schema):
        raise InvalidInput(
            f"n_sampled = {n_sampled!r} is not allowed: it must be 1 to the number of dimensions, {len(schema)}"
        )


def check_tables(
    schema: Schema,
    epsilon: float,
    n_sampled: int,
    randomizers: tuple[Randomizer, ...],
    assignment: tuple[int, ...],
) -> None:
    """Every table within the budget, every dimension with a table of its kind, or InvalidInput."""
    if len(assignment) != len(schema):
        raise InvalidInput(f"{len(assignment)} randomizers are assigned to {len(schema)} dimensions")
    n_rows = sum(randomizer.n_levels for randomizer in randomizers)
    if n_rows > MAX_ROWS:
        raise InvalidInput(f"the randomizers have {n_rows} rows in all: at most {MAX_ROWS} are allowed")
    for randomizer in randomizers:
        if n_sampled * Fraction(randomizer.epsilon) > Fraction(epsilon):
            raise InvalidInput(
                f"randomizer {randomizer.mechanism!r} spends {randomizer.epsilon} on each of {n_sampled} values, "
                f"more than the survey's epsilon = {epsilon}"
            )
    for dimension, index in zip(schema, assignment, strict=True):
        if type(index) is not int or not 0 <= index < len(randomizers):
            raise InvalidInput(f"dimension {dimension.name!r}: randomizer = {index!r} does not exist")
        randomizer = randomizers[index]
        categories = getattr(dimension, "categories", None)
        fits = (
            randomizer.kind == "value"
            if categories is None
            else randomizer.kind == "entries"
            or (randomizer.kind == "category" and randomizer.n_cells == len(categories))
        )
        if not fits:
            raise InvalidInput(
                f"dimension {dimension.name!r} cannot use randomizer {randomizer.mechanism!r} "
                f"of kind {randomizer.kind!r}"
            )
