"""Arrow IPC files and streams of columns of bytes, read with bounds on every declared size.

Arrow's own reader maps a file or reads a whole batch, and inflates compressed batches to any size. Here footers and
messages (both flatbuffers) are parsed from bytes in own memory, so a file that changes or lies cannot crash the process
or take more memory than a block; the columns themselves are read block by block.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.io.blocks import Bytes, from_wire
from hdr4me.survey import Survey

MAGIC = b"ARROW1"
_MOST_FOOTER = 1 << 26
_MOST_METADATA = 1 << 20
_SCHEMA, _RECORD_BATCH = 1, 3
_MARK = b"\xff\xff\xff\xff"


class Broken(ValueError):
    """What is wrong with the file, in words."""


Read = Callable[[int, int], Bytes]
"""Reads so many bytes from an offset of the file or stream."""


@dataclass(frozen=True)
class Column:
    """Where a column's buffers stand, each an offset and a length; `offsets` matter if values differ in size."""

    n_nulls: int
    validity: tuple[int, int]
    offsets: tuple[int, int]
    values: tuple[int, int]


@dataclass(frozen=True)
class Batch:
    """Where a batch's columns stand, and what its message says beside them."""

    n_rows: int
    columns: tuple[Column, ...]
    metadata: dict[bytes, bytes]


def batches_of(file: IO[bytes], size: int) -> Iterator[Batch]:
    """The batches of one column that the footer of a file of this size lists, in the file's order.

    Batches must follow one another without overlap: a footer that names one batch a thousand times would cost a
    thousand times its bytes.
    """
    read = reader_of(file, _MOST_FOOTER)
    footer, end = _footer(read, size)
    root = footer.root()
    if any(footer.structs(root, 2, 24)):
        raise Broken("it has dictionaries")
    before = len(MAGIC)
    for at in footer.structs(root, 3, 24):
        offset, length = footer.number("<q", at), footer.number("<i", at + 8)
        body = footer.number("<q", at + 16)
        if offset < before or not 8 <= length <= _MOST_METADATA or not 0 <= body <= end - offset - length:
            raise Broken("a batch stands outside the file, or over another batch")
        before = offset + length + body
        message = bytes(read(offset, length))
        yield _batch(Table(message[8 if message[:4] == _MARK else 4 :]), offset + length, body, 1)


def _footer(read: Read, size: int) -> tuple[Table, int]:
    tail = bytes(read(size - 10, 10)) if size >= 18 else b""
    if tail[4:] != MAGIC:
        raise Broken("its end is missing")
    length = int(struct.unpack("<i", tail[:4])[0])
    if not 8 <= length <= min(_MOST_FOOTER, size - 18):
        raise Broken("its footer has no possible length")
    return Table(bytes(read(size - 10 - length, length))), size - 10 - length


def reader_of(file: Any, most: int) -> Read:
    """Reads a file into own memory, at most so many bytes at once."""

    def read(offset: int, length: int) -> Bytes:
        if length > most:
            raise Broken("a batch's rows are longer than any reports")
        data = np.empty(length, np.uint8)
        file.seek(offset)
        if file.readinto(data.data) != length:
            raise Broken("it became shorter while it was read")
        return data

    return read


def stream_head(data: bytes) -> int:
    """Where the first batch of a stream begins; before it stands the schema."""
    table, start = _message(data, 0)
    if table is None or table.field("<B", table.root(), 1) != _SCHEMA or table.field("<q", table.root(), 3):
        raise Broken("it does not begin with a schema")
    return start


def stream_batches(data: bytes, at: int, n_columns: int) -> Iterator[Batch]:
    """The batches of a stream in memory from the offset `at` to its end, which must be there."""
    while True:
        table, start = _message(data, at)
        if table is None:
            if start != len(data):
                raise Broken("it has bytes after its end")
            return
        length = table.field("<q", table.root(), 3)
        if not 0 <= length <= len(data) - start:
            raise Broken("a batch is longer than the stream")
        yield _batch(table, start, length, n_columns)
        at = start + length


def _message(data: bytes, at: int) -> tuple[Table | None, int]:
    """The message that begins at `at`, or None for the end marker, and where its body begins."""
    if data[at : at + 4] != _MARK or len(data) < at + 8:
        raise Broken("its end is missing")
    length = int.from_bytes(data[at + 4 : at + 8], "little")
    if length == 0:
        return None, at + 8
    if length > min(_MOST_METADATA, len(data) - at - 8):
        raise Broken("a message is longer than the stream")
    return Table(data[at + 8 : at + 8 + length]), at + 8 + length


