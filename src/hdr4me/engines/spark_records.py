"""What an executor does with records: randomise them, and hand on the reports or write them to a file of its own.

Each call of the kernel opens a keystream of its own from the operating system, so tasks, retries and forked workers
never share a draw. Nothing here knows of Spark: Arrow batches come in and go out.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdr4me.engines.general import perturb_source
from hdr4me.engines.spark_counts import as_fault, raise_fault
from hdr4me.errors import HDR4MEError
from hdr4me.io import ReportWriter, write_reports
from hdr4me.io.account import Account, account_of
from hdr4me.io.blocks import to_wire
from hdr4me.io.columns import from_batch
from hdr4me.io.reading import Part, batch_rows, bounded, read_part
from hdr4me.survey import Survey

Batches = Iterable[pa.RecordBatch]

ACCOUNT_SCHEMA = "account binary, fault string"
"""What a task counted, or why the job must stop."""
PART_SCHEMA = f"name string, n_reports long, {ACCOUNT_SCHEMA}"
"""A file that a task wrote: its name, how many reports it holds, and the account of their records."""
REPORT_SCHEMA = f"report binary, {ACCOUNT_SCHEMA}"
"""A report; the last row of a task has the account of its records beside it, or only a fault."""


def part_batches(parts: Sequence[Part], survey: Survey) -> Iterator[pa.RecordBatch]:
    """The records of files, as this executor reads them."""
    for part in parts:
        yield from read_part(part, survey.schema, batch_rows(survey))


def reports_of(batches: Batches, survey: Survey, accounts: list[Account]) -> Iterator[NDArray[np.uint8]]:
    """Blocks of reports of batches whose columns are the survey's dimensions in its order.

    The only item of `accounts` becomes the account of all records so far.
    """
    for batch in bounded(batches, batch_rows(survey)):
        source = from_batch(batch, survey)
        accounts[0] += account_of(source, survey)
        yield perturb_source(source, survey)


def report_batches(batches: Batches, survey: Survey) -> Iterator[pa.RecordBatch]:
    """Reports as a binary column, `report`; see `REPORT_SCHEMA`."""
    accounts = [Account.empty(survey)]
    waiting: NDArray[np.uint8] | None = None
    try:
        for block in reports_of(batches, survey, accounts):
            if waiting is not None:
                yield _reports(waiting, survey, None)
            waiting = block
    except HDR4MEError as error:
        yield _row(REPORT_SCHEMA, fault=as_fault(error))
        return
    if waiting is not None:
        yield _reports(waiting, survey, accounts[0])


def _reports(block: NDArray[np.uint8], survey: Survey, account: Account | None) -> pa.RecordBatch:
    n = len(block)
    data, offsets = to_wire(block, survey)
    buffers: list[Any] = [None, pa.py_buffer(offsets.data), pa.py_buffer(data.data)]
    column: Any = pa.Array.from_buffers(pa.binary(), n, buffers)
    last = None if account is None else account.counts.astype("<i8").tobytes()
    counted = pa.array([None] * (n - 1) + [last], pa.binary())
    return pa.RecordBatch.from_arrays(
        [column, counted, pa.nulls(n, pa.string())], names=["report", "account", "fault"]
    )


def write_part(batches: Batches, survey: Survey, folder: str, number: int) -> Iterator[pa.RecordBatch]:
    """Write the reports to a file in `folder` that no other attempt has, and say which; no records, no file.

    The name is random: an attempt that is repeated writes beside the first, and whoever collects the names (each
    partition's once) decides which of the two exists.
    """
    name = f"part-{number:05d}-{secrets.token_hex(8)}.parquet"
    n = 0
    accounts = [Account.empty(survey)]
    writer: ReportWriter | None = None
    try:
        with ExitStack() as stack:
            for block in reports_of(batches, survey, accounts):
                if len(block):
                    writer = writer or stack.enter_context(write_reports(Path(folder, name), survey))
                    writer.write(block)
                    n += len(block)
    except HDR4MEError as error:
        yield _row(PART_SCHEMA, fault=as_fault(error))
        return
    if n:
        yield _row(PART_SCHEMA, name=name, n_reports=n, account=_bytes(accounts[0]))


def account_batches(batches: Batches, survey: Survey) -> Iterator[pa.RecordBatch]:
    """The account of records, without making a report."""
    total = Account.empty(survey)
    try:
        for batch in bounded(batches, batch_rows(survey)):
            total += account_of(from_batch(batch, survey), survey)
    except HDR4MEError as error:
        yield _row(ACCOUNT_SCHEMA, fault=as_fault(error))
        return
    yield _row(ACCOUNT_SCHEMA, account=_bytes(total))


def account_from(rows: Iterable[Any], survey: Survey) -> Account:
    """The sum of the accounts in rows with the fields of `ACCOUNT_SCHEMA`; a fault among them is raised."""
    total = Account.empty(survey)
    for row in rows:
        if row["fault"] is not None:
            raise_fault(row["fault"])
        counts = np.frombuffer(row["account"], "<i8").reshape(total.counts.shape)
        total += Account(survey.schema, counts.astype(np.int64))
    return total


def _bytes(account: Account) -> bytes:
    return account.counts.astype("<i8").tobytes()


_TYPES: dict[str, Any] = {"binary": pa.binary(), "string": pa.string(), "long": pa.int64()}


def _row(schema: str, **values: Any) -> pa.RecordBatch:
    fields = [field.split() for field in schema.split(", ")]
    columns = [pa.array([values.get(name)], _TYPES[kind]) for name, kind in fields]
    return pa.RecordBatch.from_arrays(columns, names=[name for name, _ in fields])
