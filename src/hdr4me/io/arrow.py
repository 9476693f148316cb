"""Reports in Arrow IPC: files, and streams with ids.

Arrow's own reader maps a file into memory or reads a whole batch, and decompresses batches to any size. This module
parses footers and messages (both flatbuffers) from bytes that it has copied, and reads columns block by block. A file
or stream that is malicious, or that changes while it is read, cannot crash the process or use more memory than a block.
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from numpy.typing import NDArray

from hdr4me.errors import FingerprintMismatch, FormatError, InvalidInput
from hdr4me.io.blocks import MOST_REJECTED, Block, Bytes, from_wire, to_wire
from hdr4me.io.report import Reason, Rejected
from hdr4me.survey import Survey

FORMAT, VERSION = b"hdr4me-reports", b"1"
COLUMN = "report"
_LABELS = (b"hdr4me.format", b"hdr4me.version", b"hdr4me.survey")

# Metadata keys of an Arrow file: its last batch has no rows and holds the number of reports and their CRC-32.
CHECKSUM, ROWS, SUM = b"hdr4me.checksum", b"hdr4me.rows", b"hdr4me.crc32"

FilePath = str | os.PathLike[str]


def binary_format(path: FilePath) -> str | None:
    """The format by a file's first bytes: parquet, arrow, or None for text; an empty or mislabeled file is an error."""
    with Path(path).open("rb") as file:
        start = file.read(6)
    if not start:
        raise FormatError(f"{path} is empty")
    if start[:4] == b"PAR1" or start == b"ARROW1":
        return "arrow" if start == b"ARROW1" else "parquet"
    suffix = Path(path).suffix.lower()
    if suffix in (".parquet", ".arrow", ".feather"):
        raise FormatError(f"{path} is not a complete {suffix[1:]} file: its first bytes are wrong")
    return None


# The exceptions that Arrow raises for a damaged file.
BROKEN = (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError)


