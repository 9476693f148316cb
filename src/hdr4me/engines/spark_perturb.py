"""Records to reports on Spark: a DataFrame that is materialised once, or a folder that appears whole or not at all.

Records are files that the executors read themselves, or what Spark has or reads.
"""

from __future__ import annotations

import errno
import glob
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hdr4me.engines import spark_records
from hdr4me.engines.spark_files import Work, each_task, partition, record_format, record_tasks
from hdr4me.engines.spark_session import labels
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.io.account import Account, OnAccount
from hdr4me.io.columns import from_batch
from hdr4me.io.origin import STANDARD_INPUT, is_remote
from hdr4me.io.reading import as_files, is_frame, record_batches
from hdr4me.survey import Survey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def perturb_frame(session: SparkSession, records: Any, survey: Survey, on_account: OnAccount) -> DataFrame:
    """The reports of records, each drawn once, as a column `report` (see `Spark.perturb`)."""
    source, read = record_source(session, records, survey)
    rows = source.mapInArrow(
        lambda rows: spark_records.report_batches(read(rows), survey), spark_records.REPORT_SCHEMA
    )
    durable = session.sparkContext.getCheckpointDir() is not None
    rows = rows.checkpoint() if durable else rows.localCheckpoint()
    counted = rows.where("account is not null or fault is not null").select("account", "fault")
    on_account(spark_records.account_from(counted.collect(), survey))
    return rows.select(rows["report"].alias("report", metadata=labels(survey)))


def perturb_to(
    session: SparkSession, records: Any, survey: Survey, target: Path, on_account: OnAccount
) -> int:
    """Write the reports of records into a new folder, one file for each task; how many (see `Spark.perturb`)."""
    source, read = record_source(session, records, survey)
    target = Path(os.path.realpath(target))
    if target.exists():
        raise InvalidInput(f"{target} exists: Spark writes a folder of reports that is not there yet")
    token = secrets.token_hex(6)
    staging, final = (target.with_name(f".{target.name}.{token}.{kind}") for kind in ("tasks", "part"))
    staging.mkdir()
    try:
        folder = str(staging)
        made = source.mapInArrow(
            lambda rows: spark_records.write_part(read(rows), survey, folder, partition()),
            spark_records.PART_SCHEMA,
        )
        rows = made.collect()
        found = spark_records.account_from(rows, survey)
        if not rows:
            raise FormatError("there are no records")
        on_account(found)
        final.mkdir()
        # Spark hands over each partition's result once, whatever was repeated: these files and no others exist.
        for row in rows:
            (staging / row["name"]).rename(final / (row["name"][:10] + ".parquet"))
        final.rename(target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        shutil.rmtree(final, ignore_errors=True)
    return sum(row["n_reports"] for row in rows)


def account(session: SparkSession, records: Any, survey: Survey) -> Account:
    """The account of records, without making a report."""
    source, read = record_source(session, records, survey)
    rows = source.mapInArrow(
        lambda rows: spark_records.account_batches(read(rows), survey), spark_records.ACCOUNT_SCHEMA
    )
    return spark_records.account_from(rows.collect(), survey)


# -- records --------------------------------------------------------------------------------------------------


def record_source(session: SparkSession, records: Any, survey: Survey) -> tuple[DataFrame, Work]:
    """Rows for the tasks, and what makes of them the survey's dimensions of the records, in its order.

    Files that every executor can open are read by the executors, by the rules of one machine; the rows are then the
    numbers of the tasks. What is wrong with anything else is said here, before any job.
    """
    files = as_files(records)
    if files is not None and all(_is_here(path) for path in files.paths):
        tasks = record_tasks(files, session.sparkContext.defaultParallelism)
        numbers = session.range(0, len(tasks), 1, len(tasks))
        return numbers, each_task(tasks, lambda parts: spark_records.part_batches(parts, survey))
    frame = _frame(session, records if files is None else files.paths, survey)
    return frame.select([frame["`" + name.replace("`", "``") + "`"] for name in survey.schema.columns]), _same


def _is_here(path: str) -> bool:
    """Whether a path is read by the executors; what is not here may be where Spark looks, such as on HDFS."""
    if is_remote(path) or path.lower().endswith(".orc"):
        return False
    return path.startswith("file:") or path == STANDARD_INPUT or glob.has_magic(path) or Path(path).exists()


def _frame(session: SparkSession, records: Any, survey: Survey) -> DataFrame:
    from pyspark.sql import DataFrame

    if isinstance(records, tuple):
        if len(records) > 1:
            absent = next(path for path in records if not _is_here(path))
            raise InvalidInput(f"{absent} is not a file here: read it with Spark and give the DataFrame")
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
    # Values of a CSV file stay text, as on one machine: no value can stop the job or be lost by a guessed type.
    reader = session.read.option("header", True) if kind == "csv" else session.read
    try:
        return reader.load(path, format=kind)
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from error
        raise


def _same(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches
