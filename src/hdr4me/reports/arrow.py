"""Reports in Arrow IPC files: one column of fixed-size binary, read and written in blocks."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from numpy.typing import NDArray

from hdr4me.errors import FingerprintMismatch, FormatError
from hdr4me.reports.blocks import MOST_REJECTED, Block
from hdr4me.reports.ipc import Batch, batches_of
from hdr4me.reports.report import Reason, Rejected
from hdr4me.survey import Survey

__all__ = ["ArrowSink", "arrow_sink", "binary_format", "read_arrow", "schema_of"]

FORMAT, VERSION = b"hdr4me-reports", b"1"
COLUMN = "report"

CHECKSUM, ROWS, SUM = b"hdr4me.checksum", b"hdr4me.rows", b"hdr4me.crc32"
"""In an Arrow file's schema: that its last batch, without rows, says how many reports there are and their CRC-32."""

FilePath = str | os.PathLike[str]
Bytes = NDArray[np.uint8]


def binary_format(path: FilePath) -> str | None:
    """What a file's first bytes say: parquet, arrow, or None for text; an empty or mislabelled file is an error."""
    with Path(path).open("rb") as file:
        start = file.read(6)
    if not start:
        raise FormatError(f"{path} is empty")
    if start[:4] == b"PAR1":
        return "parquet"
    if start == b"ARROW1":
        return "arrow"
    suffix = Path(path).suffix.lower()
    if suffix in (".parquet", ".arrow", ".feather"):
        raise FormatError(f"{path} is not a whole {suffix[1:]} file: it does not begin like one")
    return None


def schema_of(survey: Survey) -> pa.Schema:
    """The file's schema: the column, and whose reports they are."""
    metadata: dict[bytes | str, bytes | str] = {
        b"hdr4me.format": FORMAT,
        b"hdr4me.version": VERSION,
        b"hdr4me.survey": survey.fingerprint.encode(),
    }
    return pa.schema([pa.field(COLUMN, pa.binary(survey.report_size), nullable=False)], metadata=metadata)


# -- reading ---------------------------------------------------------------------------------------------------


def read_arrow(path: FilePath, survey: Survey, block_rows: int) -> Iterator[Block]:
    """Blocks of the reports in an Arrow IPC file (with its footer: a stream cut short would look complete)."""
    return plainly(path, "Arrow IPC", _arrow_blocks(path, survey, block_rows))


