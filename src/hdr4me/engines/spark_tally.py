"""Reports to counts on Spark: each task counts its own reports into one vector, and the vectors are added in a tree.

The functions for executors do not depend on Spark: they map Arrow batches to Arrow batches. A partial tally is one
int64 vector: the number of reports, the numbers of rejected reports by reason, then the counts. Adding vectors adds
tallies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdr4me.engines.protocol import FilePath, paths_of
from hdr4me.engines.spark_session import (
    as_fault,
    each_task,
    partition,
    raise_fault,
    report_column,
    rows_of,
    task_bytes,
)
from hdr4me.errors import FormatError
from hdr4me.io import Reason, Rejected, Report
from hdr4me.io.arrow import binary_format, reasons_of, rows_as_blocks, valid_bits
from hdr4me.io.blocks import MOST_REJECTED, Block, from_wire
from hdr4me.io.files import block_rows_of, read_blocks
from hdr4me.io.lines import excerpt, parse_line
from hdr4me.io.parquet import read_parquet
from hdr4me.io.report import QUARANTINE_BYTES, left_out_lines, pack
from hdr4me.io.source import RecordFiles
from hdr4me.survey import Survey
from hdr4me.tally import PairCounts, Tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Vector = NDArray[np.int64]
Names = Sequence[tuple[str, str]]

# An output row is a partial tally, an error that stops the job, or a rejected report.
SCHEMA = "partial binary, fault string, reason string, where string, content string"

_HEAD = 1 + max(Reason)  # elements before the counts: reports, then rejected reports of each reason
_REJECTED_AT_ONCE = 4096
_MOST_CONTENT = 1 << 16  # bytes of an oversized report that are kept
_DIRECT_BYTES = 1 << 24  # partial tallies up to this total size go directly to the driver


# -- on the driver -------------------------------------------------------------------------------------------------


def count_reports(
    session: SparkSession,
    reports: Any,
    survey: Survey,
    quarantine: str | None = None,
    *,
    mode: str = "errorifexists",
) -> Tally:
    """The tally of a DataFrame or of files; bad reports are written to the folder `quarantine`."""
    from pyspark import StorageLevel

    found = _output(session, reports, survey, keep=quarantine is not None)
    if found is None:
        return Tally(survey)
    output, n_parts = found
    output = output if quarantine is None else output.persist(StorageLevel.DISK_ONLY)
    try:
        total = _add_up(session, output, to_vector(Tally(survey)), n_parts)
        tally = from_vector(total, survey)
        if quarantine is not None and tally.rejected:
            bad = output.where("reason is not null").select("reason", "where", "content")
            bad.write.json(quarantine, mode=mode)
    finally:
        if quarantine is not None:
            output.unpersist()
    return tally


def count_pairs(session: SparkSession, reports: Any, survey: Survey, pairs: Names) -> PairCounts:
    """Joint counts of two answers of one report (see `Spark.pair_counts`)."""
    nothing = PairCounts(survey, pairs)  # raises an error for invalid pairs before any job starts
    names = [(str(a), str(b)) for a, b in pairs]
    found = _output(session, reports, survey, names=names)
    if found is None:
        return nothing
    return pairs_from_vector(_add_up(session, found[0], to_vector(nothing), found[1]), survey, names)


def _output(
    session: SparkSession, reports: Any, survey: Survey, **options: Any
) -> tuple[DataFrame, int | None] | None:
    """The output rows of tasks for a DataFrame or files, and the number of tasks if known; None without files."""
    from pyspark.sql import DataFrame

    if isinstance(reports, DataFrame):
        rows = report_column(reports, survey)
        return rows.mapInArrow(
            lambda rows: count_batches(rows, survey, where=f"partition {partition()}", **options), SCHEMA
        ), None
    paths = paths_of(reports)
    if not paths:
        return None
    tasks = plan_tasks(paths, session.sparkContext.defaultParallelism)
    work = each_task(tasks, partial(count_splits, survey=survey, **options))
    return session.range(0, len(tasks), 1, len(tasks)).mapInArrow(work, SCHEMA), len(tasks)


def _add_up(session: SparkSession, output: DataFrame, nothing: Vector, n_parts: int | None) -> Vector:
    """Add the partial counts, first on the executors unless their total size is small."""
    from pyspark.sql import functions as F

    partials = output.where("reason is null")
    size = nothing.nbytes
    if n_parts is None or n_parts * size > _DIRECT_BYTES:
        parallelism = session.sparkContext.defaultParallelism
        middle = max(1, parallelism if n_parts is None else min(parallelism, int(n_parts**0.5)))
        for width in [middle, 1] if middle > 1 and middle * size > _DIRECT_BYTES else [middle]:
            spread = partials.withColumn("part", F.spark_partition_id()).repartition(width, "part")
            partials = spread.mapInArrow(add_partials, SCHEMA)
    total = nothing.copy()
    for row in partials.select("partial", "fault").collect():
        if row["fault"] is not None:
            raise_fault(row["fault"])
        total += np.frombuffer(row["partial"], "<i8")
    return total


# -- files as tasks ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Split:
    """A range of bytes of a file: the row groups that begin in it, or the whole file for other formats and start 0."""

    path: str
    start: int
    stop: int


def plan_tasks(paths: Iterable[FilePath], parallelism: int) -> list[list[Split]]:
    """The parts for each task: large files are split and small files combined, for about one task per core or more."""
    files = [(path, path.stat().st_size) for path in map(Path, RecordFiles(list(paths)).files())]
    step = task_bytes(sum(size for _, size in files), parallelism)
    tasks: list[list[Split]] = []
    room = 0
    for file, size in files:
        pieces = max(1, round(size / step))
        for start, stop in pairwise(size * i // pieces for i in range(pieces + 1)):
            if room <= 0 or (room < step and stop - start > room + step // 4):
                tasks.append([])
                room = step
            tasks[-1].append(Split(str(file.absolute()), start, stop))
            room -= stop - start
    return tasks


def _split_blocks(split: Split, survey: Survey) -> Iterator[Block]:
    if binary_format(split.path) == "parquet":
        return read_parquet(split.path, survey, block_rows_of(survey), part=(split.start, split.stop))
    return read_blocks(split.path, survey) if split.start == 0 else iter(())


# -- on the executors ----------------------------------------------------------------------------------------------


def count_batches(
    batches: Iterable[pa.RecordBatch],
    survey: Survey,
    *,
    where: str = "",
    keep: bool = False,
    names: Names | None = None,
) -> Iterator[pa.RecordBatch]:
    """Partial counts of the first column of batches, or joint counts with `names`; `keep` returns rejected reports."""
    return _counted(((where, block) for block in _blocks(batches, survey, where)), survey, keep, names)


def count_splits(
    splits: Iterable[Split], survey: Survey, *, keep: bool = False, names: Names | None = None
) -> Iterator[pa.RecordBatch]:
    """Partial counts of parts of files, with the same checks as in the local engine."""
    blocks = ((split.path, block) for split in splits for block in _split_blocks(split, survey))
    return _counted(blocks, survey, keep, names)


def _counted(
    blocks: Iterable[tuple[str, Block]], survey: Survey, keep: bool, names: Names | None
) -> Iterator[pa.RecordBatch]:
    counts = Tally(survey) if names is None else PairCounts(survey, names)
    rejected_reports = _RejectedReports()
    try:
        for where, block in blocks:
            if isinstance(counts, Tally):
                counts.add_read(block, on_rejected=rejected_reports.add if keep else None, where=where)
                yield from rejected_reports.batches()
            elif len(block.rows):
                counts.add_block(block.rows)
    except FormatError as error:
        yield rows_of(SCHEMA, {"fault": as_fault(error)})
        return
    yield from rejected_reports.batches(last=True)
    yield rows_of(SCHEMA, {"partial": to_vector(counts).astype("<i8").tobytes()})


def add_partials(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The sum of partial tallies, and the first fault if there is one."""
    total: Vector | None = None
    fault: str | None = None
    for batch in batches:
        for value in batch.column("partial"):
            if value.is_valid:
                vector = np.frombuffer(value.as_buffer(), "<i8")
                total = vector.copy() if total is None else np.add(total, vector, out=total)
        fault = fault or next((text for text in batch.column("fault").to_pylist() if text), None)
    if total is not None or fault is not None:
        yield rows_of(SCHEMA, {"partial": None if total is None else total.tobytes(), "fault": fault})


