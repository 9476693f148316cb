"""Reports to counts on Spark: each task counts its own reports into one vector, and the vectors are added in a tree."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdr4me.engines import spark_counts
from hdr4me.engines.protocol import paths_of
from hdr4me.engines.spark_files import Work, each_task, partition, plan_tasks
from hdr4me.engines.spark_session import report_column
from hdr4me.survey import Survey
from hdr4me.tally import PairCounts, Tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_DIRECT_BYTES = 1 << 24
"""Partial tallies that together are no larger than this go straight to the driver."""


class _Job(NamedTuple):
    """Rows, what the tasks do with them, and how many tasks there are if that is known."""

    source: DataFrame
    work: Work
    n_parts: int | None

    def run(self) -> DataFrame:
        return self.source.mapInArrow(self.work, spark_counts.SCHEMA)


def count_reports(
    session: SparkSession,
    reports: Any,
    survey: Survey,
    quarantine: str | None,
    *,
    mode: str = "errorifexists",
) -> Tally:
    """The tally of a DataFrame or of files."""
    keep = quarantine is not None
    job = _job(
        session,
        reports,
        survey,
        lambda rows: spark_counts.count_batches(rows, survey, keep=keep, where=f"partition {partition()}"),
        lambda splits: spark_counts.count_splits(splits, survey, keep=keep),
    )
    if job is None:
        return Tally(survey)
    output = job.run()
    if quarantine is None:
        return _collect(session, output, survey, job.n_parts)
    output = output.persist(_disk_only())
    try:
        tally = _collect(session, output, survey, job.n_parts)
        if tally.rejected:
            bad = output.where("reason is not null").select("reason", "where", "content")
            bad.write.json(quarantine, mode=mode)
    finally:
        output.unpersist()
    return tally


def count_pairs(session: SparkSession, reports: Any, survey: Survey, pairs: spark_counts.Names) -> PairCounts:
    """Two answers of one report counted together (see `Spark.pair_counts`)."""
    nothing = PairCounts(survey, pairs)  # what cannot be counted together is said before any job
    names = [(str(a), str(b)) for a, b in pairs]
    job = _job(
        session,
        reports,
        survey,
        lambda rows: spark_counts.pair_batches(rows, survey, names),
        lambda splits: spark_counts.pair_splits(splits, survey, names),
    )
    if job is None:
        return nothing
    total = _add_up(session, job.run(), spark_counts.pairs_to_vector(nothing), job.n_parts)
    return spark_counts.pairs_from_vector(total, survey, names)


def _job(
    session: SparkSession,
    reports: Any,
    survey: Survey,
    rows: Work,
    files: Callable[[Sequence[spark_counts.Split]], Iterator[pa.RecordBatch]],
) -> _Job | None:
    """The job over reports, with the work for rows of a DataFrame or for tasks of files; None without any file."""
    from pyspark.sql import DataFrame

    if isinstance(reports, DataFrame):
        return _Job(report_column(reports, survey), rows, None)
    paths: Sequence[str | os.PathLike[str]] = paths_of(reports)
    if not paths:
        return None
    tasks = plan_tasks(paths, session.sparkContext.defaultParallelism)
    return _Job(session.range(0, len(tasks), 1, len(tasks)), each_task(tasks, files), len(tasks))


def _collect(session: SparkSession, output: DataFrame, survey: Survey, n_parts: int | None) -> Tally:
    total = _add_up(session, output, spark_counts.to_vector(Tally(survey)), n_parts)
    return spark_counts.from_vector(total, survey)


def _add_up(
    session: SparkSession, output: DataFrame, nothing: NDArray[np.int64], n_parts: int | None
) -> NDArray[np.int64]:
    """Add the partial counts: in the executors first, unless they are few and small."""
    from pyspark.sql import functions as F

    partials = output.where("reason is null")
    size = nothing.nbytes
    if n_parts is None or n_parts * size > _DIRECT_BYTES:
        parallelism = session.sparkContext.defaultParallelism
        middle = max(1, parallelism if n_parts is None else min(parallelism, int(n_parts**0.5)))
        for width in [middle, 1] if middle > 1 and middle * size > _DIRECT_BYTES else [middle]:
            spread = partials.withColumn("part", F.spark_partition_id()).repartition(width, "part")
            partials = spread.mapInArrow(spark_counts.add_partials, spark_counts.SCHEMA)
    total = nothing.copy()
    for row in partials.select("partial", "fault").collect():
        if row["fault"] is not None:
            spark_counts.raise_fault(row["fault"])
        total += np.frombuffer(row["partial"], "<i8")
    return total


def _disk_only() -> Any:
    from pyspark import StorageLevel

    return StorageLevel.DISK_ONLY
