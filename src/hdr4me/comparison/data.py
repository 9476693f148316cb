"""Public data as a table with a schema; without a given schema, ranges and categories come from the data."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hdr4me.errors import InvalidInput
from hdr4me.io import DataQuality
from hdr4me.io.quality import refusal
from hdr4me.io.reading import read_records, read_table
from hdr4me.survey import Categorical, Dimension, Numeric, Schema, Selection, Vector
from hdr4me.survey.columns import is_text
from hdr4me.survey.times import Time

_MOST_CATEGORIES = 1000  # a text column with more distinct values is treated as an identifier
REMEDY = "Or remove the dimension from the schema"
_ROWS = 1 << 17
_SIZE = 2**20 + 1  # the number of inputs of a fine channel, for dimensions that encode values as positions


def subject(names: Iterable[str]) -> str:
    """Names of columns and the verb, as the subject of a sentence."""
    listed = list(names)
    more = f" and {len(listed) - 5:,} more" if len(listed) > 5 else ""
    return f"{', '.join(map(repr, listed[:5]))}{more} {'is' if len(listed) == 1 else 'are'}"


def _needs_raw_columns(dimension: Dimension) -> bool:
    """Whether a table of clean values has the raw columns of a dimension: it would not accept its own clean values."""
    return dimension.is_derived or dimension.is_time


def clean_values(dimension: Dimension, table: pa.Table) -> Any:
    """The clean values of a dimension in a table of `cleaned`, as one array."""
    columns: list[Any] = [table.column(name).combine_chunks() for name in dimension.columns]
    if not _needs_raw_columns(dimension):
        return columns[0]
    return dimension.clean_column(columns, len(dimension.categories) or _SIZE).values()


def cleaned(data: Any, schema: Schema) -> tuple[pa.Table, DataQuality]:
    """The columns of a schema, cleaned as on a device if `clean_values` needs that, and the data-quality report."""
    counts = np.zeros((len(schema), 5), np.int64)
    parts: dict[str, list[Any]] = {name: [] for name in schema.columns}
    raw = set(schema.columns) - {x.name for x in schema if not _needs_raw_columns(x)}
    for batch in read_records(data, schema, _ROWS):
        for j, dimension in enumerate(schema):
            arrays = [batch.column(batch.schema.get_field_index(name)) for name in dimension.columns]
            column = dimension.clean_column(arrays, len(dimension.categories) or _SIZE)
            counts[j] += (batch.num_rows, *column.counts())
            if not _needs_raw_columns(dimension):
                parts[dimension.name].append(column.values())
        for name in raw:
            parts[name].append(batch.column(batch.schema.get_field_index(name)))
    if not counts[0, 0]:
        raise InvalidInput("the data have 0 rows: at least 10 are needed")
    quality = DataQuality(schema, counts)
    if unusable := quality.unusable():
        raise refusal(unusable, REMEDY)
    return pa.table({name: pa.chunked_array(chunks) for name, chunks in parts.items()}), quality


def public_table(
    data: Any, columns: list[str] | None = None, schema: Schema | None = None
) -> tuple[pa.Table, Schema, list[str], DataQuality]:
    """The cleaned values, their schema, notes about what was left out, and the data-quality report."""
    notes: list[str] = []
    if schema is None:
        data, schema, notes = _own_schema(read_table(data), columns)
    table, quality = cleaned(data, schema)
    if refused := quality.refused():
        raise refusal(refused, REMEDY)
    if table.num_rows < 10:
        raise InvalidInput(f"{table.num_rows} rows: at least 10 are needed")
    return table, schema, [*notes, *quality.notes()], quality


def _own_schema(table: pa.Table, columns: list[str] | None) -> tuple[pa.Table, Schema, list[str]]:
    """The rows without missing values, the schema of the columns, and notes about what was left out."""
    missing = [name for name in columns or [] if name not in table.column_names]
    if missing:
        raise InvalidInput.of("columns", missing[0], f"one of {', '.join(table.column_names)}")
    made = {name: _dimension(name, table.column(name)) for name in columns or table.column_names}
    notes = [f"{name!r} is left out: {why}" for name, why in made.items() if isinstance(why, str)]
    dimensions = [dimension for dimension in made.values() if not isinstance(dimension, str)]
    if not dimensions:
        raise InvalidInput("no column is left to compare: " + "; ".join(notes))
    schema = Schema(dimensions)
    chosen = table.select(list(schema.names))
    complete = chosen.drop_null()
    if complete.num_rows < chosen.num_rows:
        gaps = chosen.num_rows - complete.num_rows
        notes.append(f"{gaps:,} of {chosen.num_rows:,} rows have missing values and are left out")
    if complete.num_rows < 10:
        raise InvalidInput(f"{complete.num_rows} rows without missing values: at least 10 are needed")
    return complete, schema, notes


def _dimension(name: str, column: Any) -> Dimension | str:
    """The dimension of a column, or why the column is left out."""
    kind = column.type
    if not name.strip():
        return "it has no name"
    if 2 * column.null_count > len(column):
        return "more than half of its values are missing"
    if pa.types.is_boolean(kind):
        return Categorical(name, ["false", "true"])
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        values = column.drop_null().to_numpy(zero_copy_only=False).astype(float)
        values = values[np.isfinite(values)]
        if not len(values) or values.min() == values.max():
            return "all its values are equal"
        return Numeric(name, float(values.min()), float(values.max()))
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        ends: Any = pc.min_max(column.cast(pa.date32())).as_py()
        if ends["min"] == ends["max"]:
            return "all its values are equal"
        return Time(name, ends["min"], ends["max"] + timedelta(days=1))
    if pa.types.is_time(kind):
        return Time(name, "00:00", "24:00", "h")
    if pa.types.is_dictionary(kind) or is_text(kind):
        found = sorted(str(x) for x in pc.unique(column.cast(pa.string())).to_pylist() if x is not None)
        if not 2 <= len(found) <= _MOST_CATEGORIES:
            return f"it has {len(found):,} distinct values" if found[1:] else "all its values are equal"
        return Categorical(name, found)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _of_lists(name, column.drop_null().combine_chunks())
    return f"columns of type {kind} are not compared"


def _of_lists(name: str, lists: Any) -> Dimension | str:
    """A selection for lists of texts, or a vector for lists of equally many numbers."""
    flat, sizes = lists.flatten(), np.asarray(pc.list_value_length(lists), np.int64)
    if pa.types.is_string(flat.type) or pa.types.is_large_string(flat.type):
        found = sorted(str(x) for x in pc.unique(flat).to_pylist() if x is not None)
        if not 2 <= len(found) <= _MOST_CATEGORIES:
            return f"its lists have {len(found):,} distinct values"
        try:
            return Selection(name, found, at_most=int(min(sizes.max(), len(found))))
        except InvalidInput as error:
            return f"its lists are not a selection ({error})"
    if not (pa.types.is_integer(flat.type) or pa.types.is_floating(flat.type)):
        return f"lists of type {flat.type} are not compared"
    if len(np.unique(sizes)) != 1 or not sizes[0]:
        return "its lists have different lengths"
    vectors = np.nan_to_num(np.asarray(flat.fill_null(0), np.float64)).reshape(len(lists), sizes[0])
    norm = float(np.sqrt(np.square(vectors).sum(axis=1)).max())
    return Vector(name, int(sizes[0]), norm=norm) if norm > 0 else "all its values are equal"
