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

from hdr4me.errors import FormatError
from hdr4me.io.arrow import BROKEN, COLUMN, ID, ID_SIZE, as_batch, check_schema, reasons_of, schema_of
from hdr4me.io.blocks import Bytes
from hdr4me.io.ipc import Batch, Read, fixed_rows, null_rows, report_rows, stream_batches, stream_head
from hdr4me.survey import Survey


@dataclass(frozen=True)
class Stream:
    """What a stream holds: ids [n, 16], padded reports [n, report_size] that are still to be checked, and reasons.

    A reason is 0, the `Reason` why a row is not a report, or `NO_ID`.
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
    """Reports, padded rows uint8 [n, report_size], and their ids, uint8 [n, 16], as one stream.

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
    """The reports in a whole stream of at most `most` rows; raises FormatError if it is anything else."""
    try:
        parts = _parts(data, survey, most)
    except BROKEN as error:
        reason = str(error).partition("\n")[0][:200] or type(error).__name__
        raise FormatError(f"not a whole Arrow stream: {reason}") from None
    ids, rows, reasons = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Stream(ids, rows, reasons)


def _parts(data: bytes, survey: Survey, most: int) -> list[tuple[Bytes, Bytes, Bytes]]:
    """The ids, rows and reasons of each batch."""
    start = stream_head(data)
    schema = pa.ipc.read_schema(pa.py_buffer(data[:start]))
    if schema.names != [ID, COLUMN] or schema.field(0).type != pa.binary(ID_SIZE):
        raise FormatError(f"the stream must have two columns: {ID!r} of {ID_SIZE} bytes, and {COLUMN!r}")
    check_schema("the stream", schema.remove(0), survey)
    nothing = np.empty((0, ID_SIZE), np.uint8), np.empty((0, survey.report_size), np.uint8)
    parts: list[tuple[Bytes, Bytes, Bytes]] = [(*nothing, np.empty(0, np.uint8))]

    def read(offset: int, length: int) -> Bytes:
        return np.frombuffer(data, np.uint8, length, offset)

    n = 0
    for batch in stream_batches(data, start, 2):
        n += batch.n_rows
        if not 0 <= batch.n_rows <= n <= most:
            raise FormatError(f"the stream has more than {most} reports: send fewer in a request")
        if batch.n_rows:
            parts.append(_batch(read, batch, survey))
    return parts


def _batch(read: Read, batch: Batch, survey: Survey) -> tuple[Bytes, Bytes, Bytes]:
    n, (ids, reports) = batch.n_rows, batch.columns
    _, _, rows, good = report_rows(read, reports, survey, 0, n)
    reasons = reasons_of(n, good, null_rows(read, reports, 0, n))
    reasons = np.zeros(n, np.uint8) if reasons is None else reasons
    no_id = null_rows(read, ids, 0, n)
    reasons[False if no_id is None else no_id] = NO_ID
    return fixed_rows(read, ids, ID_SIZE, 0, n), rows, reasons
