"""Records to reports on Spark: a DataFrame that is materialized once, or a folder that is written atomically.

The executors read files themselves; other records come from Spark. Each call of the kernel opens its own keystream from
the operating system, so that tasks, retries and forked workers never share random numbers.
"""

from __future__ import annotations

import errno
import glob
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdr4me.engines.general import perturb_source
from hdr4me.engines.spark_session import (
    Work,
    as_fault,
    each_task,
    labels,
    partition,
    raise_fault,
    rows_of,
    task_bytes,
)
from hdr4me.errors import FormatError, HDR4MEError, InvalidInput
from hdr4me.io import write_reports
from hdr4me.io.blocks import to_wire
from hdr4me.io.columns import data_quality, from_batch
from hdr4me.io.quality import DataQuality, OnQuality, save_quality
from hdr4me.io.reading import (
    Part,
    as_files,
    batch_rows,
    bounded,
    is_frame,
    plan_parts,
    read_part,
    record_batches,
)
from hdr4me.io.source import STANDARD_INPUT, RecordFiles, is_remote
from hdr4me.survey import Survey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Batches = Iterable[pa.RecordBatch]
Task = Callable[..., Iterator[pa.RecordBatch]]

# The data-quality counts of a task, or the error that stops the job; the file of a task and its number of reports; a
# report, where the last row of a task has the data-quality counts.
QUALITY_SCHEMA = "data_quality binary, fault string"
PART_SCHEMA = f"name string, n_reports long, {QUALITY_SCHEMA}"
REPORT_SCHEMA = f"report binary, {QUALITY_SCHEMA}"

_FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".orc": "orc"}


# -- on the driver -------------------------------------------------------------------------------------------------


def perturb_frame(session: SparkSession, records: Any, survey: Survey, on_quality: OnQuality) -> DataFrame:
    """The reports of records, each randomized once, as a column `report` (see `Spark.perturb`)."""
    source, read = _record_source(session, records, survey)
    rows = source.mapInArrow(lambda rows: report_batches(read(rows), survey), REPORT_SCHEMA)
    durable = session.sparkContext.getCheckpointDir() is not None
    rows = rows.checkpoint() if durable else rows.localCheckpoint()
    counted = rows.where("data_quality is not null or fault is not null").select("data_quality", "fault")
    on_quality(quality_from(counted.collect(), survey))
    return rows.select(rows["report"].alias("report", metadata=labels(survey)))