@contextmanager
def file_errors(path: FilePath, kind: str, *, quoted: bool = True) -> Iterator[None]:
    """Turn Arrow's errors for a damaged file into `FormatError`, which quotes them unless they may contain a record."""
    try:
        yield
    except BROKEN as error:
        if isinstance(error, InvalidInput | FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        reason = str(error).partition("\n")[0].partition(". ")[0] if quoted else "it cannot be read"
        raise FormatError(f"{path} is not a complete {kind} file: {reason or type(error).__name__}") from None


def schema_of(survey: Survey) -> pa.Schema:
    """The schema of a file: the column of reports, and the survey's fingerprint."""
    kind: Any = pa.binary(survey.report_size) if survey.fixed_size else pa.binary()
    metadata: Any = dict(zip(_LABELS, (FORMAT, VERSION, survey.fingerprint.encode()), strict=True))
    return pa.schema([pa.field(COLUMN, kind, nullable=False)], metadata=metadata)


# -- reading ---------------------------------------------------------------------------------------------------


def valid_bits(column: Any) -> NDArray[np.bool_]:
    """Which values of an Arrow array are not null; Arrow's own method would import pandas if it is installed."""
    return np.frombuffer(column.is_valid().cast(pa.uint8()).buffers()[1], bool, len(column))


def rows_as_blocks(
    path: FilePath,
    rows: Bytes,
    reasons: Bytes | None,
    first: int,
    content: Callable[[int], str] = lambda row: "",
) -> Iterator[Block]:
    """Rows as one block, or as blocks with at most `MOST_REJECTED` rejected reports each if some are rejected."""
    if reasons is None:
        yield Block(rows, range(first + 1, first + len(rows) + 1))
        return
    for start in range(0, len(rows), MOST_REJECTED):
        gone = reasons[start : start + MOST_REJECTED]
        before = first + start + 1
        bad = [
            Rejected(Reason(int(gone[row])), f"{path}, row {before + row}", content(start + row))
            for row in np.flatnonzero(gone).tolist()
        ]
        there = np.flatnonzero(gone == 0)
        yield Block(rows[start + there], (before + there).tolist(), bad)


def read_arrow(path: FilePath, survey: Survey, block_rows: int) -> Iterator[Block]:
    """Blocks of the reports in an Arrow IPC file; the footer is required, since it shows that the file is complete."""
    with file_errors(path, "Arrow IPC"), Path(path).open("rb") as file:
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
                yield from rows_as_blocks(path, rows, reasons, first)
                first += len(rows)
        if checked and (last.get(ROWS), last.get(SUM)) != found.closing(first):
            raise FormatError(f"{path} is not a complete Arrow IPC file: its checksum does not match")
        if not first:
            raise FormatError(f"{path} contains no reports")


def _batch_rows(
    file: Any, batch: Batch, survey: Survey, block_rows: int, sums: _Sums
) -> Iterator[tuple[Bytes, Bytes | None]]:
    """The reports of a batch, block by block, and the reasons for rejection."""
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
        raise ValueError("the number of nulls in a batch is wrong")


def reasons_of(n: int, good: NDArray[np.bool_] | None, missing: NDArray[np.bool_] | None) -> Bytes | None:
    """The reason for rejecting each of n rows, 0 for none; `good` rows have the right length. None if all are good."""
    if missing is None and (good is None or good.all()):
        return None
    reasons = np.zeros(n, np.uint8)
    if good is not None:
        reasons[~good] = Reason.SIZE
    if missing is not None:
        reasons[missing] = Reason.MISSING
    return reasons


class _Sums:
    """The CRC-32 of the bytes of all reports, and of their lengths if they differ; independent of the block size."""

    def __init__(self) -> None:
        self._data = self._lengths = 0
        self._differ = False

    def add(self, data: Bytes, lengths: NDArray[np.int32] | None) -> None:
        """Add reports to the checksum."""
        self._data = zlib.crc32(np.ascontiguousarray(data).data, self._data)
        if lengths is not None:
            self._differ = True
            self._lengths = zlib.crc32(lengths.astype("<i4").tobytes(), self._lengths)

    def closing(self, n_rows: int) -> tuple[bytes, bytes]:
        """The number of reports and their checksum, in the format of a file's last batch."""
        more = f"{self._lengths:08x}" if self._differ else ""
        return str(n_rows).encode(), f"{self._data:08x}{more}".encode()


# The second column of the collector's files: the ids of the reports, which a tally ignores.
ID, ID_SIZE = "id", 16


def without_ids(schema: pa.Schema) -> pa.Schema:
    """The schema of a file of reports without the collector's column of ids, if present."""
    has_ids = schema.names == [COLUMN, ID] and schema.field(1).type == pa.binary(ID_SIZE)
    return schema.remove(1) if has_ids else schema


def check_schema(path: FilePath, schema: pa.Schema, survey: Survey) -> None:
    """Raise an error unless the schema is that of reports of this survey."""
    metadata = schema.metadata or {}
    kind, version, found = (metadata.get(label, b"none").decode(errors="replace") for label in _LABELS)
    if kind != FORMAT.decode():
        raise FormatError(f"{path} is not a file of reports: its metadata lacks {FORMAT.decode()!r}")
    if version != VERSION.decode():
        raise FormatError(f"{path} has version {version!r}: this program supports version {VERSION.decode()}")
    if found != survey.fingerprint:
        raise FingerprintMismatch(str(path), survey.fingerprint, found)
    if schema.names != [COLUMN] or schema.field(0).type != schema_of(survey).field(0).type:
        size = f"of {survey.report_size} bytes" if survey.fixed_size else "of bytes"
        raise FormatError(f"{path} must have one column, {COLUMN!r}, {size}")


# -- writing ---------------------------------------------------------------------------------------------------


def as_batch(rows: Bytes, schema: pa.Schema, survey: Survey) -> pa.RecordBatch:
    """The rows in wire format: without padding, unless all reports of the survey have one size."""
    buffers: list[Any] = [None, pa.py_buffer(rows.data)]
    if not survey.fixed_size:
        data, offsets = to_wire(rows, survey)
        buffers = [None, pa.py_buffer(offsets.data), pa.py_buffer(data.data)]
    column: Any = pa.Array.from_buffers(schema.field(0).type, len(rows), buffers)
    return pa.record_batch([column], schema=schema)


@contextmanager
def arrow_sink(path: Path, survey: Survey) -> Iterator[Callable[[Bytes], None]]:
    """Write blocks to an uncompressed Arrow IPC file; the last batch holds the number of reports and their CRC-32."""
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


MAGIC = b"ARROW1"
_MOST_FOOTER = 1 << 26
_MOST_METADATA = 1 << 20
_SCHEMA, _RECORD_BATCH = 1, 3
_MARK = b"\xff\xff\xff\xff"


class Broken(ValueError):
    """The file is damaged; the message describes how."""


Read = Callable[[int, int], Bytes]  # reads (offset, length) bytes of the file or stream


@dataclass(frozen=True)
class Column:
    """The offset and length of each buffer of a column; `offsets` is used if values differ in size."""

    n_nulls: int
    validity: tuple[int, int]
    offsets: tuple[int, int]
    values: tuple[int, int]


@dataclass(frozen=True)
class Batch:
    """The columns of a batch, and the metadata of its message."""

    n_rows: int
    columns: tuple[Column, ...]
    metadata: dict[bytes, bytes]


def batches_of(file: IO[bytes], size: int) -> Iterator[Batch]:
    """The one-column batches in the footer of a file of this size, in order.

    Batches must not overlap: a footer that lists one batch a thousand times would cost a thousand times its size.
    """
    read = reader_of(file, _MOST_FOOTER)
    tail = bytes(read(size - 10, 10)) if size >= 18 else b""
    if tail[4:] != MAGIC:
        raise Broken("its end is missing")
    length = int.from_bytes(tail[:4], "little", signed=True)
    if not 8 <= length <= min(_MOST_FOOTER, size - 18):
        raise Broken("the length of its footer is impossible")
    end = size - 10 - length
    footer = Flatbuffer(bytes(read(end, length)))
    root = footer.root()
    if any(footer.structs(root, 2, 24)):
        raise Broken("it has dictionaries")
    before = len(MAGIC)
    for at in footer.structs(root, 3, 24):
        offset, length = footer.number("<q", at), footer.number("<i", at + 8)
        body = footer.number("<q", at + 16)
        if offset < before or not 8 <= length <= _MOST_METADATA or not 0 <= body <= end - offset - length:
            raise Broken("a batch is outside the file or overlaps another batch")
        before = offset + length + body
        message = bytes(read(offset, length))
        yield _batch(Flatbuffer(message[8 if message[:4] == _MARK else 4 :]), offset + length, body, 1)


def reader_of(file: Any, most: int) -> Read:
    """A function that copies bytes of a file, at most `most` at once."""

    def read(offset: int, length: int) -> Bytes:
        if length > most:
            raise Broken("the rows of a batch are longer than reports")
        data = np.empty(length, np.uint8)
        file.seek(offset)
        if file.readinto(data.data) != length:
            raise Broken("it was truncated while being read")
        return data

    return read


def stream_batches(data: bytes, at: int, n_columns: int) -> Iterator[Batch]:
    """The batches of a stream in memory from the offset `at` to the end marker, which is required."""
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


def _message(data: bytes, at: int) -> tuple[Flatbuffer | None, int]:
    """The message that begins at `at`, or None for the end marker, and the offset of its body."""
    if data[at : at + 4] != _MARK or len(data) < at + 8:
        raise Broken("its end is missing")
    length = int.from_bytes(data[at + 4 : at + 8], "little")
    if length == 0:
        return None, at + 8
    if length > min(_MOST_METADATA, len(data) - at - 8):
        raise Broken("a message is longer than the stream")
    return Flatbuffer(data[at + 8 : at + 8 + length]), at + 8 + length


def _batch(table: Flatbuffer, start: int, body: int, n_columns: int) -> Batch:
    """The batch of a message whose body of `body` bytes begins at `start`; only its last column has offsets."""
    root = table.root()
    if table.field("<B", root, 1) != _RECORD_BATCH:
        raise Broken("it has a message that is not a batch")
    batch = table.child(root, 2)
    if table.where(batch, 3):
        raise Broken("its batches are compressed: write reports in Arrow without compression")
    n_rows = table.field("<q", batch, 0)
    nodes, buffers = list(table.structs(batch, 1, 16)), list(table.structs(batch, 2, 16))
    if len(nodes) != n_columns or len(buffers) - 2 * n_columns not in (0, 1):
        raise Broken("a batch has too many or too few columns")
    spans = []
    for at in buffers:
        offset, length = table.number("<q", at), table.number("<q", at + 8)
        if offset < 0 or not 0 <= length <= body - offset:
            raise Broken("a buffer is outside its batch")
        spans.append((start + offset, length))
    columns = []
    for k, node in enumerate(nodes):
        n_nulls = table.number("<q", node + 8)
        if table.number("<q", node) != n_rows or not 0 <= n_nulls <= n_rows:
            raise Broken("the columns of a batch differ in length")
        values = spans[-1] if k == n_columns - 1 else spans[2 * k + 1]
        columns.append(Column(n_nulls, spans[2 * k], spans[2 * k + 1], values))
    return Batch(n_rows, tuple(columns), table.pairs(root, 4))


# -- the rows of a column ----------------------------------------------------------------------------------------


def report_rows(
    read: Read, column: Column, survey: Survey, start: int, n: int
) -> tuple[Bytes, NDArray[np.int32] | None, Bytes, NDArray[np.bool_] | None]:
    """The bytes of n reports, their lengths, the padded rows, and which rows have the right length.

    The second and the last are None if all reports have one size.
    """
    if survey.fixed_size:
        rows = fixed_rows(read, column.values, survey.report_size, start, n)
        return rows.reshape(-1), None, rows, None
    ends = fixed_rows(read, column.offsets, 4, start, n + 1).reshape(-1).view("<i4").astype(np.int64)
    if ends[0] < 0 or ends[-1] > column.values[1] or (np.diff(ends) < 0).any():
        raise Broken("the rows of a batch are outside it")
    data = read(column.values[0] + int(ends[0]), int(ends[-1] - ends[0]))
    return data, np.diff(ends).astype(np.int32), *from_wire(data, ends - ends[0], survey)


def fixed_rows(read: Read, buffer: tuple[int, int], size: int, start: int, n: int) -> Bytes:
    """Rows of `size` bytes from a buffer."""
    at, length = buffer
    if length < (start + n) * size:
        raise Broken("a batch is too short for its rows")
    return read(at + start * size, n * size).reshape(n, size)


def null_rows(read: Read, column: Column, start: int, n: int) -> NDArray[np.bool_] | None:
    """Which rows are null, None if the column has no nulls; `start` is a multiple of 8."""
    if not column.n_nulls:
        return None
    at, length = column.validity
    if length < -(-(start + n) // 8):
        raise Broken("a batch is too short for its rows")
    packed = read(at + start // 8, -(-n // 8))
    return np.asarray(np.unpackbits(packed, count=n, bitorder="little") == 0)


# -- flatbuffers -------------------------------------------------------------------------------------------------


class Flatbuffer:
    """A flatbuffer in memory; a read outside the bounds raises `Broken`."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def number(self, kind: str, at: int) -> int:
        """The number of `struct` kind `kind` at `at`."""
        if not 0 <= at <= len(self._data) - struct.calcsize(kind):
            raise Broken("an offset is out of bounds")
        return int(struct.unpack_from(kind, self._data, at)[0])

    def root(self) -> int:
        """The offset of the root table."""
        return self.number("<I", 0)

    def where(self, table: int, index: int) -> int:
        """The offset of the table's field with this index, or 0 if it is absent."""
        vtable = table - self.number("<i", table)
        inside = 4 + 2 * index + 2 <= self.number("<H", vtable)
        offset = self.number("<H", vtable + 4 + 2 * index) if inside else 0
        return table + offset if offset else 0

    def field(self, kind: str, table: int, index: int) -> int:
        """A number in the table, 0 if absent."""
        at = self.where(table, index)
        return self.number(kind, at) if at else 0

    def child(self, table: int, index: int) -> int:
        """The offset of a child table."""
        at = self.where(table, index)
        if not at:
            raise Broken("a message is empty")
        return at + self.number("<I", at)

    def structs(self, table: int, index: int, size: int) -> Iterator[int]:
        """The offsets of the elements of a vector of structs or of 4-byte offsets."""
        if not self.where(table, index):
            return
        vector = self.child(table, index)
        n = self.number("<I", vector)
        if n * size > len(self._data) - vector - 4:
            raise Broken("a list is longer than its container")
        yield from range(vector + 4, vector + 4 + n * size, size)

    def pairs(self, table: int, index: int) -> dict[bytes, bytes]:
        """A list of keys and values."""
        metadata = {}
        for at in self.structs(table, index, 4):
            pair = at + self.number("<I", at)
            metadata[self._text(pair, 0)] = self._text(pair, 1)
        return metadata

    def _text(self, table: int, index: int) -> bytes:
        at = self.child(table, index)
        n = self.number("<I", at)
        if n > len(self._data) - at - 4:
            raise Broken("a string is longer than its container")
        return self._data[at + 4 : at + 4 + n]


@dataclass(frozen=True)
class Stream:
    """The content of a stream: ids [n, 16], padded and unchecked reports [n, report_size], and reasons.

    A reason is 0, the `Reason` why a row is not a report, or `NO_ID`.
    """

    ids: Bytes
    rows: Bytes
    reasons: Bytes


NO_ID = 255  # the reason of a row without an id


def stream_schema(survey: Survey) -> pa.Schema:
    """The columns `id` and `report`, with the survey's fingerprint."""
    return schema_of(survey).insert(0, pa.field(ID, pa.binary(ID_SIZE), nullable=False))


def dumps(ids: Bytes, rows: Bytes, survey: Survey) -> bytes:
    """Reports, padded rows uint8 [n, report_size], and their ids, uint8 [n, 16], as one stream."""
    schema = stream_schema(survey)
    column: Any = pa.Array.from_buffers(
        pa.binary(ID_SIZE), len(ids), [None, pa.py_buffer(np.ascontiguousarray(ids).data)]
    )
    reports = as_batch(np.ascontiguousarray(rows), schema_of(survey), survey).column(0)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch([column, reports], schema=schema))
    return sink.getvalue()


_MOST_BATCHES = 1000  # in a stream: each costs time, even if it is empty


def loads(data: bytes, survey: Survey, most: int) -> Stream:
    """The reports in a complete stream of at most `most` rows; otherwise FormatError."""
    try:
        parts = list(_stream_parts(data, survey, most))
    except BROKEN as error:
        reason = str(error).partition("\n")[0][:200] or type(error).__name__
        raise FormatError(f"not a complete Arrow stream: {reason}") from None
    ids, rows, reasons = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Stream(ids, rows, reasons)


def _stream_parts(data: bytes, survey: Survey, most: int) -> Iterator[tuple[Bytes, Bytes, Bytes]]:
    """The ids, rows and reasons of each batch, after an empty one."""

    def read(at: int, length: int) -> Bytes:
        return np.frombuffer(data, np.uint8, length, at)

    table, start = _message(data, 0)
    if table is None or table.field("<B", table.root(), 1) != _SCHEMA or table.field("<q", table.root(), 3):
        raise Broken("it does not begin with a schema")
    schema = pa.ipc.read_schema(pa.py_buffer(data[:start]))
    if schema.names != [ID, COLUMN] or schema.field(0).type != pa.binary(ID_SIZE):
        raise FormatError(f"the stream must have two columns: {ID!r} of {ID_SIZE} bytes, and {COLUMN!r}")
    check_schema("the stream", schema.remove(0), survey)
    ids, rows = np.empty((0, ID_SIZE), np.uint8), np.empty((0, survey.report_size), np.uint8)
    yield ids, rows, np.empty(0, np.uint8)
    n = 0
    for count, batch in enumerate(stream_batches(data, start, 2)):
        if count >= _MOST_BATCHES:
            raise FormatError(f"the stream has more than {_MOST_BATCHES} batches: write fewer, larger ones")
        n += batch.n_rows
        if not 0 <= batch.n_rows <= n <= most:
            raise FormatError(f"the stream has more than {most} reports: send fewer in a request")
        if batch.n_rows:
            size, (own, reports) = batch.n_rows, batch.columns
            _, _, rows, good = report_rows(read, reports, survey, 0, size)
            reasons = reasons_of(size, good, null_rows(read, reports, 0, size))
            reasons = np.zeros(size, np.uint8) if reasons is None else reasons
            no_id = null_rows(read, own, 0, size)
            reasons[False if no_id is None else no_id] = NO_ID
            yield fixed_rows(read, own.values, ID_SIZE, 0, size), rows, reasons
