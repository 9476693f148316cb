"""The footer and the page headers of a Parquet file, read before its pages: where they stand, how large they become.

Arrow makes room for a page of whatever size its header claims and inflates it whole; a few kilobytes can claim two
gigabytes. And asking Arrow's footer for a column chunk ends the process if certain bits of it are damaged. Footers and
headers are structures of Thrift's compact protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any, NamedTuple

__all__ = ["MOST_PAGE", "Chunk", "first_chunks", "largest_page"]

MOST_PAGE = 1 << 26
"""Bytes that a page may become; writers make pages of about one megabyte."""

_MOST_HEADER = 1 << 16
_MOST_FOOTER = 1 << 26
_DEEPEST = 12


class Chunk(NamedTuple):
    """Where the footer says that a column chunk stands; 0 for what it leaves out."""

    data_page_offset: int
    dictionary_page_offset: int
    total_compressed_size: int


def first_chunks(file: IO[bytes], size: int) -> list[Chunk | None]:
    """The first column chunk of each row group, None where it has no column; ValueError if the footer is broken."""
    file.seek(max(0, size - 8))
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if len(tail) < 8 or tail[4:] != b"PAR1" or not 0 < length <= min(_MOST_FOOTER, size - 12):
        raise ValueError("its footer has no possible length")
    file.seek(size - 8 - length)
    footer = _Header(file.read(length)).structure()
    found: list[Chunk | None] = []
    for group in _items(footer.get(4)):
        columns = _items(group.get(1))
        meta = columns[0].get(3) if columns else None
        numbers = [meta.get(field, 0) if isinstance(meta, dict) else 0 for field in (9, 11, 7)]
        found.append(Chunk(*(x if isinstance(x, int) else 0 for x in numbers)) if columns else None)
    return found


def _items(value: Any) -> list[dict[int, Any]]:
    """The structures of a list, if it is one."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def largest_page(file: IO[bytes], chunk: Chunk, size: int) -> int:
    """The largest size that a page of this column chunk claims; ValueError if its headers cannot be read.

    Parameters
    ----------
    file
        The Parquet file.
    chunk
        What the footer says of the column chunk.
    size
        The file's size.
    """
    starts = [chunk.data_page_offset, chunk.dictionary_page_offset]
    at = min((start for start in starts if start > 0), default=0)
    end = at + chunk.total_compressed_size
    if not 0 < at <= end <= size:
        raise ValueError("a column chunk stands outside the file")
    largest = 0
    while at < end:
        file.seek(at)
        header = _Header(file.read(min(_MOST_HEADER, end - at)))
        sizes = dict(header.numbers())
        inflated, stored = sizes.get(2, -1), sizes.get(3, -1)
        if inflated < 0 or not 0 <= stored <= end - at - header.at:
            raise ValueError("a page stands outside its column chunk")
        largest = max(largest, inflated)
        at += header.at + stored
    return largest


class _Header:
    """A structure in Thrift's compact protocol."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def numbers(self) -> Iterator[tuple[int, int]]:
        """The structure's own whole numbers, each with its field; afterwards `at` is behind the structure."""
        for field, kind in self._fields():
            if kind in (4, 5, 6):
                yield field, self._number()
            else:
                self._skip(kind, 0)

    def structure(self, depth: int = 0) -> dict[int, Any]:
        """The structure's whole numbers, structures and lists of structures by field; all else is passed over."""
        found: dict[int, Any] = {}
        for field, kind in self._fields():
            if kind in (4, 5, 6):
                found[field] = self._number()
            elif kind == 12 and depth < _DEEPEST:
                found[field] = self.structure(depth + 1)
            elif kind == 9 and depth < _DEEPEST:
                found[field] = self._structures(depth + 1)
            else:
                self._skip(kind, depth)
        return found

    def _structures(self, depth: int) -> list[dict[int, Any]]:
        head = self._byte()
        n = self._varint() if head >> 4 == 15 else head >> 4
        if n > len(self._data):
            raise ValueError("a list is longer than what holds it")
        if head & 15 == 12:
            return [self.structure(depth) for _ in range(n)]
        for _ in range(n):
            self._skip(3 if head & 15 in (1, 2) else head & 15, depth)
        return []

    def _fields(self) -> Iterator[tuple[int, int]]:
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._number()
            yield field, head & 15

    def _byte(self) -> int:
        if self.at >= len(self._data):
            raise ValueError("a page header does not end")
        self.at += 1
        return self._data[self.at - 1]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number in a page header is too long")

    def _number(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _skip(self, kind: int, depth: int) -> None:
        if depth > _DEEPEST:
            raise ValueError("a page header is nested too deeply")
        match kind:
            case 1 | 2:
                pass
            case 3:
                self._byte()
            case 4 | 5 | 6:
                self._varint()
            case 7:
                self.at += 8
            case 8:
                length = self._varint()  # moves `at` itself
                self.at += length
            case 9 | 10:
                head = self._byte()
                n = self._varint() if head >> 4 == 15 else head >> 4
                for _ in range(min(n, len(self._data))):
                    self._skip(3 if head & 15 in (1, 2) else head & 15, depth + 1)
            case 12:
                for _, inner in self._fields():
                    self._skip(inner, depth + 1)
            case _:
                raise ValueError("a page header of an unknown kind")
