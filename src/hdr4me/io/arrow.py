"""Reports in Arrow IPC files: one column of binary values, read and written in blocks."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from numpy.typing import NDArray

from hdr4me.errors import FingerprintMismatch, FormatError, InvalidInput
from hdr4me.io.blocks import MOST_REJECTED, Block, Bytes, to_wire
from hdr4me.io.ipc import Batch, batches_of, null_rows, reader_of, report_rows
from hdr4me.io.report import Reason, Rejected
from hdr4me.survey import Survey

FORMAT, VERSION = b"hdr4me-reports", b"1"
COLUMN = "report"

CHECKSUM, ROWS, SUM = b"hdr4me.checksum", b"hdr4me.rows", b"hdr4me.crc32"
"""In an Arrow file's schema: that its last batch, without rows, says how many reports there are and their CRC-32."""

FilePath = str | os.PathLike[str]


def binary_format(path: FilePath) -> str | None:
    """What a file's first bytes say: parquet, arrow, or None for text; an empty or mislabelled file is an error."""
    with Path(path).open("rb") as file:
        start = file.read(6)
    if not start:
        raise FormatError(f"{path} is empty")
    if start[:4] == b"PAR1" or start == b"ARROW1":
        return "arrow" if start == b"ARROW1" else "parquet"
    suffix = Path(path).suffix.lower()
    if suffix in (".parquet", ".arrow", ".feather"):
        raise FormatError(f"{path} is not a whole {suffix[1:]} file: it does not begin like one")
    return None


BROKEN = (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError)
"""What Arrow raises for a damaged file."""


