"""Shared parts of the Spark engine: the session, tasks, output rows, errors, and the labeled column of reports."""

from __future__ import annotations

import json
import os
import re
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

Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]  # the function of a task for its rows
T = TypeVar("T")

# A task reads at least 8 MiB, because starting a task takes as long, and at most 128 MiB, so that a retry is cheap.
_SMALLEST, _LARGEST = 1 << 23, 1 << 27
_TYPES: dict[str, Any] = {"binary": pa.binary(), "string": pa.string(), "long": pa.int64()}
_INSTALL = "the Spark engine needs pyspark: pip install -e '.[spark]' in a clone of hdr4me"
_JAVA = "Spark needs Java 17 or later: install it and set JAVA_HOME, or put java on the PATH"


def require_pyspark() -> None:
    """Raise `MissingDependency` with the installation command if pyspark is not installed."""
    try:
        import pyspark.sql  # noqa: F401
    except ImportError as error:
        raise MissingDependency(_INSTALL) from error


@contextmanager
def named_packages() -> Iterator[None]:
    """Raise `MissingDependency` with the name of a package that the executors lack, such as that of a plug-in.

    The classes of channels and dimensions are sent to the executors by the names of their modules.
    """
    from pyspark.errors import PythonException

    try:
        yield
    except PythonException as error:
        found = re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", str(error))
        if found is None:
            raise
        raise MissingDependency(
            f"Spark's executors cannot import {found[1]!r}: install the package there, or send it to them with "
            "session.sparkContext.addPyFile"
        ) from error


def open_session(
    master: str | None = None, *, name: str = "hdr4me", settings: dict[str, str] | None = None
) -> SparkSession:
    """A session on `master`, or the session that is already open; a local session uses the loopback interface only.

    Without `master`, Spark's own configuration applies, as under spark-submit. Local executors run the same Python
    interpreter; on a cluster, `PYSPARK_PYTHON` or `spark.pyspark.python` must name an interpreter with hdr4me.
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
            # The host name of a laptop may not resolve; the loopback address always does.
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
    """The Spark engine on its own session, which is stopped afterwards."""
    from hdr4me.engines.spark_engine import Spark

    session = open_session(master)
    try:
        yield Spark(session)
    finally:
        session.stop()


# -- the column of reports ------------------------------------------------------------------------------------

_SURVEY = "hdr4me.survey"


def labels(survey: Survey) -> dict[str, Any]:
    """The metadata of a column, which Spark keeps in Parquet files and tables."""
    return {"hdr4me.format": "hdr4me-reports", "hdr4me.version": "1", _SURVEY: survey.fingerprint}


def report_schema(survey: Survey) -> StructType:
    """The schema of a stream or table of binary reports, labeled with the survey's fingerprint."""
    require_pyspark()
    from pyspark.sql.types import BinaryType, StructField, StructType

    return StructType([StructField("report", BinaryType(), True, labels(survey))])


def report_column(reports: DataFrame, survey: Survey) -> DataFrame:
    """The column of reports; FormatError if there is none or if its metadata names another survey."""
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
    """The approximate number of bytes for each task."""
    return min(max(-(-total // parallelism), _SMALLEST), _LARGEST)


def each_task(tasks: Sequence[T], work: Callable[[T], Iterator[pa.RecordBatch]]) -> Work:
    """Run the tasks whose indices are in the first column."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in np.asarray(batch.column(0)).tolist():
                yield from work(tasks[index])

    return read


def partition() -> int:
    """The index of the partition of this task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context else 0


def rows_of(schema: str, *rows: dict[str, Any]) -> pa.RecordBatch:
    """Output rows with the columns of a Spark schema; absent values are null."""
    fields: list[Any] = [pa.field(name, _TYPES[kind]) for name, kind in map(str.split, schema.split(", "))]
    return pa.RecordBatch.from_pylist(list(rows), schema=pa.schema(fields))


def as_fault(error: HDR4MEError) -> str:
    """An input error as a string for the driver; a retry would fail in the same way."""
    if isinstance(error, FingerprintMismatch):
        what = str(error).split(" belongs to survey ")[0]
        return json.dumps(["fingerprint", what, error.expected, error.found])
    return json.dumps(["input" if isinstance(error, InvalidInput) else "format", str(error)])


def raise_fault(fault: str) -> None:
    """Raise an executor's error on the driver."""
    kind, *parts = json.loads(fault)
    raise {"fingerprint": FingerprintMismatch, "input": InvalidInput, "format": FormatError}[kind](*parts)
