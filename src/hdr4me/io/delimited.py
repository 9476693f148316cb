"""CSV files as Arrow batches: fields separated by any character, told by the header."""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as pv

from hdr4me.errors import FormatError
from hdr4me.io.origin import STANDARD_INPUT
from hdr4me.io.text import BLOCK, Text, open_text, wrong_encoding

__all__ = ["DELIMITERS", "open_delimited", "read_delimited", "read_header"]

DELIMITERS = (",", ";", "\t", "|")
"""Tried in this order; the first one under which the header has every name that is asked for is taken."""

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|\Z)")


def read_header(text: Text, names: Sequence[str], delimiter: str | None) -> tuple[list[str], str]:
    """The fields of the header, and the delimiter under which it has all `names`, or else the most fields.

    Nothing of the header goes into a message: a file without a header begins with a record.
    """
    lines = _header_lines(text)
    found: list[tuple[list[str], str]] = []
    for mark in DELIMITERS if delimiter is None else (delimiter,):
        try:
            fields = next(csv.reader(lines, delimiter=mark))
        except csv.Error:
            raise FormatError(
                f"{text.name}: a field of the header is longer than {csv.field_size_limit():,} characters"
            ) from None
        if names and set(names) <= set(fields):
            return fields, mark
        found.append((fields, mark))
    return max(found, key=lambda pair: len(pair[0]))


def open_delimited(text: Text, names: Sequence[str], delimiter: str | None) -> pv.CSVStreamingReader:
    """All columns of a CSV file, with the types that Arrow finds in its first block."""
    header, mark = read_header(text, names, delimiter)
    _check_twice(text.name, header)
    return pv.open_csv(text.stream, pv.ReadOptions(block_size=BLOCK), pv.ParseOptions(delimiter=mark))


def _check_twice(name: str, header: Sequence[str]) -> None:
    if len(set(header)) < len(header):
        raise FormatError(f"{name} has two columns of the same name")


def _header_lines(text: Text) -> list[str]:
    """The lines of the header: more than one if a quoted field has a line break inside."""
    end = 0
    while True:
        match = _LINE.match(text.head, end)
        assert match is not None  # the pattern matches the empty text
        end = match.end()
        if text.head.count(b'"', 0, end) % 2 == 0:
            break
        if end >= len(text.head):
            raise FormatError(f"{text.name}: a quote is left open in the header")
    try:
        header = text.head[:end].decode("utf-8")
    except UnicodeDecodeError:
        raise wrong_encoding(text.name, "line 1") from None
    if "\0" in header:
        raise FormatError(
            f"{text.name}: the header holds zero bytes; if it is UTF-16 without a mark, give --encoding utf-16-le"
        )
    if not header.strip():
        raise FormatError(f"{text.name}: line 1 is blank where a header is expected")
    return header.splitlines(keepends=True)


def read_delimited(
    text: Text, names: Sequence[str], delimiter: str | None = None, *, filled: Collection[str] = ()
) -> Iterator[pa.RecordBatch]:
    """Batches of text columns called `names`; an empty field is null, in the columns `filled` an empty text.

    Every column is read as text and understood as the client would, so that no value can stop the file. Bytes that
    are not text in the encoding are an error that names the row.
    """
    header, mark = read_header(text, names, delimiter)
    missing = [name for name in names if name not in set(header)]
    if missing:
        raise FormatError(_no_column(text.name, missing, len(header), mark))
    _check_twice(text.name, header)
    types: Any = {name: pa.binary() for name in names}
    convert = pv.ConvertOptions(
        column_types=types, include_columns=list(names), strings_can_be_null=True, null_values=[""]
    )
    # In a file of one column an empty line is a record whose value is missing.
    parse = pv.ParseOptions(delimiter=mark, ignore_empty_lines=len(header) > 1)
    read = pv.ReadOptions(block_size=BLOCK)
    n = 0
    try:
        with pv.open_csv(text.stream, read, parse, convert) as reader:
            for batch in reader:
                if batch.num_rows:
                    yield _as_text(batch, text.name, n, filled)
                    n += batch.num_rows
    except pa.ArrowException:  # Arrow quotes the line that it could not read: a record
        raise FormatError(f"{text.name} is not a whole CSV file: {_odd_line(text, mark, n)}") from None
    if not n:
        raise FormatError(f"{text.name} has a header and no records")


def _no_column(name: str, missing: Sequence[str], n_fields: int, mark: str) -> str:
    shown = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
    by = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "vertical bars"}.get(mark, repr(mark))
    return (
        f"{name} has no column {shown}: its first line has {n_fields:,} field{'s' * (n_fields > 1)}, separated by "
        f"{by}, and must be a header with the columns' names (--delimiter says what separates them)"
    )


def _as_text(batch: pa.RecordBatch, name: str, before: int, filled: Collection[str]) -> pa.RecordBatch:
    """The batch with its bytes known to be UTF-8."""
    columns: list[Any] = []
    for field, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            text: Any = column.cast(pa.string())
            columns.append(text.fill_null("") if field in filled else text)
        except pa.ArrowInvalid:
            row = next(i for i, value in enumerate(column.to_pylist()) if value and not _is_utf8(value))
            raise wrong_encoding(name, f"row {before + row + 1:,}") from None
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _odd_line(text: Text, mark: str, n_read: int) -> str:
    """Which line is unlike the header, in numbers alone; standard input cannot be read again."""
    unknown = (
        f"after row {n_read:,} a record is too long, has another number of columns, or leaves a quote open"
    )
    if text.path == STANDARD_INPUT:
        return unknown
    with open_text(text.path, text.encoding) as again:
        lines = (line.decode("utf-8", "replace") for line in again.stream)
        reader = csv.reader(lines, delimiter=mark)
        try:
            width = len(next(reader))
            for row in reader:
                if row and len(row) != width:
                    return f"line {reader.line_num:,} has {len(row)} columns, the header has {width}"
        except csv.Error:
            return unknown
    return "a record is too long, or a quote is left open"
