"""Numbers, dates and times that are written as strings: their plain form, and the types of columns of strings."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hdr4me.io.source import RecordFiles
from hdr4me.survey import Schema
from hdr4me.survey.columns import is_text, texts_as_numbers
from hdr4me.survey.values import is_missing_number


def sets_forms(options: RecordFiles) -> bool:
    """Whether the options set a form of numbers or dates."""
    return any((options.decimal, options.thousands, options.date_format))


def in_plain_form(batch: pa.RecordBatch, options: RecordFiles, schema: Schema) -> pa.RecordBatch:
    """The batch with numbers in the notation of Python, and dates and times in ISO 8601."""
    if not sets_forms(options):
        return batch
    for name, reader in schema.readers.items():
        j = batch.schema.get_field_index(name)
        column: Any = batch.column(j)
        if reader.is_time:
            column = _plain_times(column, options)
        elif not reader.is_text and is_text(column.type):
            column = _plain_numbers(column, options)
        batch = batch if column is batch.column(j) else batch.set_column(j, name, column)
    return batch


def _plain_numbers(column: Any, options: RecordFiles) -> Any:
    for old, new in ((options.thousands, ""), (options.decimal, ".")):
        column = column if old is None else pc.replace_substring(column, old, new)
    return column


def _plain_times(column: Any, options: RecordFiles) -> Any:
    """Strings in the form of the option as ISO 8601; other strings unchanged."""
    if options.date_format is None or not is_text(getattr(column.type, "value_type", column.type)):
        return column
    encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
    distinct = [_plain_time(text, options.date_format) for text in encoded.dictionary.to_pylist()]
    return pa.array(distinct, pa.string()).take(encoded.indices)


def _plain_time(text: str, forms: str) -> str:
    for form in forms.split("|"):
        try:
            found = datetime.strptime(text.strip(), form)
        except ValueError:
            continue
        by_day = any(code in form for code in ("%d", "%j", "%x", "%c", "%D", "%F"))
        return found.isoformat() if by_day or "%H" not in form else found.time().isoformat()
    return text


def with_types(table: pa.Table, options: RecordFiles) -> pa.Table:
    """The table with each column of strings as Booleans, numbers or times if all its values are such."""
    columns = [_typed(table.column(name).combine_chunks(), options) for name in range(table.num_columns)]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _typed(column: Any, options: RecordFiles) -> Any:
    if not is_text(column.type):
        return column
    distinct = [x for x in pc.unique(column).to_pylist() if x is not None and not is_missing_number(x)]
    if not distinct:
        return pa.nulls(len(column)) if column.null_count == len(column) else column
    if all(x.strip().lower() in ("true", "false") for x in distinct):
        return pc.utf8_lower(pc.utf8_trim_whitespace(_without_gaps(column))).cast(pa.bool_())
    numbers, n_unknown = texts_as_numbers(_plain_numbers(column, options))
    if not n_unknown:
        return pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)
    encoded = pc.dictionary_encode(_plain_times(_without_gaps(column), options))
    from hdr4me.survey.times import Moment

    moments = [Moment.of(text) for text in encoded.dictionary.to_pylist()]
    if all(moment is not None and moment.day is not None for moment in moments):
        return pa.array([moment.time for moment in moments if moment], pa.timestamp("us")).take(
            encoded.indices
        )
    if all(moment is not None and moment.day is None for moment in moments):
        clocks = [moment.time.time() for moment in moments if moment]
        return pa.array(clocks, pa.time64("us")).take(encoded.indices)
    return column


def _without_gaps(column: Any) -> Any:
    """The strings, null where a value is missing."""
    gaps = [is_missing_number(x) for x in pc.unique(column).to_pylist()]
    return pc.if_else(
        pc.is_in(column, pc.unique(column).filter(pa.array(gaps))), pa.scalar(None, pa.string()), column
    )
