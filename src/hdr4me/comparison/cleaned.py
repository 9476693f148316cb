"""The values that a collection would take from public data: cleaned and counted as records are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.io import Account, Source, account_of, from_batch, record_batches
from hdr4me.survey import Categorical, Dimension, Numeric, Product, Schema, Selection, Survey, Vector

_COMPARED = (Numeric, Categorical, Selection, Vector, Product)

__all__ = ["cleaned", "comparable", "named"]

_SHOWN = 5
"""So many names are written out."""


def comparable(schema: Schema) -> tuple[list[Dimension], list[str]]:
    """The dimensions that can be compared, and a sentence for those that cannot.

    >>> schema = Schema([Numeric("age", 0, 120), Vector("where", 2), Numeric("pay", 0, 9, optional=True)])
    >>> kept, notes = comparable(schema)
    >>> [dimension.name for dimension in kept], notes
    (['age', 'where', 'pay'], [])
    """
    kept: list[Dimension] = []
    reasons: dict[str, list[str]] = {}
    for dimension in schema:
        reason = _reason(dimension)
        if reason:
            reasons.setdefault(reason, []).append(dimension.name)
        else:
            kept.append(dimension)
    return kept, [f"{named(names)} left out: {reason}" for reason, names in reasons.items()]


def named(names: Iterable[str]) -> str:
    """The subject of a sentence, with its verb: the first names, and how many there are beside them.

    >>> named(["a"]), named(["a", "b"]), named("abcdefg")
    ("'a' is", "'a', 'b' are", "'a', 'b', 'c', 'd', 'e' and 2 more are")
    """
    listed = list(names)
    more = f" and {len(listed) - _SHOWN:,} more" if len(listed) > _SHOWN else ""
    return f"{', '.join(map(repr, listed[:_SHOWN]))}{more} {'is' if len(listed) == 1 else 'are'}"


def _reason(dimension: Dimension) -> str:
    """Why a dimension is not compared; empty if it is."""
    known = isinstance(dimension, _COMPARED)
    return "" if known else f"dimensions of the type {dimension.kind!r} are not compared"


def cleaned(data: Any, schema: Schema) -> tuple[pa.Table, Account]:
    """A column for each dimension as a collection would read it, and the account of what was read.

    A number that is missing or no number is the default, or null if it is optional, and one out of range the nearer
    bound. A category that is missing or not in the list is the default. A selection is the list of the choices that
    count, a vector a list of numbers, scaled to the norm if it is longer, or null if it is optional and missing. A
    product has no column.

    >>> schema = Schema([Numeric("age", 0, 120), Categorical("smoker", ["no", "yes"])])
    >>> table, account = cleaned(pa.table({"age": ["31", "abc"], "smoker": ["yes", "alien"]}), schema)
    >>> table.to_pylist()
    [{'age': 31.0, 'smoker': 'yes'}, {'age': 60.0, 'smoker': 'no'}]
    >>> [row["unknown"] for row in account.rows()]
    [1, 1]
    """
    survey = Survey(schema, epsilon=1.0, mechanism="duchi", categorical="grr")
    account = Account.empty(survey)
    own = {j: x for j, x in enumerate(schema) if not isinstance(x, Product)}
    parts: dict[int, list[Any]] = {j: [] for j in own}
    for batch in record_batches(data, survey):
        source = from_batch(batch, survey)
        account += account_of(source, survey)
        for j, dimension in own.items():
            column = batch.column(batch.schema.get_field_index(dimension.name))
            parts[j].append(_values(source, j, dimension, column))
    unusable = account.unusable()
    if unusable:
        more = f", and {len(unusable) - 3} columns more" if len(unusable) > 3 else ""
        raise InvalidInput(
            f"{'; '.join(unusable[:3])}{more}: check the range, the categories and the file, or take the "
            "dimension out of the schema"
        )
    columns = {x.name: pa.chunked_array(parts[j], _type(x)) for j, x in own.items()}
    return pa.table(columns), account


def _type(dimension: Dimension) -> Any:
    if isinstance(dimension, Vector):
        return pa.list_(pa.float64(), dimension.length)
    if isinstance(dimension, Selection):
        return pa.list_(pa.string())
    return pa.float64() if isinstance(dimension, Numeric) else pa.string()


def _values(source: Source, j: int, dimension: Dimension, column: Any) -> Any:
    """The clean values of one dimension in a batch."""
    array = source.owners[j]
    if isinstance(dimension, Vector):
        points = source.vectors[j]
        flat = pa.array((points[:, : dimension.length] * dimension.norm).ravel())
        missing = pa.array(points[:, -1] < 0) if dimension.optional else None
        return pa.FixedSizeListArray.from_arrays(flat, dimension.length, mask=missing)
    if isinstance(dimension, Selection):
        chosen = [[dimension.categories[k] for k in dimension.clean(value)] for value in column.to_pylist()]
        return pa.array(chosen, pa.list_(pa.string()))
    if isinstance(dimension, Numeric):
        numbers: NDArray[np.float64] = np.asarray(array.cast(pa.float64()).fill_null(np.nan))
        inside = np.clip(numbers, dimension.low, dimension.high)
        if dimension.optional:
            return pa.array(inside, mask=np.isnan(numbers))
        return pa.array(np.where(np.isnan(numbers), dimension.default, inside))
    assert isinstance(dimension, Categorical)
    columns = source.columns
    start = int(columns.lut_start[j])
    numbers_of = np.append(
        columns.lut[start : start + int(columns.lut_size[j])], dimension.index[dimension.default]
    )
    places = np.asarray(array.cast(pa.int64()).fill_null(len(numbers_of) - 1))
    return pa.array(dimension.categories, pa.string()).take(pa.array(numbers_of[places]))
