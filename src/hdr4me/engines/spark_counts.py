"""What an executor does with reports: count them into one vector of integers, and keep what it could not count.

Nothing here knows of Spark: Arrow batches come in and go out, so it is tested without a cluster. A partial tally is
one int64 vector: the number of reports, the rejected ones by reason, then the counts. Merging is `+`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hdr4me.errors import FingerprintMismatch, FormatError
from hdr4me.reports import OnRejected, Reason, Rejected, Report, read_reports
from hdr4me.reports.arrow import read_parquet
from hdr4me.reports.files import BLOCK_BYTES
from hdr4me.reports.json import inspect
from hdr4me.reports.lines import longest_line
from hdr4me.reports.report import pack
from hdr4me.survey import Survey
from hdr4me.tally import Tally

__all__ = [
    "OUTPUT",
    "SCHEMA",
    "Split",
    "add_partials",
    "count_batches",
    "count_splits",
    "from_vector",
    "raise_fault",
    "to_vector",
]

Vector = NDArray[np.int64]

_HEAD = 1 + max(Reason)
"""Numbers before the counts: reports, then rejected ones of each reason."""

_TEXTS = ("fault", "reason", "where", "content")
_FIELDS: list[Any] = [pa.field("partial", pa.binary()), *(pa.field(x, pa.string()) for x in _TEXTS)]
OUTPUT = pa.schema(_FIELDS)
SCHEMA = "partial binary, fault string, reason string, where string, content string"
"""One row of output is a partial tally, or why the job must stop, or a rejected report."""

_KEPT_AT_ONCE = 4096


@dataclass(frozen=True)
class Split:
    """A range of a file's bytes: the row groups that begin in it; files of other formats go whole to the first."""

    path: str
    start: int
    stop: int


# -- vectors -----------------------------------------------------------------------------------------------------


def to_vector(tally: Tally) -> Vector:
    """A tally as a vector; adding vectors is adding tallies.

    >>> from hdr4me.survey import Numeric, Schema
    >>> survey = Survey(Schema([Numeric("age", 0, 120)]), mechanism="duchi")
    >>> tally = Tally(survey).add_block(np.array([[0, 0, 1], [0, 0, 7]], np.uint8))
    >>> from_vector(to_vector(tally) + to_vector(tally), survey) == tally + tally
    True
    """
    rejected = tally.rejected
    head = [tally.n_reports, *(rejected.get(Reason(code).text, 0) for code in range(1, _HEAD))]
    return np.concatenate([np.array(head, np.int64), tally.counts])


def from_vector(vector: Vector, survey: Survey) -> Tally:
    """The tally that a vector holds."""
    tally = Tally(survey)
    tally.n_reports = int(vector[0])
    numbers = {Reason(code).text: int(vector[code]) for code in range(1, _HEAD) if vector[code]}
    tally._rejected.update(numbers)
    tally.counts[:] = vector[_HEAD:]
    return tally


