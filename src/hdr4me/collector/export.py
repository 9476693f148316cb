"""The reports of a round as files: exported with or without their ids, and loaded."""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hdr4me.collector.batch import Batch, Block
from hdr4me.collector.stores.protocol import OnDamage, Sealed, Store
from hdr4me.reports.arrow import ID, ID_SIZE, schema_of
from hdr4me.reports.files import block_rows_of, read_reports, write_reports
from hdr4me.reports.wire import to_wire
from hdr4me.survey import Survey

__all__ = ["export_reports", "load_reports", "write_parquet"]

_ROWS = 100_000


def export_reports(
    store: Store, round: int, path: str | os.PathLike[str], *, on_damage: OnDamage | None = None
) -> int:
    """Write the reports of a round without their ids, in the order of blocks and ids; their number.

    `hdr4me tally` on this file gives the same bytes as `store.tally(round)`.

    Parameters
    ----------
    store, round
        The store, and the number of the round; Sealed if its reports are deleted.
    path
        A file that ends in .parquet, .arrow or .jsonl; it appears whole or not at all.
    on_damage
        Receives damaged blocks, which are left out; without it, Damaged is raised and no file appears.
    """
    found = store.round(round)
    if found.sealed:
        raise Sealed(f"round {round} is sealed: only its tally is kept")
    survey = store.survey(found.fingerprint)
    most = block_rows_of(survey)
    waiting, n, total = [], 0, 0
    with write_reports(path, survey) as writer:
        for block in store.blocks(round, on_damage=on_damage):
            waiting.append(block.rows(survey))
            n += len(block)
            if n >= most:
                writer.write(np.concatenate(waiting))
                waiting, n, total = [], 0, total + n
        if waiting:
            writer.write(np.concatenate(waiting))
    return total + n


def load_reports(store: Store, round: int, path: str | os.PathLike[str], survey: Survey) -> int:
    """Store the reports of a file under new ids; their number.

    Parameters
    ----------
    store, round
        The store, and the number of the round.
    path
        A file of reports.
    survey
        The survey of the round.
    """
    n = 0
    for rows in read_reports(path, survey):
        data, offsets = to_wire(np.ascontiguousarray(rows), survey)
        sizes = None if survey.fixed_size else np.diff(offsets).tolist()
        batch = Batch(round, 0, secrets.token_bytes(ID_SIZE * len(rows)), data.tobytes(), sizes)
        store.write([batch])
        n += batch.stored
    return n


# -- Parquet with ids --------------------------------------------------------------------------------------------


class _Pieces:
    """A file that collects what is written to it."""

    closed = False

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, data: Any) -> int:
        self.parts.append(bytes(data))
        return len(self.parts[-1])

    def take(self) -> bytes:
        """What was written since the last call."""
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
    """The pieces of a Parquet file with the columns `report` and `id`, in order; memory holds one row group.

    `hdr4me tally` and Spark read it as a file of reports; with the ids, reports that are in several exports can be
    removed (`dropDuplicates`).
    """
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
                writer.write_batch(_record_batch(held, schema))
                held = []
                yield pieces.take()
        if held:
            writer.write_batch(_record_batch(held, schema))
    yield pieces.take()


def _record_batch(blocks: list[Block], schema: pa.Schema) -> pa.RecordBatch:
    ids = b"".join([block.id_bytes for block in blocks])
    column: Any = pa.Array.from_buffers(pa.binary(ID_SIZE), len(ids) // ID_SIZE, [None, pa.py_buffer(ids)])
    payloads = [payload for block in blocks for payload in block.payloads]
    return pa.record_batch([pa.array(payloads, schema.field(0).type), column], schema=schema)
