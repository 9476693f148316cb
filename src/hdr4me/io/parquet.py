"""Reports in Parquet files: one column of binary values, read and written in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hdr4me.errors import FormatError
from hdr4me.io.arrow import (
    COLUMN,
    Bytes,
    FilePath,
    as_batch,
    check_schema,
    plainly,
    schema_of,
    valid_bits,
    with_bad,
    without_ids,
)
from hdr4me.io.blocks import Block
from hdr4me.io.pages import MOST_PAGE, Chunk, first_chunks, largest_page
from hdr4me.io.report import Reason
from hdr4me.io.wire import from_wire
from hdr4me.survey import Survey

__all__ = ["ParquetSink", "parquet_sink", "read_parquet"]

MOST_GROWTH, FREE_GROWTH = 1024, 1 << 24
"""The reports of a Parquet file may take this many times the file's own size, and this many bytes more."""

_STREAMED = 1 << 16


def read_parquet(
    path: FilePath, survey: Survey, block_rows: int, *, part: tuple[int, int] | None = None
) -> Iterator[Block]:
    """Blocks of reports, checked for what the file itself promises: column, size, fingerprint, rows, checksums.

    Parameters
    ----------
    path, survey
        The file, and the survey that its reports must answer.
    block_rows
        The most rows in a block.
    part
        A range of the file's bytes: only row groups that begin in it are read. Ranges that cover the file read each
        row group once.
    """
    return plainly(path, "Parquet", _parquet_blocks(path, survey, block_rows, part))


def _parquet_blocks(
    path: FilePath, survey: Survey, block_rows: int, part: tuple[int, int] | None
) -> Iterator[Block]:
    # Without pre-buffering, and with a buffer of its own, a row group is streamed, not held.
    with pq.ParquetFile(
        str(path), page_checksum_verification=True, pre_buffer=False, buffer_size=_STREAMED
    ) as file:
        check_schema(path, without_ids(file.schema_arrow), survey)
        metadata, size = file.metadata, Path(path).stat().st_size
        rows = [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]
        if min(rows, default=0) < 0 or sum(rows) != metadata.num_rows:
            raise FormatError(f"{path} is not a whole Parquet file: its row groups do not add up to its rows")
        if metadata.num_rows == 0:
            raise FormatError(f"{path} is empty: it has no reports")
        if metadata.num_rows * survey.report_size > MOST_GROWTH * size + FREE_GROWTH:
            raise FormatError(
                f"{path} promises {metadata.num_rows:,} reports in {size:,} bytes: "
                f"that is more than {MOST_GROWTH} times its size; write it with less compression"
            )
        with Path(path).open("rb") as headers:
            chunks = first_chunks(headers, size)
            if len(chunks) != len(rows):
                raise FormatError(f"{path} is not a whole Parquet file: its footer is read in two ways")
            groups = _groups_in(chunks, size, part)
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
                f"{path} is not a whole Parquet file: it promises {promised:,} reports and has {found:,}"
            )


def _groups_in(chunks: Sequence[Chunk | None], size: int, part: tuple[int, int] | None) -> list[int]:
    """The row groups that begin in a range of bytes; a group that claims to begin outside the file is in the last."""
    if part is None:
        return list(range(len(chunks)))
    starts = [chunk.data_page_offset if chunk else 0 for chunk in chunks]
    return [
        index
        for index, start in enumerate(starts)
        if part[0] <= (start if 0 <= start < size else size - 1) < part[1]
    ]


def _column_blocks(path: FilePath, column: Any, survey: Survey, first: int) -> Iterator[Block]:
    """A column of reports as blocks; with bad ones in it the blocks are small, to bound what is rejected."""
    rows, good = _rows(column, survey)
    reasons = np.where(good, 0, Reason.SIZE).astype(np.uint8)
    if column.null_count:
        reasons[~valid_bits(column)] = Reason.MISSING
    if reasons.any():
        yield from with_bad(path, rows, reasons, first)
    else:
        yield Block(rows, range(first + 1, first + len(rows) + 1))


def _rows(column: Any, survey: Survey) -> tuple[Bytes, NDArray[np.bool_]]:
    """The reports in rows of one size, and which of them have the right length."""
    size, start, n = survey.report_size, column.offset, len(column)
    if not n:
        return np.empty((0, size), np.uint8), np.empty(0, bool)
    values = np.frombuffer(column.buffers()[-1] or b"", np.uint8)
    if survey.fixed_size:
        return values[start * size : (start + n) * size].reshape(-1, size), np.ones(n, bool)
    offsets = np.frombuffer(column.buffers()[1], "<i4")[start : start + n + 1].astype(np.int64)
    return from_wire(values, offsets, survey)


class ParquetSink:
    """An open Parquet file that takes blocks of reports."""

    def __init__(self, writer: Any, survey: Survey) -> None:
        self._writer, self._survey = writer, survey
        self._schema = schema_of(survey)

    def write(self, block: Bytes) -> None:
        """Append the block's rows."""
        self._writer.write_batch(as_batch(np.ascontiguousarray(block), self._schema, self._survey))


@contextmanager
def parquet_sink(path: Path, survey: Survey) -> Iterator[ParquetSink]:
    """Parquet with page checksums and no dictionary: codes hardly repeat.

    One code in a slot is close to random: LZ4 leaves such pages as they are and costs nothing to read, where zstd
    would save a quarter of the size for twice the time. Entries are mostly zeros,
    and zstd makes them several times smaller.
    """
    with pq.ParquetWriter(
        str(path),
        schema_of(survey),
        compression="lz4" if survey.slot_size < 16 else "zstd",
        use_dictionary=False,
        write_statistics=False,
        write_page_checksum=True,
    ) as writer:
        yield ParquetSink(writer, survey)
