"""What an executor does with reports: count them into one vector of integers, and keep what it could not count.

Nothing here knows of Spark: Arrow batches come in and go out, so it is tested without a cluster. A partial tally is
one int64 vector: the number of reports, the rejected ones by reason, then the counts. Merging is `+`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdr4me.errors import FingerprintMismatch, FormatError, HDR4MEError, InvalidInput
from hdr4me.io import Reason, Rejected, Report
from hdr4me.io.arrow import valid_bits
from hdr4me.io.blocks import MOST_REJECTED, Block, from_wire
from hdr4me.io.files import block_rows_of, read_blocks
from hdr4me.io.lines import shown, understand
from hdr4me.io.parquet import read_parquet
from hdr4me.io.quarantine import QUARANTINE_BYTES, left_out_lines
from hdr4me.io.report import pack
from hdr4me.survey import Survey
from hdr4me.tally import PairCounts, Tally

Vector = NDArray[np.int64]
Names = Sequence[tuple[str, str]]

_HEAD = 1 + max(Reason)
"""Numbers before the counts: reports, then rejected ones of each reason."""

_TEXTS = ("fault", "reason", "where", "content")
_FIELDS: list[Any] = [pa.field("partial", pa.binary()), *(pa.field(x, pa.string()) for x in _TEXTS)]
OUTPUT = pa.schema(_FIELDS)
SCHEMA = "partial binary, fault string, reason string, where string, content string"
"""One row of output is a partial tally, or why the job must stop, or a rejected report."""

_KEPT_AT_ONCE = 4096
_MOST_SHOWN = 1 << 16
"""Bytes of a report of the wrong size that are kept."""


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
        yield partial_row(total, fault)


def partial_row(vector: Vector | None = None, fault: str | None = None) -> pa.RecordBatch:
    """One row of output: a partial vector of counts, or why the job must stop."""
    partial = None if vector is None else vector.astype("<i8").tobytes()
    values: list[Any] = [[partial], [fault], [None], [None], [None]]
    return pa.RecordBatch.from_arrays(
        [pa.array(v, f.type) for v, f in zip(values, OUTPUT, strict=True)], schema=OUTPUT
    )


# -- faults: errors that are the input's, which a retry would only repeat ------------------------------------------


def as_fault(error: HDR4MEError) -> str:
    """An error of the input as a text, for the driver."""
    if isinstance(error, FingerprintMismatch):
        what = str(error).split(" belongs to survey ")[0]
        return json.dumps(["fingerprint", what, error.expected, error.found])
    return json.dumps(["input" if isinstance(error, InvalidInput) else "format", str(error)])


def raise_fault(fault: str) -> None:
    """Raise here, on the driver, what an executor found."""
    kind, *parts = json.loads(fault)
    raise {"fingerprint": FingerprintMismatch, "input": InvalidInput, "format": FormatError}[kind](*parts)


# -- counting ----------------------------------------------------------------------------------------------------


class _Kept:
    """Rejected reports on their way out, a few thousand at a time; beyond the quarantine's limit only their number."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, str, str]] = []
        self._left_out: Counter[str] = Counter()
        self._room = QUARANTINE_BYTES

    def add(self, rejected: Rejected) -> None:
        """Take one."""
        reason = rejected.reason.text
        self._room -= len(reason) + len(rejected.where) + len(rejected.content)
        if self._room < 0:
            self._left_out[reason] += 1
        else:
            self._waiting.append((reason, rejected.where, rejected.content))

    def batches(self, *, last: bool = False) -> Iterator[pa.RecordBatch]:
        """Those found so far, if they are many or the last."""
        if last:
            self._waiting += left_out_lines(self._left_out)
        if len(self._waiting) < _KEPT_AT_ONCE and not last:
            return
        waiting, self._waiting = self._waiting, []
        for start in range(0, len(waiting), _KEPT_AT_ONCE):
            part = waiting[start : start + _KEPT_AT_ONCE]
            columns: list[Any] = [pa.nulls(len(part), pa.binary()), pa.nulls(len(part), pa.string())]
            columns += [pa.array(texts, pa.string()) for texts in zip(*part, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=OUTPUT)


def count_batches(
    batches: Iterable[pa.RecordBatch], survey: Survey, *, keep: bool, where: str
) -> Iterator[pa.RecordBatch]:
    """Partial tally of the first column of batches: binary reports, or text with a JSON report in each row."""
    return _counted(((where, block) for block in blocks_of(batches, survey, where)), survey, keep)


def count_splits(splits: Iterable[Split], survey: Survey, *, keep: bool) -> Iterator[pa.RecordBatch]:
    """Partial tally of parts of files, read here and checked as one machine would."""
    blocks = ((split.path, block) for split in splits for block in split_blocks(split, survey))
    return _counted(blocks, survey, keep)


def _counted(blocks: Iterable[tuple[str, Block]], survey: Survey, keep: bool) -> Iterator[pa.RecordBatch]:
    tally, kept = Tally(survey), _Kept()
    try:
        for where, block in blocks:
            tally.add_read(block, on_rejected=kept.add if keep else None, where=where)
            yield from kept.batches()
    except FormatError as error:
        yield partial_row(fault=as_fault(error))
        return
    yield from kept.batches(last=True)
    yield partial_row(to_vector(tally))


def blocks_of(batches: Iterable[pa.RecordBatch], survey: Survey, where: str) -> Iterator[Block]:
    """The blocks of reports in the first column of batches: binary reports, or text with a JSON report in each row."""
    first = 0
    for batch in batches:
        column = batch.column(0)
        text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        # As bytes with offsets of 32 bits, whatever Spark was told to use. A row that is not UTF-8 is rejected, where
        # turning it into text would stop the whole job.
        column = column.cast(pa.binary())
        yield from (_text_blocks if text else _binary_blocks)(column, survey, where, first)
        first += len(column)


def _binary_blocks(column: Any, survey: Survey, where: str, first: int) -> Iterator[Block]:
    """Blocks of the reports of the right size; Spark's binary columns have values of any size, and nulls."""
    size, n = survey.report_size, len(column)
    if not n:
        return
    _, offset_buffer, data = column.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32, n + 1, 4 * column.offset)
    values = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    valid = valid_bits(column)
    if survey.fixed_size:
        good = valid & (np.diff(offsets) == size)
        padded = values[offsets[0] : offsets[n]].reshape(n, size) if good.all() else None
    else:
        padded, sized = from_wire(values, offsets.astype(np.int64), survey)
        good = valid & sized
    if good.all() and padded is not None:
        yield Block(padded, range(first + 1, first + n + 1))
        return
    for start in range(0, n, MOST_REJECTED):
        there = start + np.flatnonzero(good[start : start + MOST_REJECTED])
        bad = []
        for i in (start + np.flatnonzero(~good[start : start + MOST_REJECTED])).tolist():
            content = values[offsets[i] : min(offsets[i + 1], offsets[i] + _MOST_SHOWN)].tobytes().hex()
            reason = Reason.SIZE if valid[i] else Reason.MISSING
            bad.append(Rejected(reason, f"{where}, row {first + i + 1}", content))
        rows = values[offsets[there][:, None] + np.arange(size)] if padded is None else padded[there]
        yield Block(rows, (first + 1 + there).tolist(), bad)


