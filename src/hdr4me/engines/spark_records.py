"""What an executor does with records: randomise them, and hand on the reports or write them to a file of its own.

Each call of the kernel opens a keystream of its own from the operating system, so tasks, retries and forked workers
never share a draw. Nothing here knows of Spark: Arrow batches come in and go out.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdr4me.engines.columns import from_batch
from hdr4me.engines.general import perturb_source
from hdr4me.reports import ReportWriter, write_reports
from hdr4me.reports.wire import to_wire
from hdr4me.survey import Survey

__all__ = ["PART_SCHEMA", "report_batches", "write_part"]

PART_SCHEMA = "name string, n_reports long"
"""A file that a task wrote: its name, and how many reports it holds."""


def reports_of(batches: Iterable[pa.RecordBatch], survey: Survey) -> Iterator[NDArray[np.uint8]]:
    """Blocks of reports, one for each batch whose columns are the survey's dimensions in its order."""
    for batch in batches:
        yield perturb_source(from_batch(batch, survey), survey)


def report_batches(batches: Iterable[pa.RecordBatch], survey: Survey) -> Iterator[pa.RecordBatch]:
    """Reports as a binary column, `report`."""
    for block in reports_of(batches, survey):
        data, offsets = to_wire(block, survey)
        buffers: list[Any] = [None, pa.py_buffer(offsets.data), pa.py_buffer(data.data)]
        column: Any = pa.Array.from_buffers(pa.binary(), len(block), buffers)
        yield pa.RecordBatch.from_arrays([column], names=["report"])


def write_part(
    batches: Iterable[pa.RecordBatch], survey: Survey, folder: str, number: int
) -> Iterator[pa.RecordBatch]:
    """Write the reports to a file in `folder` that no other attempt has, and say which; no records, no file.

    The name is random: an attempt that is repeated writes beside the first, and whoever collects the names (each
    partition's once) decides which of the two exists.
    """
    name = f"part-{number:05d}-{secrets.token_hex(8)}.parquet"
    n = 0
    writer: ReportWriter | None = None
    with ExitStack() as stack:
        for block in reports_of(batches, survey):
            if len(block):
                writer = writer or stack.enter_context(write_reports(Path(folder, name), survey))
                writer.write(block)
                n += len(block)
    if n:
        yield pa.RecordBatch.from_pydict({"name": [name], "n_reports": [n]})
