"""JSON lines as Arrow batches: one object a line, its fields the columns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from hdr4me.errors import FormatError
from hdr4me.io.text import BLOCK, Text, wrong_encoding
from hdr4me.survey import Categorical, Dimension, Numeric, Selection, Vector
from hdr4me.survey.selection import SEPARATOR
from hdr4me.survey.values import as_number

__all__ = ["read_lines", "read_objects"]

_PIECE = 1 << 22
"""Objects are parsed this many bytes at a time: as Python objects they take many times as much."""

_NOTHING = "\ufffd"
"""Stands for a value that names no number and no category, such as a list."""
_HALF = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair, which has no UTF-8 form."""


def read_lines(text: Text, dimensions: Sequence[Dimension]) -> Iterator[pa.RecordBatch]:
    """Batches with a column for each dimension; a field that an object lacks is null, as it is on a device.

    A name that no object of the file has is an error at its end: it is misspelt.
    """
    unseen = {dimension.name for dimension in dimensions}
    for rows in read_objects(text):
        unseen -= {name for name in unseen if any(name in row for row in rows)}
        columns = [_column([row.get(dimension.name) for row in rows], dimension) for dimension in dimensions]
        yield pa.RecordBatch.from_arrays(columns, names=[dimension.name for dimension in dimensions])
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
    for i, line in enumerate(lines):
        if line.strip():
            _check_object(line, name, before + i + 1)
    raise FormatError(f"{name}, lines {before + 1:,} to {before + len(lines):,}: not one JSON object a line")


def _check_object(line: bytes, name: str, number: int) -> None:
    try:
        row = json.loads(line)
    except UnicodeDecodeError:
        raise wrong_encoding(name, f"line {number:,}") from None
    except (ValueError, RecursionError):
        row = None
    if type(row) is not dict:
        raise FormatError(f"{name}, line {number:,}: not a JSON object (JSON lines have one object a line)")


def _column(values: list[Any], dimension: Dimension) -> Any:
    """Values of one type as they are; mixed ones as texts, which mean the same to the client."""
    if isinstance(dimension, Vector):
        return pa.array([_numbers(value) for value in values], pa.list_(pa.float64()))
    if isinstance(dimension, Selection):
        return pa.array([_choices(value) for value in values], pa.string())
    kind: Any
    if isinstance(dimension, Categorical):
        alike, kind = all(value is None or isinstance(value, str) for value in values), pa.string()
    elif isinstance(dimension, Numeric):
        alike, kind = all(value is None or type(value) in (int, float) for value in values), pa.float64()
    else:
        alike, kind = True, None  # a dimension of another package: whatever type Arrow finds
    try:
        if alike:
            return pa.array(values, kind)
    except (pa.ArrowException, OverflowError, UnicodeError):
        pass  # mixed types, integers beyond 64 bits, halves of surrogate pairs
    return pa.array([_text(value) for value in values], pa.string())


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
