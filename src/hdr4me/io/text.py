"""Text records as Arrow batches: CSV files, and JSON lines with one object per line."""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, time
from pathlib import PurePath
from typing import Any

import pyarrow as pa
import pyarrow.csv as pv

from hdr4me.errors import FormatError
from hdr4me.io.source import BLOCK, STANDARD_INPUT, Text, open_text, wrong_encoding
from hdr4me.survey import Categorical, Dimension, Numeric, Selection, Vector
from hdr4me.survey.categorical import SEPARATOR
from hdr4me.survey.derived import UNREADABLE
from hdr4me.survey.values import as_number, is_blank, is_missing_number, label, plain

_LINES = (".jsonl", ".ndjson", ".json")
_COMPRESSION = (".gz", ".zst", ".bz2")


def is_lines(text: Text) -> bool:
    """Whether text is JSON lines rather than CSV: by the suffix of the name, or because it begins with a brace."""
    name = PurePath(text.path.lower())
    suffix = PurePath(name.stem).suffix if name.suffix in _COMPRESSION else name.suffix
    return suffix in _LINES or text.head.lstrip()[:1] == b"{" or _is_array(text)


def _is_array(text: Text) -> bool:
    """Whether text is a JSON array of objects."""
    return re.match(rb"\s*\[\s*[{\]]", text.head) is not None


# -- CSV -------------------------------------------------------------------------------------------------------

# Tried in this order until the header has all requested names.
DELIMITERS = (",", ";", "\t", "|")

_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n|\Z)")


def read_header(text: Text, names: Sequence[str], delimiter: str | None) -> tuple[list[str], str]:
    """The fields of the header, and the delimiter with which it has all `names`, or else the most fields."""
    lines = _header_lines(text)
    found: list[tuple[list[str], str]] = []
    for mark in DELIMITERS if delimiter is None else (delimiter,):
        try:
            fields = without_duplicates(next(csv.reader(lines, delimiter=mark)))
        except csv.Error:
            raise FormatError(
                f"{text.name}: a field of the header is longer than {csv.field_size_limit():,} characters"
            ) from None
        if names and set(names) <= set(fields):
            return fields, mark
        found.append((fields, mark))
    return max(found, key=lambda pair: len(pair[0]))


def without_duplicates(names: Sequence[str]) -> list[str]:
    """The names of columns, with a number after each name that several columns have.

    >>> without_duplicates(["age", "x", "x"])
    ['age', 'x (1)', 'x (2)']
    """
    total, seen, found = Counter(names), Counter[str](), []
    for name in names:
        seen[name] += 1
        found.append(f"{name} ({seen[name]})" if total[name] > 1 else name)
    return found


def is_header(names: Sequence[str], numbers: Collection[str], given: Iterable[str]) -> bool:
    """Whether a first row is known to hold the names of columns; otherwise it may be a record.

    It has one of the `given` names, in any case; or it has words, or blanks, above all columns of `numbers`.

    >>> is_header(["age", "town"], ["age"], []), is_header(["31", "Bonn"], ["31"], []), is_header(["Smith"], [], [])
    (True, False, False)
    """
    if {_simplified(name) for name in given} & set(map(_simplified, names)):
        return True
    return any(map(_is_word, numbers)) and all(_is_word(name) or not name.strip() for name in numbers)


def _simplified(name: str) -> str:
    return name.strip().casefold()


def _is_word(name: str) -> bool:
    """Whether a name can be neither a number, a date nor a missing value."""
    from hdr4me.survey.times import Moment

    name = re.sub(r" \(\d+\)$", "", name)  # the number of one of several columns of the same name
    return math.isnan(as_number(name)) and Moment.of(name) is None and not is_missing_number(name)


def _header_lines(text: Text) -> list[str]:
    """The lines of the header; several if a quoted field contains a line break."""
    end = 0
    while True:
        match = _LINE.match(text.head, end)
        assert match is not None  # the pattern matches the empty text
        end = match.end()
        if text.head.count(b'"', 0, end) % 2 == 0:
            break
        if end >= len(text.head):
            raise FormatError(f"{text.name}: a quote in the header is not closed")
    if b"\0" in text.head[:end]:
        raise FormatError(
            f"{text.name}: the header contains zero bytes; for UTF-16 without a byte order mark, specify "
            "--encoding utf-16-le; save the file of another program as CSV, Parquet or Excel"
        )
    try:
        header = text.head[:end].decode("utf-8")
    except UnicodeDecodeError:
        raise wrong_encoding(text.name, "line 1") from None
    if not header.strip():
        raise FormatError(f"{text.name}: line 1 is blank; a header is expected")
    return header.splitlines(keepends=True)


