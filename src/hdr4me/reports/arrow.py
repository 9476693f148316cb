"""Reports in Parquet and Arrow IPC files: one column of fixed-size binary, read and written in blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hdr4me.errors import FingerprintMismatch, FormatError
from hdr4me.reports.report import OnRejected, Reason, Rejected
from hdr4me.survey import Survey

__all__ = ["Sink", "arrow_sink", "binary_format", "parquet_sink", "read_arrow", "read_parquet", "schema_of"]

FORMAT, VERSION = b"hdr4me-reports", b"1"
COLUMN = "report"

Block = NDArray[np.uint8]


def binary_format(path: str | os.PathLike[str]) -> str | None:
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


def read_parquet(
    path: str | os.PathLike[str],
    survey: Survey,
    on_rejected: OnRejected,
    block_rows: int,
    *,
    row_groups: Sequence[int] | None = None,
    first_row: int = 0,
) -> Iterator[Block]:
    """Blocks of reports, checked for what the file itself promises: column, size, fingerprint, page checksums.

    `row_groups` are the ones to read, all unless given; `first_row` rows stand before them.
    """
    batches = _plainly(path, "Parquet", _parquet_batches(path, survey, block_rows, row_groups))
    return _blocks(path, batches, survey, on_rejected, first_row)


def read_arrow(
    path: str | os.PathLike[str], survey: Survey, on_rejected: OnRejected, block_rows: int
) -> Iterator[Block]:
    """The same from an Arrow IPC file (with its footer: a stream cut short would look complete)."""
    batches = _plainly(path, "Arrow IPC", _arrow_batches(path, survey, block_rows))
    return _blocks(path, batches, survey, on_rejected)


def _parquet_batches(
    path: str | os.PathLike[str], survey: Survey, block_rows: int, row_groups: Sequence[int] | None
) -> Iterator[Any]:
    with pq.ParquetFile(str(path), page_checksum_verification=True) as file:
        _check_schema(path, file.schema_arrow, survey)
        groups = None if row_groups is None else list(row_groups)
        for batch in file.iter_batches(batch_size=block_rows, row_groups=groups):
            batch.validate(full=True)
            yield batch


def _arrow_batches(path: str | os.PathLike[str], survey: Survey, block_rows: int) -> Iterator[Any]:
    with pa.memory_map(str(path)) as source:
        reader = pa.ipc.open_file(source)
        _check_schema(path, reader.schema, survey)
        for index in range(reader.num_record_batches):
            batch = reader.get_batch(index)
            batch.validate(full=True)
            for start in range(0, batch.num_rows, block_rows):
                yield batch.slice(start, block_rows)


def _plainly(path: str | os.PathLike[str], kind: str, batches: Iterator[Any]) -> Iterator[Any]:
    """Arrow's many ways of saying that a file is broken, as one."""
    try:
        yield from batches
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise FormatError(f"{path} is not a whole {kind} file: {reason}") from error


def _check_schema(path: str | os.PathLike[str], schema: pa.Schema, survey: Survey) -> None:
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


def _blocks(
    path: str | os.PathLike[str],
    batches: Iterator[Any],
    survey: Survey,
    on_rejected: OnRejected,
    first: int = 0,
) -> Iterator[Block]:
    for batch in batches:
        column, size = batch.column(0), survey.report_size
        values, start = column.buffers()[1], column.offset
        rows = np.frombuffer(values, np.uint8)[start * size : (start + len(column)) * size].reshape(-1, size)
        if column.null_count:
            missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False), dtype=bool)
            for row in np.flatnonzero(missing).tolist():
                on_rejected(Rejected(Reason.MISSING, f"{path}, row {first + row + 1}", ""))
            rows = rows[~missing]
        yield rows
        first += len(column)


# -- writing ---------------------------------------------------------------------------------------------------


class Sink:
    """An open file that takes blocks of reports."""

    def __init__(self, writer: Any, survey: Survey) -> None:
        self._writer = writer
        self._schema = schema_of(survey)

    def write(self, block: Block) -> None:
        """Append the block's rows."""
        rows = np.ascontiguousarray(block)
        column = pa.Array.from_buffers(self._schema.field(0).type, len(rows), [None, pa.py_buffer(rows.data)])
        self._writer.write_batch(pa.record_batch([column], schema=self._schema))


@contextmanager
def parquet_sink(path: Path, survey: Survey) -> Iterator[Sink]:
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
        yield Sink(writer, survey)


@contextmanager
def arrow_sink(path: Path, survey: Survey) -> Iterator[Sink]:
    """Arrow IPC file format, uncompressed: it can be mapped into memory."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema_of(survey)) as writer:
        yield Sink(writer, survey)