def _text_blocks(column: Any, survey: Survey, where: str, first: int) -> Iterator[Block]:
    """Blocks of the valid JSON reports; a row is what a line is in a file."""
    for start in range(0, len(column), MOST_REJECTED):
        rows: list[bytes] = []
        bad: list[Rejected] = []
        lines = column.slice(start, MOST_REJECTED).to_pylist()
        for number, line in enumerate(lines, first + start + 1):
            found = Reason.MISSING if line is None else understand(line, survey)
            if isinstance(found, Report):
                rows.append(pack(found.answers, survey))
            elif found is not None:
                content = "" if line is None else shown(line, survey)
                bad.append(Rejected(found, f"{where}, row {number}", content))
        packed = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), survey.report_size)
        yield Block(packed, range(len(rows)), bad)  # checked already: the counting rejects none of them


def split_blocks(split: Split, survey: Survey) -> Iterator[Block]:
    """The blocks of reports of a part of a file."""
    with Path(split.path).open("rb") as file:
        parquet = file.read(4) == b"PAR1"
    if parquet:
        part = (split.start, split.stop)
        return read_parquet(split.path, survey, block_rows_of(survey), part=part)
    return read_blocks(split.path, survey) if split.start == 0 else iter(())


# -- two answers of one report together -----------------------------------------------------------------------


def pairs_to_vector(counts: PairCounts) -> Vector:
    """Pair counts as a vector; adding vectors is adding counts."""
    return np.concatenate([counts.counts[key].ravel() for key in sorted(counts.counts)])


def pairs_from_vector(vector: Vector, survey: Survey, names: Names) -> PairCounts:
    """The pair counts that a vector holds."""
    found = PairCounts(survey, names)
    at = 0
    for key in sorted(found.counts):
        counts = found.counts[key]
        counts[:] = vector[at : at + counts.size].reshape(counts.shape)
        at += counts.size
    return found


def pair_batches(batches: Iterable[pa.RecordBatch], survey: Survey, names: Names) -> Iterator[pa.RecordBatch]:
    """Partial pair counts of the first column of batches: binary reports, or text with a JSON report in each row."""
    return _counted_pairs(blocks_of(batches, survey, ""), survey, names)


def pair_splits(splits: Iterable[Split], survey: Survey, names: Names) -> Iterator[pa.RecordBatch]:
    """Partial pair counts of parts of files, read here and checked as one machine would."""
    blocks = (block for split in splits for block in split_blocks(split, survey))
    return _counted_pairs(blocks, survey, names)


def _counted_pairs(blocks: Iterable[Block], survey: Survey, names: Names) -> Iterator[pa.RecordBatch]:
    counts = PairCounts(survey, names)
    try:
        for block in blocks:
            if len(block.rows):
                counts.add_block(block.rows)
    except FormatError as error:
        yield partial_row(fault=as_fault(error))
        return
    yield partial_row(pairs_to_vector(counts))