def _batch(table: Table, start: int, body: int, n_columns: int) -> Batch:
    """The batch of a message whose body of so many bytes begins at `start`; only its last column has offsets."""
    root = table.root()
    if table.field("<B", root, 1) != _RECORD_BATCH:
        raise Broken("it has a message that is not a batch")
    batch = table.child(root, 2)
    if table.where(batch, 3):
        raise Broken("its batches are compressed: reports travel uncompressed in Arrow")
    n_rows = table.field("<q", batch, 0)
    nodes, buffers = list(table.structs(batch, 1, 16)), list(table.structs(batch, 2, 16))
    if len(nodes) != n_columns or len(buffers) - 2 * n_columns not in (0, 1):
        raise Broken("a batch has too many or too few columns")
    spans = []
    for at in buffers:
        offset, length = table.number("<q", at), table.number("<q", at + 8)
        if offset < 0 or not 0 <= length <= body - offset:
            raise Broken("a buffer stands outside its batch")
        spans.append((start + offset, length))
    columns = []
    for k, node in enumerate(nodes):
        n_nulls = table.number("<q", node + 8)
        if table.number("<q", node) != n_rows or not 0 <= n_nulls <= n_rows:
            raise Broken("a batch's columns are not as long as the batch")
        values = spans[-1] if k == n_columns - 1 else spans[2 * k + 1]
        columns.append(Column(n_nulls, spans[2 * k], spans[2 * k + 1], values))
    return Batch(n_rows, tuple(columns), table.pairs(root, 4))


# -- the rows of a column ----------------------------------------------------------------------------------------


def report_rows(
    read: Read, column: Column, survey: Survey, start: int, n: int
) -> tuple[Bytes, NDArray[np.int32] | None, Bytes, NDArray[np.bool_] | None]:
    """The bytes of n reports, their lengths, the padded rows, and which have the right length.

    Lengths and which are right are None if all reports have one size.
    """
    if survey.fixed_size:
        rows = fixed_rows(read, column, survey.report_size, start, n)
        return rows.reshape(-1), None, rows, None
    offsets = fixed_rows(read, Column(0, (0, 0), (0, 0), column.offsets), 4, start, n + 1)
    ends = offsets.reshape(-1).view("<i4").astype(np.int64)
    if ends[0] < 0 or ends[-1] > column.values[1] or (np.diff(ends) < 0).any():
        raise Broken("a batch's rows stand outside it")
    data = read(column.values[0] + int(ends[0]), int(ends[-1] - ends[0]))
    return data, np.diff(ends).astype(np.int32), *from_wire(data, ends - ends[0], survey)


def fixed_rows(read: Read, column: Column, size: int, start: int, n: int) -> Bytes:
    """Rows of `size` bytes each."""
    at, length = column.values
    if length < (start + n) * size:
        raise Broken("a batch is shorter than its rows")
    return read(at + start * size, n * size).reshape(n, size)


def null_rows(read: Read, column: Column, start: int, n: int) -> NDArray[np.bool_] | None:
    """Which rows are null, None if the column has no nulls; `start` is a multiple of 8."""
    if not column.n_nulls:
        return None
    at, length = column.validity
    if length < -(-(start + n) // 8):
        raise Broken("a batch is shorter than its rows")
    packed = read(at + start // 8, -(-n // 8))
    return np.asarray(np.unpackbits(packed, count=n, bitorder="little") == 0)


# -- flatbuffers -------------------------------------------------------------------------------------------------


class Table:
    """A flatbuffer in own memory; every number is read inside the bounds or the file is broken."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def number(self, kind: str, at: int) -> int:
        """The number of `struct` kind `kind` at `at`."""
        if not 0 <= at <= len(self._data) - struct.calcsize(kind):
            raise Broken("an offset points outside")
        return int(struct.unpack_from(kind, self._data, at)[0])

    def root(self) -> int:
        """Where the root table stands."""
        return self.number("<I", 0)

    def where(self, table: int, index: int) -> int:
        """Where the table's field of this index stands, or 0 if the table leaves it out."""
        vtable = table - self.number("<i", table)
        inside = 4 + 2 * index + 2 <= self.number("<H", vtable)
        offset = self.number("<H", vtable + 4 + 2 * index) if inside else 0
        return table + offset if offset else 0

    def field(self, kind: str, table: int, index: int) -> int:
        """A number in the table, 0 if left out."""
        at = self.where(table, index)
        return self.number(kind, at) if at else 0

    def child(self, table: int, index: int) -> int:
        """Where the table's child stands."""
        at = self.where(table, index)
        if not at:
            raise Broken("a message is empty")
        return at + self.number("<I", at)

    def structs(self, table: int, index: int, size: int) -> Iterator[int]:
        """Where the elements of a vector of structs, or of 4-byte offsets, stand."""
        if not self.where(table, index):
            return
        vector = self.child(table, index)
        n = self.number("<I", vector)
        if n * size > len(self._data) - vector - 4:
            raise Broken("a list is longer than what holds it")
        yield from range(vector + 4, vector + 4 + n * size, size)

    def pairs(self, table: int, index: int) -> dict[bytes, bytes]:
        """A list of keys and values."""
        found = {}
        for at in self.structs(table, index, 4):
            pair = at + self.number("<I", at)
            found[self._text(pair, 0)] = self._text(pair, 1)
        return found

    def _text(self, table: int, index: int) -> bytes:
        at = self.child(table, index)
        n = self.number("<I", at)
        if n > len(self._data) - at - 4:
            raise Broken("a text is longer than what holds it")
        return self._data[at + 4 : at + 4 + n]
