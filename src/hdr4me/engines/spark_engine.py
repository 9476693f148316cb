"""Spark as an engine: our kernels in its executors, integers back in a tree, the same tally to the last bit."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdr4me.engines import spark_counts, spark_pairs, spark_records
from hdr4me.engines.protocol import Progress, paths_of
from hdr4me.engines.spark_files import plan_tasks
from hdr4me.engines.spark_session import require_pyspark
from hdr4me.engines.spark_sources import record_source
from hdr4me.errors import FingerprintMismatch, FormatError, InvalidInput
from hdr4me.records.account import Account, OnAccount, judge
from hdr4me.records.reading import check_survey
from hdr4me.survey import Survey
from hdr4me.tally import PairCounts, Tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

__all__ = ["Spark", "report_schema", "spark"]

_Path = str | os.PathLike[str]
_Work = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_DIRECT_BYTES = 1 << 24
"""Partial tallies that together are no larger than this go straight to the driver."""


def spark(session: SparkSession) -> Spark:
    """The engine on an open Spark session; `open_session` in `hdr4me.engines.spark_session` opens one."""
    return Spark(session)


class Spark:
    """Perturb and tally on a cluster. Records may be anything that Spark reads; reports too.

    Reports never move between executors: each task counts its own into one vector of integers, and vectors are added
    in a tree. Retried and speculative tasks give the same integers, and Spark takes each partition's once.
    """

    def __init__(self, session: SparkSession) -> None:
        require_pyspark()
        from pyspark.sql import SparkSession

        if not isinstance(session, SparkSession):
            raise InvalidInput(f"session = {session!r} must be a SparkSession")
        self.session = session

    # -- records to reports --------------------------------------------------------------------------------------

    @overload
    def perturb(self, records: Any, survey: Survey, *, on_account: OnAccount = judge) -> DataFrame: ...
    @overload
    def perturb(
        self,
        records: Any,
        survey: Survey,
        target: _Path,
        *,
        progress: Progress | None = None,
        on_account: OnAccount = judge,
    ) -> int: ...

    def perturb(
        self,
        records: Any,
        survey: Survey,
        target: _Path | None = None,
        *,
        progress: Progress | None = None,
        on_account: OnAccount = judge,
    ) -> DataFrame | int:
        """Reports of records: a DataFrame with one column, `report`, or a folder of report files and their number.

        Every record is randomised ONCE: the DataFrame is materialised before it is returned (in the session's
        checkpoint directory if it has one, else on the executors), because a lazy one would randomise each user anew
        at every use, and two answers of one user spend twice the budget. With `target`, which must not exist, one
        file for each task is written, and the folder appears whole or not at all.

        Parameters
        ----------
        records
            Files that every executor can open (paths or `RecordFiles`: read by the executors themselves, by the rules
            of one machine), a DataFrame, a path that only Spark opens (s3://, hdfs://: Parquet, CSV, JSON lines, by
            its suffix), an Arrow table, or a frame (pandas, polars).
        survey
            What is asked.
        target
            The folder to write.
        progress
            Called once, with the number of reports, when they are written.
        on_account
            Takes the account of the records before the reports appear, as on one machine.

        Returns
        -------
        The reports, or how many were written.

        Raises
        ------
        FormatError
            If a file is not whole or there are no records to write.
        InvalidInput
            If a column cannot be used, or `target` exists.
        """
        check_survey(survey)
        source, batches = record_source(self.session, records, survey)
        if target is not None:
            n = self._perturb_to(source, batches, survey, Path(target), on_account)
            if progress is not None:
                progress(n)
            return n
        rows = source.mapInArrow(_maker(survey, batches), spark_records.REPORT_SCHEMA)
        durable = self.session.sparkContext.getCheckpointDir() is not None
        rows = rows.checkpoint() if durable else rows.localCheckpoint()
        counted = rows.where("account is not null or fault is not null").select("account", "fault")
        on_account(spark_records.account_from(counted.collect(), survey))
        return rows.select(rows["report"].alias("report", metadata=_labels(survey)))

    def account(self, records: Any, survey: Survey) -> Account:
        """What `perturb` would find in the records, without making a report."""
        check_survey(survey)
        source, batches = record_source(self.session, records, survey)
        rows = source.mapInArrow(_accountant(survey, batches), spark_records.ACCOUNT_SCHEMA)
        return spark_records.account_from(rows.collect(), survey)

    def _perturb_to(
        self, source: DataFrame, batches: _Work, survey: Survey, target: Path, on_account: OnAccount
    ) -> int:
        target = Path(os.path.realpath(target))
        if target.exists():
            raise InvalidInput(f"{target} exists: Spark writes a folder of reports that is not there yet")
        token = secrets.token_hex(6)
        staging, final = (target.with_name(f".{target.name}.{token}.{kind}") for kind in ("tasks", "part"))
        staging.mkdir()
        try:
            rows = source.mapInArrow(
                _writer(survey, batches, str(staging)), spark_records.PART_SCHEMA
            ).collect()
            account = spark_records.account_from(rows, survey)
            if not rows:
                raise FormatError("there are no records")
            on_account(account)
            final.mkdir()
            # Spark hands over each partition's result once, whatever was repeated: these files and no others exist.
            for row in rows:
                (staging / row["name"]).rename(final / (row["name"][:10] + ".parquet"))
            final.rename(target)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
            shutil.rmtree(final, ignore_errors=True)
        return sum(row["n_reports"] for row in rows)

    # -- reports to a tally --------------------------------------------------------------------------------------

    def tally(
        self,
        reports: Any,
        survey: Survey,
        *,
        quarantine: _Path | None = None,
        strict: bool = False,
        progress: Progress | None = None,
    ) -> Tally:
        """The tally of reports: a DataFrame, or files and folders of files that every executor can open.

        Otherwise as `hdr4me.engines.Engine.tally`; with `strict`, all reports are counted before the error.

        Files are read by the executors themselves, with the checks of one machine: format, fingerprint, page
        checksums. A DataFrame has a binary column `report`, or a text column `report` or `value` with a JSON report
        in each row; its reports are the survey's by the caller's word unless the column says whose they are. Bad
        reports are counted by reason and, with `quarantine` (a path for Spark to write, not there yet), written down as
        JSON lines with reason, place and content; without any bad report nothing is written.
        """
        check_survey(survey)
        if quarantine is not None and Path(quarantine).exists():  # said before the work rather than after it
            raise InvalidInput(
                f"quarantine = {quarantine} already exists: Spark writes a folder that is not there yet"
            )
        tally = self._tally(reports, survey, None if quarantine is None else os.fspath(quarantine))
        if strict and tally.rejected:
            reason, number = next(iter(tally.rejected.items()))
            raise FormatError(f"{number} bad reports: {reason}")
        if progress is not None:
            progress(tally.n_reports)
        return tally

    def _tally(
        self, reports: Any, survey: Survey, quarantine: str | None, *, mode: str = "errorifexists"
    ) -> Tally:
        from pyspark.sql import DataFrame

        keep = quarantine is not None
        if isinstance(reports, DataFrame):
            source, work, n_parts = self._frame(reports, survey, keep)
        else:
            paths = paths_of(reports)
            if not paths:
                return Tally(survey)
            source, work, n_parts = self._files(paths, survey, keep)
        output = source.mapInArrow(work, spark_counts.SCHEMA)
        if quarantine is None:
            return self._collect(output, survey, n_parts)
        output = output.persist(_disk_only())
        try:
            tally = self._collect(output, survey, n_parts)
            if tally.rejected:
                bad = output.where("reason is not null").select("reason", "where", "content")
                bad.write.json(quarantine, mode=mode)
        finally:
            output.unpersist()
        return tally

    def pair_counts(self, reports: Any, survey: Survey, pairs: spark_pairs.Names) -> PairCounts:
        """Two answers of one report counted together, as one machine counts them, to the last bit.

        Parameters
        ----------
        reports
            Files, folders or a DataFrame of reports, as for `tally`.
        survey
            The survey that the reports answer; its users answer two questions or more.
        pairs
            Pairs of dimensions by name.
        """
        from pyspark.sql import DataFrame

        check_survey(survey)
        nothing = PairCounts(survey, pairs)  # what cannot be counted together is said before any job
        names = [(str(a), str(b)) for a, b in pairs]
        if isinstance(reports, DataFrame):
            source, n_parts = self._frame(reports, survey, False)[0], None
            work = _pair_counter(survey, names)
        else:
            paths = paths_of(reports)
            if not paths:
                return nothing
            tasks = plan_tasks(paths, self.session.sparkContext.defaultParallelism)
            source, n_parts = self.session.range(0, len(tasks), 1, len(tasks)), len(tasks)
            work = _pair_reader(survey, tasks, names)
        output = source.mapInArrow(work, spark_counts.SCHEMA)
        total = self._add_up(output, spark_pairs.to_vector(nothing), n_parts)
        return spark_pairs.from_vector(total, survey, names)

    def follow(
        self,
        reports: DataFrame,
        survey: Survey,
        folder: _Path,
        *,
        keep_rejected: bool = False,
        every: str | None = None,
    ) -> StreamingQuery:
        """Fold a streaming DataFrame of reports into a tally in `folder`: see `hdr4me.engines.spark_stream`."""
        from hdr4me.engines.spark_stream import follow

        return follow(reports, survey, folder, keep_rejected=keep_rejected, every=every)

    def _frame(self, reports: DataFrame, survey: Survey, keep: bool) -> tuple[DataFrame, _Work, int | None]:
        name = next((name for name in ("report", "value") if name in reports.columns), None)
        if name is None:
            raise FormatError(f"the DataFrame has no column 'report' or 'value': it has {reports.columns}")
        field = reports.schema[name]
        if field.dataType.typeName() not in ("binary", "string"):
            raise FormatError(
                f"column {name!r} is of type {field.dataType.typeName()}: expected binary or string"
            )
        found = field.metadata.get("hdr4me.survey", survey.fingerprint)
        if found != survey.fingerprint:
            raise FingerprintMismatch(f"column {name!r}", survey.fingerprint, found)
        return reports.select(name), _counter(survey, keep), None

    def _files(self, paths: Sequence[_Path], survey: Survey, keep: bool) -> tuple[DataFrame, _Work, int]:
        tasks = plan_tasks(paths, self.session.sparkContext.defaultParallelism)
        return self.session.range(0, len(tasks), 1, len(tasks)), _reader(survey, tasks, keep), len(tasks)

    def _collect(self, output: DataFrame, survey: Survey, n_parts: int | None) -> Tally:
        return spark_counts.from_vector(
            self._add_up(output, spark_counts.to_vector(Tally(survey)), n_parts), survey
        )

    def _add_up(
        self, output: DataFrame, nothing: NDArray[np.int64], n_parts: int | None
    ) -> NDArray[np.int64]:
        """Add the partial counts: in the executors first, unless they are few and small."""
        from pyspark.sql import functions as F

        partials = output.where("reason is null")
        size = nothing.nbytes
        if n_parts is None or n_parts * size > _DIRECT_BYTES:
            parallelism = self.session.sparkContext.defaultParallelism
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


def report_schema(survey: Survey) -> StructType:
    """The schema of a stream or table of binary reports, labelled with the survey's fingerprint."""
    require_pyspark()
    from pyspark.sql.types import BinaryType, StructField, StructType

    return StructType([StructField("report", BinaryType(), True, _labels(survey))])


