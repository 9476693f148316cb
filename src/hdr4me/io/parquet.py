"""Reports in Parquet files: one column of binary values, read and written in blocks.

This module parses the footer and the page headers before Arrow reads the pages. Arrow allocates the size that a page
header claims, and its access to a column chunk can crash the process if the footer is damaged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from hdr4me.errors import FormatError
from hdr4me.io.arrow import (
    COLUMN,
    FilePath,
    as_batch,
    check_schema,
    file_errors,
    reasons_of,
    rows_as_blocks,
    schema_of,
    valid_bits,
    without_ids,
)
from hdr4me.io.blocks import Block, Bytes, from_wire
from hdr4me.survey import Survey

# Bounds on the decompressed size of a file: this many times its own size, plus this many bytes.
MOST_GROWTH, FREE_GROWTH = 1024, 1 << 24

MOST_PAGE = 1 << 26  # Largest decompressed size of a page; writers make pages of about one megabyte

_STREAMED = 1 << 16
_MOST_HEADER = 1 << 16
_MOST_FOOTER = 1 << 26
_DEEPEST = 12


def read_parquet(
    path: FilePath, survey: Survey, block_rows: int, *, part: tuple[int, int] | None = None
) -> Iterator[Block]:
    """Blocks of reports; the file's column, size, fingerprint, number of rows and checksums are verified.

    Only row groups that begin in the range `part` of the file's bytes are read.
    """
    # Without pre-buffering, and with its own buffer, a row group is streamed.
    options: Any = {"page_checksum_verification": True, "pre_buffer": False, "buffer_size": _STREAMED}
    with file_errors(path, "Parquet"), pq.ParquetFile(str(path), **options) as file:
        check_schema(path, without_ids(file.schema_arrow), survey)
        metadata, size = file.metadata, Path(path).stat().st_size
        rows = [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]
        if min(rows, default=0) < 0 or sum(rows) != metadata.num_rows:
            raise FormatError(
                f"{path} is not a complete Parquet file: its row groups do not add up to its rows"
            )
        if metadata.num_rows == 0:
            raise FormatError(f"{path} contains no reports")
        if metadata.num_rows * survey.report_size > MOST_GROWTH * size + FREE_GROWTH:
            raise FormatError(
                f"{path} claims {metadata.num_rows:,} reports in {size:,} bytes: "
                f"that is more than {MOST_GROWTH} times its size; write it with less compression"
            )
        with Path(path).open("rb") as headers:
            chunks = first_chunks(headers, size)
            if len(chunks) != len(rows):
                raise FormatError(f"{path} is not a complete Parquet file: its footer is inconsistent")
            groups = _groups_in(chunks, size, part or (0, size))
            for index in groups:
                chunk = chunks[index]
                if rows[index] and (chunk is None or largest_page(headers, chunk, size) > MOST_PAGE):
                    raise FormatError(
                        f"{path} has a page of more than {MOST_PAGE >> 20} MiB: write it with smaller pages"
                    )
        first = sum(rows[: groups[0]]) if groups else 0
        promised, found = sum(rows[index] for index in groups), 0
        for batch in file.iter_batches(batch_size=block_rows, row_groups=groups, columns=[COLUMN]):
            batch.validate(full=True)
            found += batch.num_rows
            yield from _column_blocks(path, batch.column(0), survey, first + found - batch.num_rows)
        if found != promised:
            raise FormatError(
                f"{path} is not a complete Parquet file: it claims {promised:,} reports and has {found:,}"
            )


def _groups_in(chunks: Sequence[Chunk | None], size: int, part: tuple[int, int]) -> list[int]:
    """The row groups that begin in a range of bytes; a group that begins outside the file is in the last range."""
    starts = [chunk.data_page_offset if chunk else 0 for chunk in chunks]
    starts = [start if 0 <= start < size else size - 1 for start in starts]
    return [index for index, start in enumerate(starts) if part[0] <= start < part[1]]


def _column_blocks(path: FilePath, column: Any, survey: Survey, first: int) -> Iterator[Block]:
    """A column of reports as blocks."""
    size, start, n = survey.report_size, column.offset, len(column)
    if not n:
        return
    good = None
    rows = np.frombuffer(column.buffers()[-1] or b"", np.uint8)
    if survey.fixed_size:
        rows = rows[start * size : (start + n) * size].reshape(-1, size)
    else:
        offsets = np.frombuffer(column.buffers()[1], "<i4")[start : start + n + 1].astype(np.int64)
        rows, good = from_wire(rows, offsets, survey)
    missing = ~valid_bits(column) if column.null_count else None
    yield from rows_as_blocks(path, rows, reasons_of(n, good, missing), first)


@contextmanager
def parquet_sink(path: Path, survey: Survey) -> Iterator[Callable[[Bytes], None]]:
    """Write blocks to a Parquet file with page checksums and without a dictionary, since codes rarely repeat.

    Short slots are nearly incompressible and use LZ4; long slots are mostly zeros and use zstd.
    """
    schema = schema_of(survey)
    with pq.ParquetWriter(
        str(path),
        schema,
        compression="lz4" if survey.slot_size < 16 else "zstd",
        use_dictionary=False,
        write_statistics=False,
        write_page_checksum=True,
    ) as writer:
        yield lambda block: writer.write_batch(as_batch(np.ascontiguousarray(block), schema, survey))


# -- the footer and the page headers -----------------------------------------------------------------------------


class Chunk(NamedTuple):
    """The offsets of a column chunk in the footer; 0 if absent."""

    data_page_offset: int
    dictionary_page_offset: int
    total_compressed_size: int


def first_chunks(file: IO[bytes], size: int) -> list[Chunk | None]:
    """The first column chunk of each row group, None if it has no column; ValueError if the footer is invalid."""
    file.seek(max(0, size - 8))
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if len(tail) < 8 or tail[4:] != b"PAR1" or not 0 < length <= min(_MOST_FOOTER, size - 12):
        raise ValueError("the length of its footer is impossible")
    file.seek(size - 8 - length)
    footer = _Thrift(file.read(length)).structure()
    found: list[Chunk | None] = []
    groups = footer.get(4)
    for group in groups if isinstance(groups, list) else ():
        columns = group.get(1)
        meta = columns[0].get(3) if columns and isinstance(columns, list) else None
        numbers = [meta.get(field, 0) if isinstance(meta, dict) else 0 for field in (9, 11, 7)]
        chunk = Chunk(*(x if isinstance(x, int) else 0 for x in numbers))
        found.append(chunk if columns and isinstance(columns, list) else None)
    return found


def largest_page(file: IO[bytes], chunk: Chunk, size: int) -> int:
    """The largest page size of a column chunk in a file of this size; ValueError if it is invalid."""
    at = min((x for x in (chunk.data_page_offset, chunk.dictionary_page_offset) if x > 0), default=0)
    end = at + chunk.total_compressed_size
    if not 0 < at <= end <= size:
        raise ValueError("a column chunk is outside the file")
    largest = 0
    while at < end:
        file.seek(at)
        header = _Thrift(file.read(min(_MOST_HEADER, end - at)))
        sizes = header.structure()
        inflated, stored = sizes.get(2), sizes.get(3)
        if not isinstance(inflated, int) or not isinstance(stored, int):
            raise ValueError("a page has no size")
        if inflated < 0 or not 0 <= stored <= end - at - header.at:
            raise ValueError("a page is outside its column chunk")
        largest = max(largest, inflated)
        at += header.at + stored
    return largest


class _Thrift:
    """A reader of Thrift's compact protocol; `at` is the position of the next byte."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def structure(self, depth: int = 0) -> dict[int, Any]:
        """The integers, structs and lists of structs of a struct, by field; None for other types."""
        fields: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._number()
            fields[field] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError("a page header is nested too deeply")
        match kind:
            case 1 | 2:  # a Boolean, whose value is its type
                return None
            case 3:
                self._byte()
            case 4 | 5 | 6:
                return self._number()
            case 7:
                self.at += 8
            case 8:
                length = self._varint()  # moves `at` itself
                self.at += length
            case 9 | 10:
                return self._items(depth + 1)
            case 12:
                return self.structure(depth + 1)
            case _:
                raise ValueError("a page header has an unknown type")
        return None

    def _items(self, depth: int) -> list[dict[int, Any]] | None:
        head = self._byte()
        n = self._varint() if head >> 4 == 15 else head >> 4
        if n > len(self._data):
            raise ValueError("a list in a page header is too long")
        if head & 15 == 12 and depth <= _DEEPEST:
            return [self.structure(depth) for _ in range(n)]
        for _ in range(n):
            self._value(3 if head & 15 in (1, 2) else head & 15, depth)
        return None

    def _byte(self) -> int:
        if self.at >= len(self._data):
            raise ValueError("a page header is incomplete")
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
