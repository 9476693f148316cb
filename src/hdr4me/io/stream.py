"""Reports with their ids as an Arrow IPC stream in memory: two columns, every declared size checked before it is used.

The schema is that of a file of reports (`hdr4me.io.arrow.schema_of`) with the column `id`, 16 bytes, before the
column `report`. As in `hdr4me.io.ipc` the batches are parsed here and not by Arrow: a stream that lies cannot end
the process, and compressed batches, which could be of any size, are refused.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
from numpy.typing import NDArray

from hdr4me.errors import FormatError
from hdr4me.io.arrow import COLUMN, ID, ID_SIZE, as_batch, check_schema, schema_of
from hdr4me.io.blocks import from_wire
from hdr4me.io.ipc import _MOST_METADATA, _RECORD_BATCH, Broken, _Table
from hdr4me.io.report import Reason
from hdr4me.survey import Survey

__all__ = ["ID", "ID_SIZE", "Stream", "dumps", "loads", "stream_schema"]

_SCHEMA = 1
_MARK = b"\xff\xff\xff\xff"

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Stream:
    """What a stream holds, one element for each row.

    Parameters
    ----------
    ids
        uint8 [n, 16].
    rows
        Padded reports, uint8 [n, report_size]; what is in them is not checked yet.
    reasons
        0, or the `Reason` why a row is no report; 255 where its id is missing.
    """

    ids: Bytes
    rows: Bytes
    reasons: Bytes


NO_ID = 255
"""The reason of a row without an id."""


def stream_schema(survey: Survey) -> pa.Schema:
    """The columns `id` and `report`, and whose reports they are."""
    schema = schema_of(survey)
    return schema.insert(0, pa.field(ID, pa.binary(ID_SIZE), nullable=False))


def dumps(ids: Bytes, rows: Bytes, survey: Survey) -> bytes:
    """Reports and their ids as one stream.

    Parameters
    ----------
    ids
        uint8 [n, 16].
    rows
        Padded reports, uint8 [n, report_size].
    survey
        The survey that they answer.

    Examples
    --------
    >>> from hdr4me.survey import Numeric, Schema
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), mechanism="duchi")
    >>> stream = dumps(np.zeros((2, 16), np.uint8), np.array([[0, 0, 1], [0, 0, 0]], np.uint8), survey)
    >>> loads(stream, survey, 10).rows.tolist()
    [[0, 0, 1], [0, 0, 0]]
    """
    schema = stream_schema(survey)
    column: Any = pa.Array.from_buffers(
        pa.binary(ID_SIZE), len(ids), [None, pa.py_buffer(np.ascontiguousarray(ids).data)]
    )
    reports = as_batch(np.ascontiguousarray(rows), schema_of(survey), survey).column(0)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch([column, reports], schema=schema))
    return sink.getvalue()


def loads(data: bytes, survey: Survey, most: int) -> Stream:
    """The reports in a stream of at most `most` rows.

    Parameters
    ----------
    data
        The whole stream, its end marker included.
    survey
        The survey that the reports must answer.
    most
        The most rows.

    Raises
    ------
    FormatError
        If it is not a whole stream of this survey's reports, or has more rows.
    """
    try:
        parts = _parts(data, survey, most)
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        reason = str(error).partition("\n")[0][:200] or type(error).__name__
        raise FormatError(f"not a whole Arrow stream: {reason}") from None
    ids, rows, reasons = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Stream(ids, rows, reasons)


def _parts(data: bytes, survey: Survey, most: int) -> list[tuple[Bytes, Bytes, Bytes]]:
    at, n = _check_head(data, survey), 0
    parts = [
        (
            np.empty((0, ID_SIZE), np.uint8),
            np.empty((0, survey.report_size), np.uint8),
            np.empty(0, np.uint8),
        )
    ]
    while True:
        table, start = _message(data, at)
        if table is None:
            if start != len(data):
                raise Broken("it has bytes after its end")
            return parts
        root = table.root()
        length = table.field("<q", root, 3)
        if table.field("<B", root, 1) != _RECORD_BATCH:
            raise Broken("it has a message that is no batch")
        if not 0 <= length <= len(data) - start:
            raise Broken("a batch is longer than the stream")
        batch = table.child(root, 2)
        n_rows = table.field("<q", batch, 0)
        if not 0 <= n_rows <= most - n:
            raise FormatError(f"the stream has more than {most} reports: send fewer in a request")
        n += n_rows
        parts.append(_batch(table, batch, np.frombuffer(data, np.uint8, length, start), n_rows, survey))
        at = start + length


def _check_head(data: bytes, survey: Survey) -> int:
    """Check the schema; where the first batch begins."""
    table, start = _message(data, 0)
    if table is None or table.field("<B", table.root(), 1) != _SCHEMA or table.field("<q", table.root(), 3):
        raise Broken("it does not begin with a schema")
    schema = pa.ipc.read_schema(pa.py_buffer(data[:start]))
    if schema.names != [ID, COLUMN] or schema.field(0).type != pa.binary(ID_SIZE):
        raise FormatError(f"the stream must have two columns: {ID!r} of {ID_SIZE} bytes, and {COLUMN!r}")
    check_schema("the stream", schema.remove(0), survey)
    return start


def _message(data: bytes, at: int) -> tuple[_Table | None, int]:
    """The message that begins at `at`, or None for the end marker, and where its body begins."""
    if data[at : at + 4] != _MARK or len(data) < at + 8:
        raise Broken("its end is missing")
    length = int.from_bytes(data[at + 4 : at + 8], "little")
    if length == 0:
        return None, at + 8
    if length > min(_MOST_METADATA, len(data) - at - 8):
        raise Broken("a message is longer than the stream")
    return _Table(data[at + 8 : at + 8 + length]), at + 8 + length


def _batch(table: _Table, batch: int, body: Bytes, n: int, survey: Survey) -> tuple[Bytes, Bytes, Bytes]:
    """The ids, rows and reasons of one batch."""
    if table.where(batch, 3):
        raise Broken("its batches are compressed: send them uncompressed, or the whole body as gzip")
    nodes, buffers = list(table.structs(batch, 1, 16)), list(table.structs(batch, 2, 16))
    if len(nodes) != 2 or len(buffers) != (4 if survey.fixed_size else 5):
        raise Broken("a batch must have two columns")
    if any(table.number("<q", node) != n for node in nodes):
        raise Broken("a batch's columns are not as long as the batch")
    spans = [_span(body, table.number("<q", b), table.number("<q", b + 8)) for b in buffers]
    no_id, no_report = (
        _missing(spans[which], table.number("<q", node + 8), n)
        for which, node in zip((0, 2), nodes, strict=True)
    )
    ids = _exactly(spans[1], n * ID_SIZE).reshape(n, ID_SIZE)
    if survey.fixed_size:
        rows = _exactly(spans[3], n * survey.report_size).reshape(n, survey.report_size)
        reasons = np.zeros(n, np.uint8)
    else:
        offsets = _exactly(spans[3], 4 * (n + 1) if n else 0).view("<i4").astype(np.int64)
        offsets = offsets if n else np.zeros(1, np.int64)
        if offsets[0] < 0 or offsets[-1] > len(spans[4]) or (np.diff(offsets) < 0).any():
            raise Broken("a batch's rows stand outside it")
        rows, good = from_wire(spans[4], offsets, survey)
        reasons = np.where(good, 0, Reason.SIZE).astype(np.uint8)
    reasons[no_report] = Reason.MISSING
    reasons[no_id] = NO_ID
    return ids, rows, reasons


def _span(body: Bytes, offset: int, length: int) -> Bytes:
    if offset < 0 or not 0 <= length <= len(body) - offset:
        raise Broken("a buffer stands outside its batch")
    return body[offset : offset + length]


def _exactly(span: Bytes, length: int) -> Bytes:
    if len(span) < length:
        raise Broken("a batch is shorter than its rows")
    return span[:length]


def _missing(bits: Bytes, n_nulls: int, n: int) -> NDArray[np.bool_]:
    """Which values of a column are null."""
    if n_nulls == 0:
        return np.zeros(n, bool)
    if len(bits) < -(-n // 8):
        raise Broken("a batch is shorter than its rows")
    return np.asarray(np.unpackbits(bits, count=n, bitorder="little") == 0)
