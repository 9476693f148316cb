"""Text records as Arrow batches: CSV files, and JSON lines with one object a line."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePath
from typing import Any

import pyarrow as pa
import pyarrow.csv as pv

from hdr4me.errors import FormatError
from hdr4me.io.origin import BLOCK, STANDARD_INPUT, Text, open_text, wrong_encoding
from hdr4me.survey import Categorical, Dimension, Numeric, Selection, Vector
from hdr4me.survey.categorical import SEPARATOR
from hdr4me.survey.values import as_number

_LINES = (".jsonl", ".ndjson", ".json")
_COMPRESSION = (".gz", ".zst", ".bz2")


def is_lines(text: Text) -> bool:
    """Whether text is JSON lines rather than CSV: by the name's suffix, or because it begins with a brace."""
    name = PurePath(text.path.lower())
    suffix = PurePath(name.stem).suffix if name.suffix in _COMPRESSION else name.suffix
    return suffix in _LINES or text.head.lstrip()[:1] == b"{"


# -- CSV -------------------------------------------------------------------------------------------------------

# Tried in this order; the first one under which the header has every name that is asked for is taken.
DELIMITERS = (",", ";", "\t", "|")

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|\Z)")


def read_header(text: Text, names: Sequence[str], delimiter: str | None) -> tuple[list[str], str]:
    """The fields of the header, and the delimiter under which it has all `names`, or else the most fields."""
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


def _check_twice(name: str, header: Sequence[str]) -> None:
    if len(set(header)) < len(header):
        raise FormatError(f"{name} has two columns of the same name")


def open_delimited(text: Text, names: Sequence[str], delimiter: str | None) -> pv.CSVStreamingReader:
    """All columns of a CSV file, with the types that Arrow finds in its first block."""
    header, mark = read_header(text, names, delimiter)
    _check_twice(text.name, header)
    return pv.open_csv(text.stream, pv.ReadOptions(block_size=BLOCK), pv.ParseOptions(delimiter=mark))


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
    """Batches of text columns called `names`; an empty field is null, in the columns `filled` an empty text."""
    header, mark = read_header(text, names, delimiter)
    missing = [name for name in names if name not in set(header)]
    if missing:
        shown = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
        by = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "vertical bars"}.get(mark, repr(mark))
        raise FormatError(
            f"{text.name} has no column {shown}: its first line has {len(header):,} field{'s' * (len(header) > 1)}, "
            f"separated by {by}, and must be a header with the columns' names (--delimiter says what separates them)"
        )
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


def _as_text(batch: pa.RecordBatch, name: str, before: int, filled: Collection[str]) -> pa.RecordBatch:
    """The batch with its bytes known to be UTF-8."""
    columns: list[Any] = []
    for field, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            text: Any = column.cast(pa.string())
            columns.append(text.fill_null("") if field in filled else text)
        except pa.ArrowInvalid:
            values = enumerate(column.to_pylist())
            row = next(i for i, x in values if x and x.decode("utf-8", "replace").encode() != x)
            raise wrong_encoding(name, f"row {before + row + 1:,}") from None
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


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


# -- JSON lines ------------------------------------------------------------------------------------------------

# Objects are parsed this many bytes at a time: as Python objects they take many times as much.
_PIECE = 1 << 22

_NOTHING = "\ufffd"  # stands for a value that names no number and no category, such as a list
_HALF = re.compile("[\ud800-\udfff]")  # half of a surrogate pair, which has no UTF-8 form


