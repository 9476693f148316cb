"""Choosing the integer tables of a new survey: the only part of this room that calls on the mechanisms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from hdr4me.errors import InvalidInput
from hdr4me.survey.randomizer import MAX_CELLS, Randomizer
from hdr4me.survey.schema import Categorical, Schema

if TYPE_CHECKING:
    from hdr4me.mechanisms.table import Table

__all__ = ["CATEGORICAL", "categorical_choice", "design"]

CATEGORICAL = ("auto", "grr", "oue", "histogram")


def design(
    schema: Schema, epsilon: float, mechanism: Any, categorical: str
) -> tuple[tuple[Randomizer, ...], tuple[int, ...]]:
    """The tables for values under `epsilon` each, and which one each dimension uses.

    `mechanism` is a name or anything with `exact()`; dimensions that need the same table share it.
    """
    if categorical not in CATEGORICAL:
        raise InvalidInput(f"categorical = {categorical!r} is not known: use one of {', '.join(CATEGORICAL)}")
    made: dict[tuple[str, int], int] = {}
    randomizers: list[Randomizer] = []
    assignment: list[int] = []
    for dimension in schema:
        key = _key(dimension, epsilon, categorical)
        if key not in made:
            made[key] = len(randomizers)
            randomizers.append(Randomizer.from_table(_table(key, epsilon, mechanism)))
        assignment.append(made[key])
    return tuple(randomizers), tuple(assignment)


def categorical_choice(epsilon: float, n_categories: int) -> str:
    """The one of GRR and OUE with the smaller variance at small frequencies (Wang et al. 2017).

    GRR's is (v − 2 + e^ε)/(e^ε − 1)², OUE's 4e^ε/(e^ε − 1)²: GRR wins when v < 3e^ε + 2. A code is one byte, so GRR
    ends at 256 categories.

    >>> categorical_choice(1.0, 10), categorical_choice(1.0, 11)
    ('grr', 'oue')
    """
    small = n_categories < 3 * math.exp(min(epsilon, 50.0)) + 2
    return "grr" if small and n_categories <= MAX_CELLS else "oue"


def _key(dimension: Any, epsilon: float, categorical: str) -> tuple[str, int]:
    if not isinstance(dimension, Categorical):
        return ("numeric", 0)
    v = len(dimension.categories)
    choice = categorical_choice(epsilon, v) if categorical == "auto" else categorical
    if choice == "grr" and v > MAX_CELLS:
        raise InvalidInput(
            f"dimension {dimension.name!r} has {v} categories: grr takes at most {MAX_CELLS}, use oue"
        )
    return (choice, v if choice == "grr" else 0)


def _table(key: tuple[str, int], epsilon: float, mechanism: Any) -> Table:
    choice, v = key
    if choice == "numeric":
        return _numeric_table(epsilon, mechanism)
    from hdr4me.mechanisms.categorical import grr, histogram, oue

    if choice == "grr":
        return grr(epsilon, v)
    if choice == "oue":
        return oue(epsilon)
    return histogram(epsilon, base=mechanism if isinstance(mechanism, str) else "optimal")


def _numeric_table(epsilon: float, mechanism: Any) -> Table:
    if isinstance(mechanism, str):
        from hdr4me.mechanisms import mechanism as named

        mechanism = named(mechanism, epsilon=epsilon)
    if not hasattr(mechanism, "exact"):
        raise InvalidInput(f"mechanism = {mechanism!r} is not a name and not a mechanism")
    table: Table = mechanism.exact()
    return table
