"""Arrow IPC files of one column of bytes, read with bounds on every declared size and without mapping the file.

Arrow's own reader maps a file or reads a whole batch, and inflates compressed batches to any size. Here the footer and
the messages (both flatbuffers) are parsed from bytes in own memory, so a file that changes or lies cannot crash the
process or take more memory than a block; the reports themselves are read block by block.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

__all__ = ["Batch", "batches_of"]

MAGIC = b"ARROW1"
_MOST_FOOTER = 1 << 26
_MOST_METADATA = 1 << 20
_RECORD_BATCH = 3


class Broken(ValueError):
    """What is wrong with the file, in words."""


@dataclass(frozen=True)
class Batch:
    """Where a batch's bytes stand in the file, and what its message says beside them."""

    n_rows: int
    n_nulls: int
    validity: tuple[int, int]
    offsets: tuple[int, int]
    values: tuple[int, int]
    metadata: dict[bytes, bytes]


def batches_of(file: IO[bytes], size: int) -> Iterator[Batch]:
    """The batches that the footer lists, in the file's order; `size` is the file's.

    Batches must follow one another without overlap: a footer that names one batch a thousand times would cost a
    thousand times its bytes.
    """
    footer, end = _footer(file, size)
    root = footer.root()
    if any(footer.structs(root, 2, 24)):
        raise Broken("it has dictionaries")
    before = len(MAGIC)
    for at in footer.structs(root, 3, 24):
        offset, length, body = (
            footer.number("<q", at),
            footer.number("<i", at + 8),
            footer.number("<q", at + 16),
        )
        if offset < before or not 8 <= length <= _MOST_METADATA or not 0 <= body <= end - offset - length:
            raise Broken("a batch stands outside the file, or over another batch")
        before = offset + length + body
        yield _batch(_read(file, offset, length), offset + length, body)


def _footer(file: IO[bytes], size: int) -> tuple[_Table, int]:
    tail = _read(file, size - 10, 10) if size >= 18 else b""
    if tail[4:] != MAGIC:
        raise Broken("its end is missing")
    length = int(struct.unpack("<i", tail[:4])[0])
    if not 8 <= length <= min(_MOST_FOOTER, size - 18):
        raise Broken("its footer has no possible length")
    return _Table(_read(file, size - 10 - length, length)), size - 10 - length


def _batch(message: bytes, start: int, body: int) -> Batch:
    marked = message[:4] == b"\xff\xff\xff\xff"
    table = _Table(message[8 if marked else 4 :])
    root = table.root()
    if table.field("<B", root, 1) != _RECORD_BATCH:
        raise Broken("a message that its footer lists is not a batch")
    batch = table.child(root, 2)
    if table.where(batch, 3):
        raise Broken("its batches are compressed: reports travel uncompressed in Arrow files")
    n_rows = table.field("<q", batch, 0)
    nodes, buffers = list(table.structs(batch, 1, 16)), list(table.structs(batch, 2, 16))
    if len(nodes) != 1 or len(buffers) not in (2, 3):
        raise Broken("a batch must have one column")
    n_nulls = table.number("<q", nodes[0] + 8)
    if table.number("<q", nodes[0]) != n_rows or not 0 <= n_nulls <= n_rows:
        raise Broken("a batch's column is not as long as the batch")
    spans = []
    for at in buffers:
        offset, length = table.number("<q", at), table.number("<q", at + 8)
        if offset < 0 or not 0 <= length <= body - offset:
            raise Broken("a buffer stands outside its batch")
        spans.append((start + offset, length))
    return Batch(n_rows, n_nulls, spans[0], spans[1], spans[-1], table.pairs(root, 4))


def _read(file: IO[bytes], offset: int, length: int) -> bytes:
    file.seek(offset)
    data = file.read(length)
    if len(data) != length:
        raise Broken("it became shorter while it was read")
    return data


class _Table:
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
