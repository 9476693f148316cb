"""The reports of a round as a Parquet file, and reports of a file loaded into a round."""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Generator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hdr4me.collector.batch import FRESH, Block
from hdr4me.collector.forms import Forms
from hdr4me.collector.stores.protocol import Store
from hdr4me.io.arrow import ID, ID_SIZE, schema_of
from hdr4me.io.files import read_reports
from hdr4me.survey import Survey

_ROWS = 100_000
_LEAN: Any = {"use_dictionary": False, "write_statistics": False}  # neither helps with random bytes


def load_reports(store: Store, round: int, path: str | os.PathLike[str], survey: Survey) -> int:
    """Store the reports of a file under new ids, in a round of this survey; their number."""
    n = 0
    for rows in read_reports(path, survey):
        ids = np.frombuffer(secrets.token_bytes(ID_SIZE * len(rows)), np.uint8)
        batch = Forms(round, survey).batch(0, ids, rows, [])
        store.write([batch])
        n += batch.stored
    return n


class _Pieces(io.BytesIO):
    """A file in memory that is emptied while it is written."""

    def take(self) -> bytes:
        """What was written since the last call."""
        found = self.getvalue()
        self.seek(0)
        self.truncate()
        return found

    def close(self) -> None:
        """Stay readable after the writer has closed it."""


def write_parquet(store: Store, number: int, survey: Survey) -> Generator[bytes, None, None]:
    """The pieces of a Parquet file with the columns `report` and `id`, in order; memory holds one row group."""
    schema, pieces = schema_of(survey).append(pa.field(ID, pa.binary(ID_SIZE), nullable=False)), _Pieces()
    with pq.ParquetWriter(pieces, schema, compression="lz4", write_page_checksum=True, **_LEAN) as writer:
        held: list[Block] = []
        for block in store.blocks(number):
            held.append(block)
            # Numbers from FRESH are in order of arrival.
            if sum(map(len, held)) >= _ROWS and block.number < FRESH:
                writer.write_batch(_record_batch(held, schema))
                held = []
                yield pieces.take()
        if held:
            writer.write_batch(_record_batch(held, schema))
    yield pieces.take()


def _record_batch(blocks: list[Block], schema: pa.Schema) -> pa.RecordBatch:
    """The reports of some blocks, sorted by their random ids: the order of arrival is lost."""
    pairs = sorted(pair for block in blocks for pair in zip(block.ids, block.payloads, strict=True))
    columns = [[payload for _, payload in pairs], [id for id, _ in pairs]]
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
