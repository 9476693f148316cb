"""The values that a collection would take from public data: cleaned and counted as records are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from hdr4me.errors import InvalidInput
from hdr4me.io import Account
from hdr4me.io.columns import refusal
from hdr4me.io.reading import read_records
from hdr4me.survey import Schema

_SHOWN = 5
"""So many names are written out."""
_ROWS = 1 << 17
_SIZE = (1 << 20) + 1
"""Inputs of an imagined channel: a dimension that only knows positions gives its values as parts of these."""


def named(names: Iterable[str]) -> str:
    """The subject of a sentence, with its verb: the first names, and how many there are beside them.

    >>> named(["a"]), named(["a", "b"]), named("abcdefg")
    ("'a' is", "'a', 'b' are", "'a', 'b', 'c', 'd', 'e' and 2 more are")
    """
    listed = list(names)
    more = f" and {len(listed) - _SHOWN:,} more" if len(listed) > _SHOWN else ""
    return f"{', '.join(map(repr, listed[:_SHOWN]))}{more} {'is' if len(listed) == 1 else 'are'}"


def cleaned(data: Any, schema: Schema) -> tuple[pa.Table, Account]:
    """A column of clean values for each dimension that has a column, and the account of what was read.

    A number that is missing or no number is the default, or null if it is optional, and one out of range the nearer
    bound. A category that is missing or not in the list is the default. A selection is the list of the choices that
    count, a vector a list of numbers, scaled to the norm if it is longer, or null if it is optional and missing.

    >>> from hdr4me.survey import Categorical, Numeric
    >>> schema = Schema([Numeric("age", 0, 120), Categorical("smoker", ["no", "yes"])])
    >>> table, account = cleaned(pa.table({"age": ["31", "abc"], "smoker": ["yes", "alien"]}), schema)
    >>> table.to_pylist()
    [{'age': 31.0, 'smoker': 'yes'}, {'age': 60.0, 'smoker': 'no'}]
    >>> [row["unknown"] for row in account.rows()]
    [1, 1]
    """
    counts = np.zeros((len(schema), 5), np.int64)
    parts: dict[str, list[Any]] = {name: [] for name in schema.columns}
    for batch in read_records(data, schema, _ROWS):
        for j, dimension in enumerate(schema):
            arrays = [batch.column(batch.schema.get_field_index(name)) for name in dimension.columns]
            column = dimension.clean_column(arrays, len(dimension.categories) or _SIZE)
            counts[j] += (batch.num_rows, *column.counts())
            if dimension.name in parts:
                parts[dimension.name].append(column.values())
    if not counts[0, 0]:
        raise InvalidInput("0 rows: at least 10 are needed")
    account = Account(schema, counts)
    if unusable := account.unusable():
        raise refusal(unusable, "remove the dimension from the schema")
    return pa.table({name: pa.chunked_array(chunks) for name, chunks in parts.items()}), account
