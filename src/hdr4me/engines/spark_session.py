"""What both directions on Spark need: a session, tasks, rows of output, faults, and the labeled column of reports."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from hdr4me.errors import FingerprintMismatch, FormatError, HDR4MEError, InvalidInput, MissingDependency
from hdr4me.survey import Survey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from hdr4me.engines.spark_engine import Spark

Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]  # what a task does with its rows
T = TypeVar("T")

# A task reads at least 8 MiB, since starting one takes as long, and at most 128 MiB, so that a retry is cheap.
_SMALLEST, _LARGEST = 1 << 23, 1 << 27
_TYPES: dict[str, Any] = {"binary": pa.binary(), "string": pa.string(), "long": pa.int64()}
_INSTALL = "the Spark engine needs pyspark: pip install -e '.[spark]' in a clone of hdr4me"
_JAVA = "Spark needs Java 17 or later: install it and set JAVA_HOME, or put java on the PATH"


def require_pyspark() -> None:
    """Raise `MissingDependency` with the command that installs pyspark, if it is not there."""
    try:
        import pyspark.sql  # noqa: F401
    except ImportError as error:
        raise MissingDependency(_INSTALL) from error


def open_session(
    master: str | None = None, *, name: str = "hdr4me", settings: dict[str, str] | None = None
) -> SparkSession:
    """A session on `master`, or the one that is already open; quiet, and on this machine loopback only.

    Without `master` Spark's own configuration decides, as under spark-submit. On this machine the executors run
    this very interpreter; elsewhere `PYSPARK_PYTHON` or `spark.pyspark.python` names the one that has hdr4me.
    """
    if master is not None and (not isinstance(master, str) or not master):
        raise InvalidInput(
            f"master = {master!r} must be a Spark master URL, such as local[4] or spark://host:7077"
        )
    require_pyspark()
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name).config("spark.ui.showConsoleProgress", "false")
    if master is not None:
        builder = builder.master(master)
        if master.startswith("local"):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            # A laptop changes networks: its own name may not resolve, the loopback always does.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            for key in ("spark.driver.host", "spark.driver.bindAddress"):
                builder = builder.config(key, "127.0.0.1")
            builder = builder.config("spark.ui.enabled", "false")
    for key, value in (settings or {}).items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except PySparkRuntimeError as error:
        if "JAVA_GATEWAY" in str(error.getCondition()):
            raise MissingDependency(_JAVA) from error
        raise
    session.sparkContext.setLogLevel("ERROR")
    return session


@contextmanager
def open_spark(master: str | None = None) -> Iterator[Spark]:
    """The Spark engine on a session of its own, stopped afterwards."""
    from hdr4me.engines.spark_engine import Spark

    session = open_session(master)
    try:
        yield Spark(session)
    finally:
        session.stop()


# -- the column of reports ------------------------------------------------------------------------------------

_SURVEY = "hdr4me.survey"


def labels(survey: Survey) -> dict[str, Any]:
    """A column's metadata; Spark keeps it in Parquet and in tables, and shows it when they are read."""
    return {"hdr4me.format": "hdr4me-reports", "hdr4me.version": "1", _SURVEY: survey.fingerprint}


def report_schema(survey: Survey) -> StructType:
    """The schema of a stream or table of binary reports, labeled with the survey's fingerprint."""
    require_pyspark()
    from pyspark.sql.types import BinaryType, StructField, StructType

    return StructType([StructField("report", BinaryType(), True, labels(survey))])


def report_column(reports: DataFrame, survey: Survey) -> DataFrame:
    """The column of reports alone; FormatError if there is none, or if its label names another survey."""
    name = next((name for name in ("report", "value") if name in reports.columns), None)
    if name is None:
        raise FormatError(f"the DataFrame has no column 'report' or 'value': it has {reports.columns}")
    field = reports.schema[name]
    if field.dataType.typeName() not in ("binary", "string"):
        raise FormatError(
            f"column {name!r} is of type {field.dataType.typeName()}: expected binary or string"
        )
    found = field.metadata.get(_SURVEY, survey.fingerprint)
    if found != survey.fingerprint:
        raise FingerprintMismatch(f"column {name!r}", survey.fingerprint, found)
    return reports.select(name)


# -- tasks --------------------------------------------------------------------------------------------------------


def task_bytes(total: int, parallelism: int) -> int:
    """About how many of all bytes a task reads."""
    return min(max(-(-total // parallelism), _SMALLEST), _LARGEST)


def each_task(tasks: Sequence[T], work: Callable[[T], Iterator[pa.RecordBatch]]) -> Work:
    """Do the tasks whose numbers are in the first column."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in np.asarray(batch.column(0)).tolist():
                yield from work(tasks[index])

    return read


def partition() -> int:
    """The number of the partition that this executor works on."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context else 0


def rows_of(schema: str, *rows: dict[str, Any]) -> pa.RecordBatch:
    """Rows of output with the columns of a schema in Spark's words; what a row leaves out is null."""
    fields: list[Any] = [pa.field(name, _TYPES[kind]) for name, kind in map(str.split, schema.split(", "))]
    return pa.RecordBatch.from_pylist(list(rows), schema=pa.schema(fields))


def as_fault(error: HDR4MEError) -> str:
    """An error of the input, which a retry would only repeat, as a text for the driver."""
    if isinstance(error, FingerprintMismatch):
        what = str(error).split(" belongs to survey ")[0]
        return json.dumps(["fingerprint", what, error.expected, error.found])
    return json.dumps(["input" if isinstance(error, InvalidInput) else "format", str(error)])


def raise_fault(fault: str) -> None:
    """Raise here, on the driver, what an executor found."""
    kind, *parts = json.loads(fault)
    raise {"fingerprint": FingerprintMismatch, "input": InvalidInput, "format": FormatError}[kind](*parts)