def valid_bits(column: Any) -> NDArray[np.bool_]:
    """Which values of an Arrow array are there; Arrow's own way loads pandas for it, if that is installed."""
    bitmap = column.buffers()[0]
    if bitmap is None:
        return np.ones(len(column), bool)
    first = column.offset // 8
    packed = np.frombuffer(bitmap, np.uint8)[first : (column.offset + len(column) + 7) // 8]
    bits = np.unpackbits(packed, bitorder="little")
    return bits[column.offset - 8 * first :][: len(column)].astype(bool)


def with_nulls(path: FilePath, rows: Bytes, missing: NDArray[np.bool_], first: int) -> Iterator[Block]:
    """Rows of which some are missing, as small blocks, so that few rejected reports are held at once."""
    name = str(path)
    for start in range(0, len(rows), MOST_REJECTED):
        gone = missing[start : start + MOST_REJECTED]
        before = first + start + 1
        bad = [
            Rejected(Reason.MISSING, f"{name}, row {before + row}", "")
            for row in np.flatnonzero(gone).tolist()
        ]
        there = np.flatnonzero(~gone)
        yield Block(rows[start + there], (before + there).tolist(), bad)


def _arrow_blocks(path: FilePath, survey: Survey, block_rows: int) -> Iterator[Block]:
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        with pa.OSFile(str(path), "rb") as source:
            schema = pa.ipc.open_file(source).schema
        check_schema(path, schema, survey)
        checked = (schema.metadata or {}).get(CHECKSUM) == b"crc32"
        last: dict[bytes, bytes] = {}
        first = crc = 0
        for batch in batches_of(file, size):
            last = batch.metadata
            for rows, missing in _batch_rows(file, batch, survey.report_size, block_rows):
                crc = zlib.crc32(rows.data, crc)
                if missing is None:
                    yield Block(rows, range(first + 1, first + len(rows) + 1))
                else:
                    yield from with_nulls(path, rows, missing, first)
                first += len(rows)
        if checked and (last.get(ROWS), last.get(SUM)) != _closing(first, crc):
            raise FormatError(f"{path} is not a whole Arrow IPC file: its checksum does not match")
        if not first:
            raise FormatError(f"{path} is empty: it has no reports")


def _batch_rows(
    file: Any, batch: Batch, size: int, block_rows: int
) -> Iterator[tuple[Bytes, NDArray[np.bool_] | None]]:
    """A batch's reports, copied from the file block by block, each with which of them are null, if any can be."""
    (values, length), (bits, n_bits) = batch.values, batch.validity
    if length < batch.n_rows * size or (batch.n_nulls and n_bits < -(-batch.n_rows // 8)):
        raise ValueError("a batch is shorter than its rows")
    step = max(8, block_rows - block_rows % 8) if batch.n_nulls else block_rows
    n_missing = 0
    for start in range(0, batch.n_rows, step):
        n = min(step, batch.n_rows - start)
        rows = _owned(file, values + start * size, n * size).reshape(n, size)
        missing = None
        if batch.n_nulls:
            packed = _owned(file, bits + start // 8, -(-n // 8))
            missing = np.unpackbits(packed, count=n, bitorder="little") == 0
            n_missing += int(missing.sum())
        yield rows, missing
    if n_missing != batch.n_nulls:
        raise ValueError("a batch has another number of nulls than it says")


def _owned(file: Any, offset: int, length: int) -> Bytes:
    data = np.empty(length, np.uint8)
    file.seek(offset)
    if file.readinto(data.data) != length:
        raise ValueError("it became shorter while it was read")
    return data


def plainly(path: FilePath, kind: str, blocks: Iterator[Block]) -> Iterator[Block]:
    """Arrow's many ways of saying that a file is broken, as one."""
    while True:
        try:
            block = next(blocks, None)
        except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            raise FormatError(f"{path} is not a whole {kind} file: {reason}") from error
        if block is None:
            return
        yield block


def check_schema(path: FilePath, schema: pa.Schema, survey: Survey) -> None:
    metadata = schema.metadata or {}
    if metadata.get(b"hdr4me.format") != FORMAT:
        raise FormatError(f"{path} is not a file of reports: it does not say {FORMAT.decode()!r}")
    if metadata.get(b"hdr4me.version") != VERSION:
        found = metadata.get(b"hdr4me.version", b"none").decode(errors="replace")
        raise FormatError(f"{path} is of version {found!r}: this program reads version {VERSION.decode()}")
    found = metadata.get(b"hdr4me.survey", b"none").decode(errors="replace")
    if found != survey.fingerprint:
        raise FingerprintMismatch(str(path), survey.fingerprint, found)
    if schema.names != [COLUMN] or schema.field(0).type != pa.binary(survey.report_size):
        raise FormatError(f"{path} must have one column, {COLUMN!r}, of {survey.report_size} bytes")


# -- writing ---------------------------------------------------------------------------------------------------


def as_batch(rows: Bytes, schema: pa.Schema) -> pa.RecordBatch:
    column = pa.Array.from_buffers(schema.field(0).type, len(rows), [None, pa.py_buffer(rows.data)])
    return pa.record_batch([column], schema=schema)


class ArrowSink:
    """An open Arrow file that takes blocks of reports, and closes with their number and their CRC-32."""

    def __init__(self, writer: Any, schema: pa.Schema) -> None:
        self._writer, self._schema = writer, schema
        self._n = self._crc = 0

    def write(self, block: Bytes) -> None:
        """Append the block's rows."""
        rows = np.ascontiguousarray(block)
        self._writer.write_batch(as_batch(rows, self._schema))
        self._n += len(rows)
        self._crc = zlib.crc32(rows.data, self._crc)

    def close(self) -> None:
        """Append the batch without rows that says what came before."""
        rows, crc = _closing(self._n, self._crc)
        empty = as_batch(np.empty((0, self._schema.field(0).type.byte_width), np.uint8), self._schema)
        self._writer.write_batch(empty, custom_metadata={ROWS: rows, SUM: crc})


def _closing(n_rows: int, crc: int) -> tuple[bytes, bytes]:
    return str(n_rows).encode(), f"{crc:08x}".encode()


@contextmanager
def arrow_sink(path: Path, survey: Survey) -> Iterator[ArrowSink]:
    """Arrow IPC file format, uncompressed: blocks are read where they stand in the file."""
    schema = schema_of(survey)
    schema = schema.with_metadata({**(schema.metadata or {}), CHECKSUM: b"crc32"})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        sink = ArrowSink(writer, schema)
        yield sink
        sink.close()