@contextmanager
def whole(path: FilePath, kind: str, *, quoted: bool = True) -> Iterator[None]:
    """Arrow's many errors for a damaged file as one `FormatError`, which quotes them unless they may hold a record."""
    try:
        yield
    except BROKEN as error:
        if isinstance(error, InvalidInput | FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        reason = str(error).partition("\n")[0] if quoted else "it cannot be read"
        raise FormatError(f"{path} is not a whole {kind} file: {reason or type(error).__name__}") from None


def schema_of(survey: Survey) -> pa.Schema:
    """The file's schema: the column, and whose reports they are."""
    metadata: dict[bytes | str, bytes | str] = {
        b"hdr4me.format": FORMAT,
        b"hdr4me.version": VERSION,
        b"hdr4me.survey": survey.fingerprint.encode(),
    }
    return pa.schema([pa.field(COLUMN, _type_of(survey), nullable=False)], metadata=metadata)


def _type_of(survey: Survey) -> Any:
    return pa.binary(survey.report_size) if survey.fixed_size else pa.binary()


# -- reading ---------------------------------------------------------------------------------------------------


def valid_bits(column: Any) -> NDArray[np.bool_]:
    """Which values of an Arrow array are there; Arrow's own way loads pandas for it, if that is installed."""
    bitmap = column.buffers()[0]
    if bitmap is None:
        return np.ones(len(column), bool)
    first = column.offset // 8
    packed = np.frombuffer(bitmap, np.uint8)[first : (column.offset + len(column) + 7) // 8]
    bits = np.unpackbits(packed, bitorder="little")
    return bits[column.offset - 8 * first :][: len(column)].astype(bool)


def blocks_of(path: FilePath, rows: Bytes, reasons: Bytes | None, first: int) -> Iterator[Block]:
    """Rows as a block; as small blocks, with few rejected reports each, if some have a reason not to be counted."""
    if reasons is None:
        yield Block(rows, range(first + 1, first + len(rows) + 1))
        return
    for start in range(0, len(rows), MOST_REJECTED):
        gone = reasons[start : start + MOST_REJECTED]
        before = first + start + 1
        bad = [
            Rejected(Reason(int(gone[row])), f"{path}, row {before + row}", "")
            for row in np.flatnonzero(gone).tolist()
        ]
        there = np.flatnonzero(gone == 0)
        yield Block(rows[start + there], (before + there).tolist(), bad)


def read_arrow(path: FilePath, survey: Survey, block_rows: int) -> Iterator[Block]:
    """Blocks of the reports in an Arrow IPC file (with its footer: a stream cut short would look complete)."""
    with whole(path, "Arrow IPC"), Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        with pa.OSFile(str(path), "rb") as source:
            schema = pa.ipc.open_file(source).schema
        check_schema(path, schema, survey)
        checked = (schema.metadata or {}).get(CHECKSUM) == b"crc32"
        last: dict[bytes, bytes] = {}
        first, found = 0, _Sums()
        for batch in batches_of(file, size):
            last = batch.metadata
            for rows, reasons in _batch_rows(file, batch, survey, block_rows, found):
                yield from blocks_of(path, rows, reasons, first)
                first += len(rows)
        if checked and (last.get(ROWS), last.get(SUM)) != found.closing(first):
            raise FormatError(f"{path} is not a whole Arrow IPC file: its checksum does not match")
        if not first:
            raise FormatError(f"{path} is empty: it has no reports")


def _batch_rows(
    file: Any, batch: Batch, survey: Survey, block_rows: int, sums: _Sums
) -> Iterator[tuple[Bytes, Bytes | None]]:
    """The reports of a batch, block by block, and the reasons not to count them."""
    (column,), n_missing = batch.columns, 0
    step = max(8, block_rows - block_rows % 8) if column.n_nulls else block_rows
    read = reader_of(file, step * max(survey.report_size, 4) + 4)
    for start in range(0, batch.n_rows, step):
        n = min(step, batch.n_rows - start)
        data, lengths, rows, good = report_rows(read, column, survey, start, n)
        sums.add(data, lengths)
        missing = null_rows(read, column, start, n)
        n_missing += 0 if missing is None else int(missing.sum())
        yield rows, reasons_of(n, good, missing)
    if n_missing != column.n_nulls:
        raise ValueError("a batch has another number of nulls than it says")


def reasons_of(n: int, good: NDArray[np.bool_] | None, missing: NDArray[np.bool_] | None) -> Bytes | None:
    """Why each of n rows is not counted, 0 if it is; `good` rows have the right length. None if all are counted."""
    if missing is None and (good is None or good.all()):
        return None
    reasons = np.zeros(n, np.uint8)
    if good is not None:
        reasons[~good] = Reason.SIZE
    if missing is not None:
        reasons[missing] = Reason.MISSING
    return reasons


class _Sums:
    """The CRC-32 of all reports' bytes, and of their lengths where they differ; the same for any blocks."""

    def __init__(self) -> None:
        self._data = self._lengths = 0
        self._differ = False

    def add(self, data: Bytes, lengths: NDArray[np.int32] | None) -> None:
        """Cover more reports."""
        self._data = zlib.crc32(np.ascontiguousarray(data).data, self._data)
        if lengths is not None:
            self._differ = True
            self._lengths = zlib.crc32(lengths.astype("<i4").tobytes(), self._lengths)

    def closing(self, n_rows: int) -> tuple[bytes, bytes]:
        """The number of reports and their checksum, as a file's last batch says them."""
        more = f"{self._lengths:08x}" if self._differ else ""
        return str(n_rows).encode(), f"{self._data:08x}{more}".encode()


ID, ID_SIZE = "id", 16
"""A second column that a file of the collector has: the reports' ids, which a tally does not read."""


def without_ids(schema: pa.Schema) -> pa.Schema:
    """The schema of a file of reports, without the collector's column of ids if it is there."""
    has_ids = schema.names == [COLUMN, ID] and schema.field(1).type == pa.binary(ID_SIZE)
    return schema.remove(1) if has_ids else schema


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
    if schema.names != [COLUMN] or schema.field(0).type != _type_of(survey):
        size = f"of {survey.report_size} bytes" if survey.fixed_size else "of bytes"
        raise FormatError(f"{path} must have one column, {COLUMN!r}, {size}")


# -- writing ---------------------------------------------------------------------------------------------------


def as_batch(rows: Bytes, schema: pa.Schema, survey: Survey) -> pa.RecordBatch:
    """The rows as they travel: without padding, unless the survey's reports all have one size."""
    buffers: list[Any] = [None, pa.py_buffer(rows.data)]
    if not survey.fixed_size:
        data, offsets = to_wire(rows, survey)
        buffers = [None, pa.py_buffer(offsets.data), pa.py_buffer(data.data)]
    column: Any = pa.Array.from_buffers(schema.field(0).type, len(rows), buffers)
    return pa.record_batch([column], schema=schema)


@contextmanager
def arrow_sink(path: Path, survey: Survey) -> Iterator[Callable[[Bytes], None]]:
    """Writes blocks to an Arrow IPC file, uncompressed; its last batch has the number of reports and their CRC-32."""
    schema = schema_of(survey)
    schema = schema.with_metadata({**(schema.metadata or {}), CHECKSUM: b"crc32"})
    n, sums = 0, _Sums()

    def write(block: Bytes) -> None:
        nonlocal n
        rows = np.ascontiguousarray(block)
        writer.write_batch(as_batch(rows, schema, survey))
        n += len(rows)
        data, offsets = to_wire(rows, survey)
        sums.add(data, None if survey.fixed_size else np.diff(offsets))

    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        yield write
        rows, crc = sums.closing(n)
        nothing = as_batch(np.empty((0, survey.report_size), np.uint8), schema, survey)
        writer.write_batch(nothing, custom_metadata={ROWS: rows, SUM: crc})
