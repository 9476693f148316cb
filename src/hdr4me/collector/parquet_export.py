"""Every stored report of a round with its id, as one Parquet file that is written while it is sent.

The columns are `report` and `id`. It is a file of reports, which `hdr4me tally` and Spark read; with the ids, repeated
reports of several exports can be dropped (`dropDuplicates`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hdr4me.collector.state import Collector
from hdr4me.collector.store import Block, Store
from hdr4me.io.arrow import ID, ID_SIZE, schema_of
from hdr4me.survey import Survey

__all__ = ["parquet_parts", "write_parquet"]

_ROWS = 100_000


class _Pieces:
    """A file that hands on what is written to it."""

    closed = False

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, data: Any) -> int:
        self.parts.append(bytes(data))
        return len(self.parts[-1])

    def take(self) -> bytes:
        """What was written since the last time."""
        found, self.parts = b"".join(self.parts), []
        return found

    def flush(self) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False


def write_parquet(store: Store, number: int, survey: Survey) -> Generator[bytes, None, None]:
    """The pieces of the file, in order; memory holds one row group."""
    schema, pieces = schema_of(survey).append(pa.field(ID, pa.binary(ID_SIZE), nullable=False)), _Pieces()
    target: Any = pieces
    with pq.ParquetWriter(
        target,
        schema,
        compression="lz4",
        use_dictionary=False,
        write_statistics=False,
        write_page_checksum=True,
    ) as writer:
        held: list[Block] = []
        for block in store.blocks(number):
            held.append(block)
            if sum(map(len, held)) >= _ROWS:
                writer.write_batch(_batch(held, schema))
                held = []
                yield pieces.take()
        if held:
            writer.write_batch(_batch(held, schema))
    yield pieces.take()


def _batch(blocks: list[Block], schema: pa.Schema) -> pa.RecordBatch:
    ids = b"".join([block.id_bytes for block in blocks])
    column: Any = pa.Array.from_buffers(pa.binary(ID_SIZE), len(ids) // ID_SIZE, [None, pa.py_buffer(ids)])
    payloads = [payload for block in blocks for payload in block.payloads]
    columns = [pa.array(payloads, schema.field(0).type), column]
    return pa.record_batch(columns, schema=schema)


async def parquet_parts(collector: Collector, number: int) -> AsyncIterator[bytes]:
    """The same for a response, each piece made in a thread when the one before was taken."""
    survey = collector.view(number).survey
    pieces = write_parquet(collector.store, number, survey)
    end = object()
    try:
        while (piece := await collector.read(next, pieces, end)) is not end:
            assert isinstance(piece, bytes)
            if piece:
                yield piece
    finally:
        if not asyncio.get_running_loop().is_closed():
            await collector.read(pieces.close)
