"""A schema from a data file's column names and types; the only part of this room that opens data."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hdr4me.errors import FormatError, InvalidInput
from hdr4me.survey.dimensions import Categorical, Dimension, Numeric
from hdr4me.survey.schema import Schema

__all__ = ["infer"]


def infer(
    path: str | os.PathLike[str],
    *,
    ranges: Mapping[str, tuple[float, float]],
    categories: Mapping[str, Sequence[Any]],
    columns: Sequence[str] | None,
) -> Schema:
    """One dimension for each column (or each of `columns`), in the file's order.

    Only names and types are taken from the file. Columns of truth values need nothing else; every other one
    needs a range or categories from the caller, and the error names all that lack them.
    """
    types = _column_types(path)
    asked = list(types) if columns is None else list(columns)
    unknown = sorted({*asked, *ranges, *categories} - set(types))
    if unknown:
        raise InvalidInput(f"{path} has no column {', '.join(map(repr, unknown))}")
    missing_range = [
        name for name in asked if types[name] == "number" and name not in {**ranges, **categories}
    ]
    given = {**ranges, **categories}
    missing_list = [name for name in asked if types[name] == "text" and name not in given]
    if missing_range:
        raise InvalidInput(f"numeric columns without a range: {', '.join(map(repr, missing_range))}")
    if missing_list:
        raise InvalidInput(f"text columns without categories: {', '.join(map(repr, missing_list))}")
    return Schema(_dimension(name, types[name], ranges, categories) for name in asked)


def _dimension(
    name: str, kind: str, ranges: Mapping[str, tuple[float, float]], categories: Mapping[str, Sequence[Any]]
) -> Dimension:
    if name in categories:
        return Categorical(name, categories[name])
    if kind == "truth" and name not in ranges:
        return Categorical(name, ["false", "true"])
    if kind not in ("number", "truth", "text"):  # numbers among which something else stood are text
        raise InvalidInput(
            f"column {name!r} is of type {kind}: only numbers, texts and truth values can be asked"
        )
    pair = ranges[name]
    if isinstance(pair, str) or len(pair) != 2:
        raise InvalidInput(f"range of {name!r} = {pair!r} must be a pair (low, high)")
    return Numeric(name, *pair)


def _column_types(path: str | os.PathLike[str]) -> dict[str, str]:
    import pyarrow as pa

    with Path(path).open("rb") as file:
        start = file.read(6)
    read = _parquet if start[:4] == b"PAR1" else _arrow if start == b"ARROW1" else _csv
    try:
        schema = read(str(path))
    except pa.ArrowException:  # its message may hold a line of the data: it goes no further
        raise FormatError(f"{path} is not a whole file of Parquet, Arrow IPC or CSV") from None
    if len(set(schema.names)) < len(schema.names):
        raise FormatError(f"{path} has two columns of the same name")
    return {field.name: _kind(field.type) for field in schema}


def _parquet(path: str) -> Any:
    import pyarrow.parquet as pq

    return pq.read_schema(path)


def _arrow(path: str) -> Any:
    import pyarrow as pa

    with pa.memory_map(path) as source:
        return pa.ipc.open_file(source).schema


def _csv(path: str) -> Any:
    import pyarrow.csv as pv

    with pv.open_csv(path) as reader:  # types from the first block only: nothing else is read
        return reader.schema


def _kind(column: Any) -> str:
    import pyarrow.types as types

    if types.is_dictionary(column):
        column = column.value_type
    if types.is_boolean(column):
        return "truth"
    if types.is_integer(column) or types.is_floating(column) or types.is_decimal(column):
        return "number"
    if types.is_string(column) or types.is_large_string(column) or types.is_null(column):
        return "text"
    return str(column)