def perturb_to(
    session: SparkSession, records: Any, survey: Survey, target: Path, on_quality: OnQuality
) -> int:
    """Write the reports of records into a new folder, one file per task; returns their number (see `Spark.perturb`)."""
    source, read = _record_source(session, records, survey)
    target = Path(os.path.realpath(target))
    if target.exists():
        raise InvalidInput(f"{target} already exists: choose a new path for the folder")
    token = secrets.token_hex(6)
    staging, final = (target.with_name(f".{target.name}.{token}.{kind}") for kind in ("tasks", "part"))
    staging.mkdir()
    try:
        folder = str(staging)
        rows = source.mapInArrow(
            lambda rows: write_part(read(rows), survey, folder, partition()), PART_SCHEMA
        ).collect()
        found = quality_from(rows, survey)
        if not rows:
            raise FormatError("there are no records")
        on_quality(found)
        final.mkdir()
        # Spark returns the result of each partition once, even after retries: only these files are kept.
        for row in rows:
            (staging / row["name"]).rename(final / (row["name"][:10] + ".parquet"))
        final.rename(target)
        save_quality(found, survey, target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        shutil.rmtree(final, ignore_errors=True)
    return sum(row["n_reports"] for row in rows)


def quality_of_records(session: SparkSession, records: Any, survey: Survey) -> DataQuality:
    """The data-quality report of records, without creating reports."""
    source, read = _record_source(session, records, survey)
    rows = source.mapInArrow(lambda rows: quality_batches(read(rows), survey), QUALITY_SCHEMA)
    return quality_from(rows.collect(), survey)


def _record_source(session: SparkSession, records: Any, survey: Survey) -> tuple[DataFrame, Work]:
    """Rows for the tasks, and a function that converts them to the columns of the survey, in order.

    The executors read files that they can open, by the same rules as the local engine; the rows are then the indices of
    the tasks. Other invalid records are an error here, before any job starts.
    """
    files = as_files(records)
    if files is not None and all(_is_here(path) for path in files.paths):
        tasks = record_tasks(files, session.sparkContext.defaultParallelism)
        numbers = session.range(0, len(tasks), 1, len(tasks))
        return numbers, each_task(tasks, lambda parts: _read_parts(parts, survey))
    frame = _frame(session, records if files is None else files.paths, survey)
    return frame.select([frame["`" + name.replace("`", "``") + "`"] for name in survey.schema.columns]), iter


def _is_here(path: str) -> bool:
    """Whether the executors read a path; other paths may be on a file system of Spark, such as HDFS."""
    if is_remote(path) or path.lower().endswith(".orc"):
        return False
    return path.startswith("file:") or path == STANDARD_INPUT or glob.has_magic(path) or Path(path).exists()


def _frame(session: SparkSession, records: Any, survey: Survey) -> DataFrame:
    from pyspark.sql import DataFrame

    if isinstance(records, tuple):
        if len(records) > 1:
            absent = next(path for path in records if not _is_here(path))
            raise InvalidInput(
                f"{absent} does not exist on this machine: read it with Spark and pass the DataFrame"
            )
        records = _read(session, records[0])
    elif is_frame(records) and not isinstance(records, DataFrame):
        batches = list(record_batches(records, survey))
        if not batches:
            raise FormatError("there are no records")
        records = session.createDataFrame(pa.Table.from_batches(batches))
    if not isinstance(records, DataFrame):
        raise InvalidInput(
            f"records of type {type(records).__name__}: expected a DataFrame, files, a table or a frame"
        )
    empty: Any = records.limit(0).toArrow()
    list(record_batches(empty, survey))
    chosen = empty.select(list(survey.schema.columns)).schema
    from_batch(pa.RecordBatch.from_pylist([], schema=chosen), survey)
    return records


def _read(session: SparkSession, path: str) -> DataFrame:
    from pyspark.errors import AnalysisException

    kind = record_format(path)
    # Values of a CSV file stay strings, as in the local engine, so that no value is lost by an inferred type.
    reader = session.read.option("header", True) if kind == "csv" else session.read
    try:
        return reader.load(path, format=kind)
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from error
        raise


def record_format(path: str) -> str:
    """Spark's name of the format of a file, by its suffix; Parquet without a known suffix."""
    suffix = Path(urlsplit(path).path if "://" in path else path).suffix.lower()
    return _FORMATS.get(suffix, "parquet")


def record_tasks(files: RecordFiles, parallelism: int) -> list[list[Part]]:
    """The parts of files of records for each task: row groups of Parquet files, and whole text files."""
    step = task_bytes(sum(Path(x).stat().st_size for x in files.files() if Path(x).exists()), parallelism)
    tasks: list[list[Part]] = []
    room = 0
    for part in plan_parts(files, step):
        if room <= 0:
            tasks.append([])
            room = step
        tasks[-1].append(part)
        room -= part.n_bytes
    return tasks


def quality_from(rows: Iterable[Any], survey: Survey) -> DataQuality:
    """The sum of the counts in rows with the fields of `QUALITY_SCHEMA`; raises the first error among them."""
    total = DataQuality.empty(survey)
    for row in rows:
        if row["fault"] is not None:
            raise_fault(row["fault"])
        counts = np.frombuffer(row["data_quality"], "<i8").reshape(total.counts.shape)
        total += DataQuality(survey.schema, counts.astype(np.int64))
    return total


# -- on the executors: functions of Arrow batches ------------------------------------------------------------


def _guarded(schema: str) -> Callable[[Task], Task]:
    """Turn an input error into a row of the schema with a fault."""

    def guard(work: Task) -> Task:
        @wraps(work)
        def guarded(*arguments: Any) -> Iterator[pa.RecordBatch]:
            try:
                yield from work(*arguments)
            except HDR4MEError as error:
                yield rows_of(schema, {"fault": as_fault(error)})

        return guarded

    return guard


def _read_parts(parts: Sequence[Part], survey: Survey) -> Iterator[pa.RecordBatch]:
    for part in parts:
        yield from read_part(part, survey.schema, batch_rows(survey))


def _blocks(batches: Batches, survey: Survey) -> Iterator[tuple[NDArray[np.uint8], DataQuality]]:
    """Blocks of reports of batches with the columns of the survey, in order, and their data-quality counts."""
    for batch in bounded(batches, batch_rows(survey)):
        source = from_batch(batch, survey)
        yield perturb_source(source, survey), data_quality(source, survey)


@_guarded(REPORT_SCHEMA)
def report_batches(batches: Batches, survey: Survey) -> Iterator[pa.RecordBatch]:
    """Reports as a binary column `report` (see `REPORT_SCHEMA`)."""
    waiting: pa.RecordBatch | None = None
    total = DataQuality.empty(survey)
    for block, found in _blocks(batches, survey):
        total += found
        if waiting is not None:
            yield waiting
        data, offsets = to_wire(block, survey)
        buffers: list[Any] = [None, pa.py_buffer(offsets.data), pa.py_buffer(data.data)]
        column: Any = pa.Array.from_buffers(pa.binary(), len(block), buffers)
        nothing: list[Any] = [pa.nulls(len(block), pa.binary()), pa.nulls(len(block), pa.string())]
        waiting = pa.RecordBatch.from_arrays([column, *nothing], names=["report", "data_quality", "fault"])
    if waiting is not None:
        counted = pa.array([None] * (waiting.num_rows - 1) + [_bytes(total)], pa.binary())
        yield waiting.set_column(1, "data_quality", counted)


@_guarded(PART_SCHEMA)
def write_part(batches: Batches, survey: Survey, folder: str, number: int) -> Iterator[pa.RecordBatch]:
    """Write the reports to a file with a random name in `folder`, so that a retry writes a different file."""
    path = Path(folder, f"part-{number:05d}-{secrets.token_hex(8)}.parquet")
    n = 0
    writer = None
    total = DataQuality.empty(survey)
    with ExitStack() as stack:
        for block, found in _blocks(batches, survey):
            total += found
            writer = writer or stack.enter_context(write_reports(path, survey))
            writer.write(block)
            n += len(block)
    if n:
        yield rows_of(PART_SCHEMA, {"name": path.name, "n_reports": n, "data_quality": _bytes(total)})


@_guarded(QUALITY_SCHEMA)
def quality_batches(batches: Batches, survey: Survey) -> Iterator[pa.RecordBatch]:
    """The data-quality report of records, without creating reports."""
    total = DataQuality.empty(survey)
    for batch in bounded(batches, batch_rows(survey)):
        total += data_quality(from_batch(batch, survey), survey)
    yield rows_of(QUALITY_SCHEMA, {"data_quality": _bytes(total)})


def _bytes(quality: DataQuality) -> bytes:
    return quality.counts.astype("<i8").tobytes()