def _labels(survey: Survey) -> dict[str, Any]:
    """A column's metadata; Spark keeps it in Parquet and in tables, and shows it when they are read."""
    return {"hdr4me.format": "hdr4me-reports", "hdr4me.version": "1", "hdr4me.survey": survey.fingerprint}


def _disk_only() -> Any:
    from pyspark import StorageLevel

    return StorageLevel.DISK_ONLY


# -- what is sent to the executors: functions that hold the survey and nothing of the driver ------------------------


def _counter(survey: Survey, keep: bool) -> _Work:
    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        where = f"partition {_partition()}"
        return spark_counts.count_batches(batches, survey, keep=keep, where=where)

    return count


def _reader(survey: Survey, tasks: Sequence[Sequence[spark_counts.Split]], keep: bool) -> _Work:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in np.asarray(batch.column(0)).tolist():
                yield from spark_counts.count_splits(tasks[index], survey, keep=keep)

    return read


def _pair_counter(survey: Survey, names: spark_pairs.Names) -> _Work:
    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return spark_pairs.pair_batches(batches, survey, names)

    return count


def _pair_reader(
    survey: Survey, tasks: Sequence[Sequence[spark_counts.Split]], names: spark_pairs.Names
) -> _Work:
    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in np.asarray(batch.column(0)).tolist():
                yield from spark_pairs.pair_splits(tasks[index], survey, names)

    return read


def _maker(survey: Survey, records: _Work) -> _Work:
    def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return spark_records.report_batches(records(batches), survey)

    return make


def _accountant(survey: Survey, records: _Work) -> _Work:
    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return spark_records.account_batches(records(batches), survey)

    return count


def _writer(survey: Survey, records: _Work, folder: str) -> _Work:
    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return spark_records.write_part(records(batches), survey, folder, _partition())

    return write


def _partition() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context else 0