def read_delimited(
    text: Text,
    names: Sequence[str] | None,
    delimiter: str | None = None,
    *,
    filled: Collection[str] = (),
    hints: Sequence[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Batches of string columns called `names`, or of all columns; then `hints` are some, which fix the delimiter.

    An empty field is null, or an empty string in the columns `filled`.
    """
    header, mark = read_header(text, hints if names is None else names, delimiter)
    if names is None:
        names = header
    elif missing := [name for name in names if name not in set(header)]:
        raise FormatError(
            f"{text.name} has no column {_not_there(missing, header, mark, known=len(missing) < len(names))}"
        )
    types: Any = {name: pa.binary() for name in names}
    convert = pv.ConvertOptions(
        column_types=types, include_columns=list(names), strings_can_be_null=True, null_values=[""]
    )
    # In a file of one column an empty line is a record whose value is missing.
    parse = pv.ParseOptions(delimiter=mark, ignore_empty_lines=len(header) > 1)
    read = pv.ReadOptions(block_size=BLOCK)
    if any(name.endswith(")") for name in header):  # the file may have other names
        read.column_names, read.skip_rows = header, sum(map(_breaks, _header_lines(text)))
    n = 0
    try:
        with pv.open_csv(text.stream, read, parse, convert) as reader:
            for batch in reader:
                if batch.num_rows:
                    yield _as_text(batch, text.name, n, filled)
                    n += batch.num_rows
    except pa.ArrowException:  # Arrow quotes the line that it could not read: a record
        raise FormatError(f"{text.name} is not a valid CSV file: {_odd_line(text, mark, n)}") from None
    if not n:
        raise FormatError(f"{text.name} has a header but no records")


def _breaks(line: str) -> int:
    return line.endswith(("\n", "\r"))


def _not_there(missing: Sequence[str], header: Sequence[str], mark: str, *, known: bool) -> str:
    """The rest of an error about missing columns; `known` if the first line has other columns, so it is a header."""
    names = ", ".join(map(repr, missing[:5])) + (", ..." if len(missing) > 5 else "")
    near = {_simplified(name): name for name in header}
    for name in missing:
        if f"{name} (1)" in header:
            return f"{name!r} alone: several columns have this name; use {name + ' (1)'!r}, {name + ' (2)'!r} ..."
        if _simplified(name) in near:
            return f"{name!r}; did you mean {near[_simplified(name)]!r}?"
    if known:
        return names
    by = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "vertical bars"}.get(mark, repr(mark))
    return (
        f"{names}: its first line has {len(header):,} field{'s' * (len(header) > 1)}, "
        f"separated by {by}, and must be a header with the names of the columns (--delimiter sets the separator)"
    )


def _as_text(batch: pa.RecordBatch, name: str, before: int, filled: Collection[str]) -> pa.RecordBatch:
    """The batch as strings; an error unless its bytes are UTF-8."""
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
    """Describe the invalid line by numbers only; standard input cannot be read again."""
    unknown = f"after row {n_read:,} a record is too long, has the wrong number of columns, or has an unclosed quote"
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
    return "a record is too long, or a quote is not closed"


# -- JSON lines ------------------------------------------------------------------------------------------------

# Objects are parsed this many bytes at a time, since Python objects need much more memory.
_PIECE = 1 << 22

_HALF = re.compile("[\ud800-\udfff]")  # a lone surrogate has no UTF-8 form


def read_lines(text: Text, readers: Mapping[str, Dimension]) -> Iterator[pa.RecordBatch]:
    """Batches with a column for each name, given with its dimension; a field that an object lacks is null.

    A name that no object of the file has is an error at the end: it is probably misspelled.
    """
    return batches_of_rows(read_objects(text), readers, text.name)


def batches_of_rows(
    blocks: Iterable[list[dict[str, Any]]], readers: Mapping[str, Dimension], what: str
) -> Iterator[pa.RecordBatch]:
    """Batches of blocks of records that are dictionaries; `what` is their name in errors."""
    unseen = set(readers)
    for rows in blocks:
        unseen -= {name for name in unseen if any(name in row or _field(row, name) for row in rows)}
        columns = [_column([_field(row, name) for row in rows], reader) for name, reader in readers.items()]
        yield pa.RecordBatch.from_arrays(columns, names=list(readers))
    if unseen:
        raise FormatError(f"{what}: no record has a field {', '.join(map(repr, sorted(unseen)[:5]))}")


def _field(row: Any, name: str) -> Any:
    """The value of a field; a name with points may be that of a field of nested objects."""
    if name in row or "." not in name:
        return row.get(name)
    for part in name.split("."):
        row = row.get(part) if isinstance(row, dict) else None
    return row


def flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The fields of an object, with those of nested objects under names with points.

    >>> flat({"id": 1, "home": {"town": "Bonn"}})
    {'id': 1, 'home.town': 'Bonn'}
    """
    fields: dict[str, Any] = {}
    for name, value in row.items():
        fields |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return fields


def read_objects(text: Text) -> Iterator[list[dict[str, Any]]]:
    """The objects of a file, some thousands at a time; blank lines are ignored but count as lines."""
    n_lines = n_objects = 0
    rest = b""
    if _is_array(text):
        yield _array_of_objects(text)
        return
    while True:
        piece = text.stream.read(_PIECE)
        complete, _, rest = (rest + piece).rpartition(b"\n") if piece else (rest, b"", b"")
        if not piece and not complete:
            break
        if len(rest) > BLOCK:
            raise FormatError(f"{text.name}, line {n_lines + 1:,}: longer than {BLOCK:,} bytes")
        if not complete:
            continue
        lines = complete.split(b"\n")
        rows = _objects(lines, text.name, n_lines)
        n_lines += len(lines)
        n_objects += len(rows)
        if rows:
            yield rows
    if not n_objects:
        raise FormatError(f"{text.name} contains no records")


def _array_of_objects(text: Text) -> list[dict[str, Any]]:
    """The objects of a JSON array, which is read as a whole."""
    try:
        rows = json.loads(text.stream.read())
    except (ValueError, RecursionError):  # the message may quote a record
        raise FormatError(f"{text.name} is not a valid JSON array: it may be truncated") from None
    if not all(type(row) is dict for row in rows):
        raise FormatError(f"{text.name}: an element of the JSON array is not an object")
    if not rows:
        raise FormatError(f"{text.name} contains no records")
    return rows  # type: ignore[no-any-return]


def _objects(lines: list[bytes], name: str, before: int) -> list[dict[str, Any]]:
    nonblank = [line for line in lines if line.strip()]
    try:  # one call for all lines is several times faster than one call per line
        rows = json.loads(b"[" + b",".join(nonblank) + b"]")
    except (ValueError, RecursionError):
        rows = None
    if rows is not None and len(rows) == len(nonblank) and all(type(row) is dict for row in rows):
        return rows  # type: ignore[no-any-return]
    for number, line in enumerate(lines, before + 1):
        try:
            row = json.loads(line) if line.strip() else {}
        except UnicodeDecodeError:
            raise wrong_encoding(name, f"line {number:,}") from None
        except (ValueError, RecursionError):
            row = None
        if type(row) is not dict:
            begun = line.lstrip()[:1] == b"{" and number == 1
            raise FormatError(
                f"{name}, line {number:,}: not a JSON object; JSON lines have one object per line"
                + "; if the file is one object that contains the records, save their array as a file" * begun
            )
    raise FormatError(
        f"{name}, lines {before + 1:,} to {before + len(lines):,}: not one JSON object per line"
    )


def _column(values: list[Any], dimension: Dimension) -> Any:
    """Values of one type unchanged; mixed values as strings, which the client treats alike."""
    if isinstance(dimension, Vector):
        return pa.array([_numbers(value) for value in values], pa.list_(pa.float64()))
    if isinstance(dimension, Selection):
        return pa.array([_choices(value) for value in values], pa.string())
    if dimension.is_time:
        return pa.array([_text(value) for value in values], pa.string())
    if isinstance(dimension, Numeric):
        if all(value is None or type(value) in (int, float) for value in values):
            return _array(values, pa.float64())
        return pa.array([_numeric(value) for value in values], pa.string())
    if dimension.is_text and not isinstance(dimension, Categorical):
        return pa.array([_labeled(value) for value in values], pa.string())
    # For a dimension of another package, the type that Arrow infers.
    return _array(values, pa.string() if isinstance(dimension, Categorical) else None)


def _array(values: list[Any], kind: Any = None) -> Any:
    """The values as an array of one type; as strings if types are mixed or Arrow cannot represent them."""
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return pa.array([_text(value) for value in values], pa.string())


def table_of(objects: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Objects as a table of all their fields, with inferred types."""
    rows = [flat(row) for row in objects]
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: _array([row.get(name) for row in rows]) for name in names})


def _numbers(value: Any) -> list[float] | None:
    """The numbers of a list, or of a string with bars; an empty list for anything else."""
    if isinstance(value, str) and value.strip():
        value = value.split(SEPARATOR)
    if _is_list(value):
        return [as_number(part) for part in value]
    return None if is_blank(value) else []


def _is_list(value: Any) -> bool:
    is_scalar = isinstance(value, str | bytes | Mapping) or getattr(value, "shape", None) == ()
    return isinstance(value, Collection) and not is_scalar


def _choices(value: Any) -> str | None:
    """A list of choices as one string."""
    if not _is_list(value):
        return _text(value)
    # Nothing chosen, which is not missing.
    return SEPARATOR.join(_text(item) or "" for item in value) or SEPARATOR


def _labeled(value: Any) -> str | None:
    """The text of a value as on a device, where a number is written without an exponent."""
    return _text(label(value) or (value if is_blank(value) else UNREADABLE))


def _numeric(value: Any) -> str | None:
    """The text of a value of a column of numbers; a number of another type, such as a decimal, as its digits."""
    text = _text(value)
    return repr(number) if text == UNREADABLE and not math.isnan(number := as_number(value)) else text


def _text(value: Any) -> str | None:
    value = plain(value)
    if isinstance(value, str):
        return UNREADABLE if _HALF.search(value) else value
    if is_blank(value):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if value.bit_length() < 4096 else ("1e999" if value > 0 else "-1e999")
    if isinstance(value, float):
        return repr(value)
    return value.isoformat() if isinstance(value, date | time) else UNREADABLE