def add_partials(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One partial tally from many, and the first fault if there is one."""
    total: Vector | None = None
    fault: str | None = None
    for batch in batches:
        for value in batch.column("partial"):
            if value.is_valid:
                vector = np.frombuffer(value.as_buffer(), "<i8")
                total = vector.copy() if total is None else np.add(total, vector, out=total)
        fault = fault or next((text for text in batch.column("fault").to_pylist() if text), None)
    if total is not None or fault is not None:
        yield _row(total, fault)


def _row(vector: Vector | None = None, fault: str | None = None) -> pa.RecordBatch:
    partial = None if vector is None else vector.astype("<i8").tobytes()
    values: list[Any] = [[partial], [fault], [None], [None], [None]]
    return pa.RecordBatch.from_arrays(
        [pa.array(v, f.type) for v, f in zip(values, OUTPUT, strict=True)], schema=OUTPUT
    )


# -- faults: errors that are the input's, which a retry would only repeat ------------------------------------------


def _fault(error: FormatError) -> str:
    if isinstance(error, FingerprintMismatch):
        what = str(error).split(" belongs to survey ")[0]
        return json.dumps(["fingerprint", what, error.expected, error.found])
    return json.dumps(["format", str(error)])


def raise_fault(fault: str) -> None:
    """Raise here, on the driver, what an executor found."""
    kind, *parts = json.loads(fault)
    raise FingerprintMismatch(*parts) if kind == "fingerprint" else FormatError(*parts)


# -- counting ----------------------------------------------------------------------------------------------------


class _Kept(list[Rejected]):
    """Rejected reports on their way out, a few thousand at a time."""

    def batches(self, *, last: bool = False) -> Iterator[pa.RecordBatch]:
        """Those found so far, if they are many or the last."""
        while len(self) >= _KEPT_AT_ONCE or (last and self):
            part = self[:_KEPT_AT_ONCE]
            del self[:_KEPT_AT_ONCE]
            columns: list[Any] = [pa.nulls(len(part), pa.binary()), pa.nulls(len(part), pa.string())]
            for texts in ([x.reason.text for x in part], [x.where for x in part], [x.content for x in part]):
                columns.append(pa.array(texts, pa.string()))
            yield pa.RecordBatch.from_arrays(columns, schema=OUTPUT)


def count_batches(
    batches: Iterable[pa.RecordBatch], survey: Survey, *, keep: bool, where: str
) -> Iterator[pa.RecordBatch]:
    """Partial tally of the first column of batches: binary reports, or text with a JSON report in each row."""
    tally, kept = Tally(survey), _Kept()
    handler = kept.append if keep else None
    first = 0
    for batch in batches:
        column = batch.column(0)
        read = _text_rows if pa.types.is_string(column.type) else _binary_rows
        for rows, before in read(column, survey, lambda bad: tally.reject(bad, handler), where, first):
            tally.add_block(rows, on_rejected=handler, where=where, first_row=before)
        first += len(column)
        yield from kept.batches()
    yield from kept.batches(last=True)
    yield _row(to_vector(tally))


Rows = Iterator[tuple[NDArray[np.uint8], int]]
"""Blocks of reports, each with the number of rows that stand before it."""


def _binary_rows(column: Any, survey: Survey, reject: OnRejected, where: str, first: int) -> Rows:
    """The runs of reports of the right size; Spark's binary columns have values of any size, and nulls."""
    size, n = survey.report_size, len(column)
    if not n:
        return
    _, offset_buffer, data = column.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32, n + 1, 4 * column.offset)
    valid = np.asarray(column.is_valid().to_numpy(zero_copy_only=False), bool)
    values = np.frombuffer(data, np.uint8)
    bad = np.flatnonzero(~valid | (np.diff(offsets) != size)).tolist()
    run = 0
    for i in [*bad, n]:
        if i > run:
            yield values[offsets[run] : offsets[i]].reshape(i - run, size), first + run
        if i < n:
            reason = Reason.SIZE if valid[i] else Reason.MISSING
            content = values[offsets[i] : offsets[i + 1]].tobytes().hex()
            reject(Rejected(reason, f"{where}, row {first + i + 1}", content))
        run = i + 1


def _text_rows(column: Any, survey: Survey, reject: OnRejected, where: str, first: int) -> Rows:
    """The valid JSON reports, as rows; blank lines are passed over, as in a file."""
    limit = longest_line(survey)
    rows: list[bytes] = []
    for i, text in enumerate(column.to_pylist()):
        if text is None:
            reject(Rejected(Reason.MISSING, f"{where}, row {first + i + 1}", ""))
        elif text.strip():
            found = inspect(text, survey) if len(text) <= limit else Reason.MALFORMED
            if isinstance(found, Report):
                rows.append(pack(found.answers, survey))
            else:
                reject(Rejected(found, f"{where}, row {first + i + 1}", text[:limit]))
    yield np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), survey.report_size), first


def count_splits(splits: Iterable[Split], survey: Survey, *, keep: bool) -> Iterator[pa.RecordBatch]:
    """Partial tally of parts of files, read here and checked as one machine would."""
    tally, kept = Tally(survey), _Kept()
    handler = kept.append if keep else None
    try:
        for split in splits:
            for block, first in _blocks(split, survey, lambda bad: tally.reject(bad, handler)):
                tally.add_block(block, on_rejected=handler, where=split.path, first_row=first)
                yield from kept.batches()
    except FormatError as error:
        yield _row(fault=_fault(error))
        return
    yield from kept.batches(last=True)
    yield _row(to_vector(tally))


def _blocks(split: Split, survey: Survey, on_rejected: OnRejected) -> Rows:
    with Path(split.path).open("rb") as file:
        parquet = file.read(4) == b"PAR1"
    first = 0
    blocks: Iterable[NDArray[np.uint8]] = ()
    if parquet:
        groups, first = _row_groups(split)
        rows = max(1, BLOCK_BYTES // survey.report_size)
        blocks = read_parquet(split.path, survey, on_rejected, rows, row_groups=groups, first_row=first)
    elif split.start == 0:
        blocks = read_reports(split.path, survey, on_rejected=on_rejected)
    for block in blocks:
        yield block, first
        first += len(block)


def _row_groups(split: Split) -> tuple[list[int] | None, int]:
    """The row groups that begin in the split's bytes, and how many rows stand before the first of them."""
    try:
        metadata = pq.read_metadata(split.path)
    except (pa.ArrowException, OSError, ValueError):
        return None, 0  # reading it will say what is wrong
    groups, before = [], 0
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        start = group.column(0).data_page_offset if group.num_columns else 0
        if split.start <= start < split.stop:
            groups.append(index)
        elif not groups:
            before += group.num_rows
    return groups, before