def to_vector(counts: Tally | PairCounts) -> Vector:
    """A tally, or pair counts, as a vector."""
    if isinstance(counts, PairCounts):
        return np.concatenate([counts.counts[key].ravel() for key in sorted(counts.counts)])
    rejected = counts.rejected
    head = [counts.n_reports, *(rejected.get(Reason(code).text, 0) for code in range(1, _HEAD))]
    return np.concatenate([np.array(head, np.int64), counts.counts])


def from_vector(vector: Vector, survey: Survey) -> Tally:
    """The tally in a vector."""
    tally = Tally(survey)
    tally.n_reports = int(vector[0])
    numbers = {Reason(code).text: int(vector[code]) for code in range(1, _HEAD) if vector[code]}
    tally._rejected.update(numbers)
    tally.counts[:] = vector[_HEAD:]
    return tally


def pairs_from_vector(vector: Vector, survey: Survey, names: Names) -> PairCounts:
    """The pair counts in a vector."""
    found = PairCounts(survey, names)
    for counts in (found.counts[key] for key in sorted(found.counts)):
        own, vector = np.split(vector, [counts.size])
        counts[:] = own.reshape(counts.shape)
    return found


class _RejectedReports:
    """Rejected reports in batches of a few thousand; beyond the quarantine's limit they are only counted."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, str, str]] = []
        self._left_out: Counter[str] = Counter()
        self._room = QUARANTINE_BYTES

    def add(self, rejected: Rejected) -> None:
        row = rejected.reason.text, rejected.where, rejected.content
        self._room -= sum(map(len, row))
        if self._room < 0:
            self._left_out[row[0]] += 1
        else:
            self._waiting.append(row)

    def batches(self, *, last: bool = False) -> Iterator[pa.RecordBatch]:
        """The reports so far, if they fill a batch or are the last."""
        if last:
            self._waiting += left_out_lines(self._left_out)
        while self._waiting and (last or len(self._waiting) >= _REJECTED_AT_ONCE):
            part, self._waiting = self._waiting[:_REJECTED_AT_ONCE], self._waiting[_REJECTED_AT_ONCE:]
            yield rows_of(
                SCHEMA, *(dict(zip(("reason", "where", "content"), row, strict=True)) for row in part)
            )


def _blocks(batches: Iterable[pa.RecordBatch], survey: Survey, where: str) -> Iterator[Block]:
    """The blocks of reports in the first column of batches: binary reports, or strings with one JSON report each."""
    first = 0
    for batch in batches:
        column = batch.column(0)
        text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        # As bytes with 32-bit offsets, whatever Spark's setting is. A row that is not UTF-8 is rejected; converting it
        # to a string would stop the whole job.
        column = column.cast(pa.binary())
        if len(column):
            yield from (_text_blocks if text else _binary_blocks)(column, survey, where, first)
        first += len(column)


def _binary_blocks(column: Any, survey: Survey, where: str, first: int) -> Iterator[Block]:
    """Blocks of the reports of the right size; Spark's binary columns may have values of any size and nulls."""
    size, n = survey.report_size, len(column)
    _, offset_buffer, data = column.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32, n + 1, 4 * column.offset).astype(np.int64)
    values = np.frombuffer(data if data is not None else b"", np.uint8)
    if not survey.fixed_size:
        rows, good = from_wire(values, offsets, survey)
    elif (good := np.diff(offsets) == size).all():
        rows = values[offsets[0] : offsets[n]].reshape(n, size)
    else:
        rows = np.zeros((n, size), np.uint8)
        rows[good] = values[offsets[:-1][good][:, None] + np.arange(size)]

    def content(i: int) -> str:
        return values[offsets[i] : min(offsets[i + 1], offsets[i] + _MOST_CONTENT)].tobytes().hex()

    missing = ~valid_bits(column) if column.null_count else None
    yield from rows_as_blocks(where, rows, reasons_of(n, good, missing), first, content)


def _text_blocks(column: Any, survey: Survey, where: str, first: int) -> Iterator[Block]:
    """Blocks of the valid JSON reports; each row is treated like a line of a file."""
    for start in range(0, len(column), MOST_REJECTED):
        rows: list[bytes] = []
        bad: list[Rejected] = []
        lines = column.slice(start, MOST_REJECTED).to_pylist()
        for number, line in enumerate(lines, first + start + 1):
            found = Reason.MISSING if line is None else parse_line(line, survey)
            if isinstance(found, Report):
                rows.append(pack(found.answers, survey))
            elif found is not None:
                content = "" if line is None else excerpt(line, survey)
                bad.append(Rejected(found, f"{where}, row {number}", content))
        packed = np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), survey.report_size)
        yield Block(packed, range(len(rows)), bad)  # already checked: counting does not reject any of them
