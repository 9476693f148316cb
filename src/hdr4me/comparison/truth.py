"""What is true of public data: the values of each dimension, what the answers should be, and on which scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdr4me.survey import Dimension, Product, Schema, Selection, Vector
from hdr4me.survey.columns import product_of

__all__ = ["n_rows", "scaled_answer", "shares_of", "truth_of", "unit_values", "unit_vectors"]

Floats = NDArray[np.float64]
_OF_SHARES = ("frequency", "chosen", "share")
"""Statistics that are shares of users, whatever the dimension's units."""


def unit_values(dimension: Dimension, table: pa.Table) -> Floats:
    """A number's values on [−1, 1]; NaN where an optional one is missing.

    >>> from hdr4me.survey import Numeric
    >>> unit_values(Numeric("age", 0, 100, optional=True), pa.table({"age": [25.0, None, 100.0]})).tolist()
    [-0.5, nan, 1.0]
    """
    if isinstance(dimension, Product):
        first, second = (_column(table, factor.name) for factor in dimension.both)
        return product_of(first, second, dimension)
    low, high = dimension.bounds
    return np.asarray(2 * (np.clip(_column(table, dimension.name), low, high) - low) / (high - low) - 1)


def _column(table: pa.Table, name: str) -> Floats:
    return np.asarray(table.column(name).to_numpy(), np.float64)


def unit_vectors(dimension: Vector, table: pa.Table) -> Floats:
    """Vectors [n, length] on the scale on which the largest norm is 1; rows of NaN where an optional one is missing.

    >>> lists = pa.array([[3.0, 0.0], None], pa.list_(pa.float64(), 2))
    >>> unit_vectors(Vector("v", 2, norm=6.0, optional=True), pa.table({"v": lists})).tolist()
    [[0.5, 0.0], [nan, nan]]
    """
    lists: Any = table.column(dimension.name).combine_chunks()
    found = np.full((table.num_rows, dimension.length), np.nan)
    found[np.asarray(lists.is_valid())] = np.asarray(lists.flatten(), np.float64).reshape(
        -1, dimension.length
    )
    return found / dimension.norm


def shares_of(dimension: Dimension, table: pa.Table) -> Floats:
    """The share of users with each category; of a selection they need not sum to 1."""
    flat: Any = table.column(dimension.name)
    if isinstance(dimension, Selection):
        flat = flat.combine_chunks().flatten()
    index = {label: i for i, label in enumerate(dimension.categories)}
    found = np.bincount(
        np.array([index[label] for label in flat.cast(pa.string()).to_pylist()], np.int64),
        minlength=len(index),
    )
    return np.asarray(found / table.num_rows)


def n_rows(dimension: Dimension, statistic: str) -> int:
    """How many rows an answer has for a dimension."""
    if statistic == "share":
        return 1
    return dimension.length if isinstance(dimension, Vector) else max(1, len(dimension.categories))


def truth_of(schema: Schema, table: pa.Table, statistic: str) -> Floats:
    """What the answers should be, in the order of their rows; numbers on [−1, 1], vectors as shares of the norm.

    Parameters
    ----------
    schema, table
        The dimensions, and their clean values.
    statistic
        "frequency", "chosen", "share" (of users who have a number or vector), "mean", "median" or "variance"; of an
        optional number or vector these are told of those who have one.
    """
    return np.concatenate([np.atleast_1d(_truth(x, table, statistic)) for x in schema])


def _truth(dimension: Dimension, table: pa.Table, statistic: str) -> Any:
    if statistic in ("frequency", "chosen"):
        return shares_of(dimension, table)
    if isinstance(dimension, Vector):
        values = unit_vectors(dimension, table)
        there = values[~np.isnan(values).any(axis=1)]
    else:
        values = unit_values(dimension, table)
        there = values[~np.isnan(values)]
    if statistic == "share":
        return len(there) / len(values)
    if isinstance(dimension, Vector):
        return there.mean(axis=0) if len(there) else np.full(dimension.length, np.nan)
    rules: dict[str, Callable[[Floats], Any]] = {"mean": np.mean, "median": np.median, "variance": np.var}
    return rules[statistic](there) if len(there) else np.nan


def scaled_answer(schema: Schema, statistic: str) -> Callable[[Floats], Floats]:
    """From an answer's own units to the scale on which errors are told; shares of users stay as they are."""
    if statistic in _OF_SHARES:
        return lambda values: values
    each = [n_rows(x, statistic) for x in schema]
    half = np.repeat([(x.bounds[1] - x.bounds[0]) / 2 for x in schema], each)
    if statistic == "variance":
        return lambda values: values / half**2
    middle = np.repeat([sum(x.bounds) / 2 for x in schema], each)
    return lambda values: (values - middle) / half