def read_lines(text: Text, dimensions: Sequence[Dimension]) -> Iterator[pa.RecordBatch]:
    """Batches with a column for each dimension; a field that an object lacks is null, as it is on a device.

    A name that no object of the file has is an error at its end: it is misspelt.
    """
    names = [dimension.columns[0] for dimension in dimensions]
    unseen = set(names)
    for rows in read_objects(text):
        unseen -= {name for name in unseen if any(name in row for row in rows)}
        columns = [
            _column([row.get(name) for row in rows], x) for name, x in zip(names, dimensions, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, names=names)
    if unseen:
        raise FormatError(f"{text.name}: no record has a field {', '.join(map(repr, sorted(unseen)[:5]))}")


def read_objects(text: Text) -> Iterator[list[dict[str, Any]]]:
    """The objects of a file, some thousands at a time; blank lines are passed over and counted as lines."""
    n_lines = n_objects = 0
    rest = b""
    while True:
        piece = text.stream.read(_PIECE)
        whole, _, rest = (rest + piece).rpartition(b"\n") if piece else (rest, b"", b"")
        if not piece and not whole:
            break
        if len(rest) > BLOCK:
            raise FormatError(f"{text.name}, line {n_lines + 1:,}: longer than {BLOCK:,} bytes")
        if not whole:
            continue
        lines = whole.split(b"\n")
        rows = _objects(lines, text.name, n_lines)
        n_lines += len(lines)
        n_objects += len(rows)
        if rows:
            yield rows
    if not n_objects:
        raise FormatError(f"{text.name} holds no records")


def _objects(lines: list[bytes], name: str, before: int) -> list[dict[str, Any]]:
    kept = [line for line in lines if line.strip()]
    try:  # one call for all of them is several times quicker than one for each
        rows = json.loads(b"[" + b",".join(kept) + b"]")
    except (ValueError, RecursionError):
        rows = None
    if rows is not None and len(rows) == len(kept) and all(type(row) is dict for row in rows):
        return rows  # type: ignore[no-any-return]
    for number, line in enumerate(lines, before + 1):
        try:
            row = json.loads(line) if line.strip() else {}
        except UnicodeDecodeError:
            raise wrong_encoding(name, f"line {number:,}") from None
        except (ValueError, RecursionError):
            row = None
        if type(row) is not dict:
            raise FormatError(
                f"{name}, line {number:,}: not a JSON object (JSON lines have one object a line)"
            )
    raise FormatError(f"{name}, lines {before + 1:,} to {before + len(lines):,}: not one JSON object a line")


def _column(values: list[Any], dimension: Dimension) -> Any:
    """Values of one type as they are; mixed ones as texts, which mean the same to the client."""
    if isinstance(dimension, Vector):
        return pa.array([_numbers(value) for value in values], pa.list_(pa.float64()))
    if isinstance(dimension, Selection):
        return pa.array([_choices(value) for value in values], pa.string())
    if isinstance(dimension, Numeric):
        alike = all(value is None or type(value) in (int, float) for value in values)
        return _array(values, pa.float64() if alike else pa.string())
    # Of a dimension of another package whatever type Arrow finds.
    return _array(values, pa.string() if isinstance(dimension, Categorical) else None)


def _array(values: list[Any], kind: Any = None) -> Any:
    """The values as an array of one type; as texts if they are of several, or beyond what Arrow can hold."""
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, OverflowError, UnicodeError):
        return pa.array([_text(value) for value in values], pa.string())


def table_of(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Objects as a table of all their fields, with the types that the values have."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: _array([row.get(name) for row in rows]) for name in names})


def _numbers(value: Any) -> list[float] | None:
    """The numbers of a list, or of a text with bars; what is neither is an empty list."""
    if value is None or value == "":
        return None
    if isinstance(value, str):
        value = value.split(SEPARATOR)
    return [as_number(part) for part in value] if isinstance(value, list) else []


def _choices(value: Any) -> str | None:
    """A list of choices as one text."""
    if not isinstance(value, list):
        return _text(value)
    return SEPARATOR.join(_text(item) or "" for item in value) or SEPARATOR  # nothing chosen, and not missing


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return None if value is None else _NOTHING if _HALF.search(value) else value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if value.bit_length() < 4096 else ("1e999" if value > 0 else "-1e999")
    return repr(value) if isinstance(value, float) else _NOTHING
