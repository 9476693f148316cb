"""The Spark engine: the executors run the same kernels, and their counts are added in a tree."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hdr4me.engines import spark_perturb, spark_tally
from hdr4me.engines.protocol import FilePath, Progress, check_survey, paths_of
from hdr4me.engines.spark_session import named_packages, require_pyspark
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.io.quality import DataQuality, OnQuality, check_quality, load_quality
from hdr4me.survey import Survey
from hdr4me.tally import PairCounts, Tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def spark(session: SparkSession) -> Spark:
    """The engine on an open Spark session (see `hdr4me.engines.open_session`)."""
    return Spark(session)


class Spark:
    """Perturb and tally on a cluster. Records and reports may be anything that Spark can read.

    Reports are not shuffled between executors: each task counts its own reports into one vector of integers, and the
    vectors are added in a tree. Retried and speculative tasks give the same integers, and Spark uses the result of each
    partition once.
    """

    def __init__(self, session: SparkSession) -> None:
        require_pyspark()
        from pyspark.sql import SparkSession

        if not isinstance(session, SparkSession):
            raise InvalidInput(f"session = {session!r} must be a SparkSession")
        self.session = session

    # -- records to reports --------------------------------------------------------------------------------------

    @named_packages()
    def perturb(
        self,
        records: Any,
        survey: Survey,
        target: FilePath | None = None,
        *,
        progress: Progress | None = None,
        on_quality: OnQuality = check_quality,
    ) -> Any:
        """Reports of records: a DataFrame with one column, `report`; with `target`, the number of reports in a folder.

        Every record is randomized ONCE. The DataFrame is materialized before it is returned (in the session's
        checkpoint directory if it has one, otherwise on the executors), because a lazy DataFrame would randomize each
        user again at every use and spend the budget repeatedly. `target` must not exist; each task writes one file, and
        the folder appears atomically.
        """
        check_survey(survey)
        if target is None:
            return spark_perturb.perturb_frame(self.session, records, survey, on_quality)
        n = spark_perturb.perturb_to(self.session, records, survey, Path(target), on_quality)
        if progress is not None:
            progress(n)
        return n

    @named_packages()
    def data_quality(self, records: Any, survey: Survey) -> DataQuality:
        """The data-quality report of records, without creating reports."""
        check_survey(survey)
        return spark_perturb.quality_of_records(self.session, records, survey)

    # -- reports to a tally --------------------------------------------------------------------------------------

    @named_packages()
    def tally(
        self,
        reports: Any,
        survey: Survey,
        *,
        quarantine: FilePath | None = None,
        strict: bool = False,
        progress: Progress | None = None,
    ) -> Tally:
        """The tally of reports: a DataFrame, or files and folders of files that every executor can open.

        A DataFrame has a binary column `report`, or a string column `report` or `value` with a JSON report in each
        row. Unless the metadata of the column names the survey, the caller must ensure that the reports belong to it.
        Bad reports are counted by reason. With `quarantine`, a new path for Spark, they are also written as JSON lines
        with reason, location and content; if there are none, nothing is written.
        """
        check_survey(survey)
        if quarantine is not None and Path(quarantine).exists():  # checked before the work starts
            raise InvalidInput(f"quarantine = {quarantine} already exists: choose a new path for the folder")
        folder = None if quarantine is None else os.fspath(quarantine)
        tally = spark_tally.count_reports(self.session, reports, survey, folder)
        if isinstance(reports, str | os.PathLike | list | tuple):
            tally.data_quality = load_quality(paths_of(reports), survey)
        if strict and tally.rejected:
            reason, number = next(iter(tally.rejected.items()))
            raise FormatError(f"{number} bad reports: {reason}")
        if progress is not None:
            progress(tally.n_reports)
        return tally

    @named_packages()
    def pair_counts(self, reports: Any, survey: Survey, pairs: spark_tally.Names) -> PairCounts:
        """Joint counts of two answers of one report, identical to those of the local engine."""
        check_survey(survey)
        return spark_tally.count_pairs(self.session, reports, survey, pairs)

    def follow(
        self,
        reports: DataFrame,
        survey: Survey,
        folder: FilePath,
        *,
        keep_rejected: bool = False,
        every: str | None = None,
    ) -> StreamingQuery:
        """Add a streaming DataFrame of reports to a tally in `folder` (see `spark_stream.follow`)."""
        from hdr4me.engines.spark_stream import follow

        return follow(reports, survey, folder, keep_rejected=keep_rejected, every=every)
