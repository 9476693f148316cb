"""Spark as an engine: our kernels in its executors, integers back in a tree, the same tally to the last bit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hdr4me.engines import spark_perturb, spark_tally
from hdr4me.engines.protocol import FilePath, Progress, check_survey
from hdr4me.engines.spark_session import require_pyspark
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.io.columns import DataQuality, OnQuality, judge
from hdr4me.survey import Survey
from hdr4me.tally import PairCounts, Tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


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

    def perturb(
        self,
        records: Any,
        survey: Survey,
        target: FilePath | None = None,
        *,
        progress: Progress | None = None,
        on_quality: OnQuality = judge,
    ) -> Any:
        """Reports of records: a DataFrame with one column, `report`, or a folder of report files and their number.

        Every record is randomized ONCE: the DataFrame is materialised before it is returned (in the session's
        checkpoint directory if it has one, else on the executors), because a lazy one would randomize each user anew
        at every use, and two answers of one user spend twice the budget. With `target`, which must not exist, one
        file for each task is written, and the folder appears whole or not at all.
        """
        check_survey(survey)
        if target is None:
            return spark_perturb.perturb_frame(self.session, records, survey, on_quality)
        n = spark_perturb.perturb_to(self.session, records, survey, Path(target), on_quality)
        if progress is not None:
            progress(n)
        return n

    def data_quality(self, records: Any, survey: Survey) -> DataQuality:
        """What `perturb` would find in the records, without making a report."""
        check_survey(survey)
        return spark_perturb.quality_of_records(self.session, records, survey)

    # -- reports to a tally --------------------------------------------------------------------------------------

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

        A DataFrame has a binary column `report`, or a text column `report` or `value` with a JSON report
        in each row; its reports are the survey's by the caller's word unless the column says whose they are. Bad
        reports are counted by reason and, with `quarantine` (a path for Spark to write, not there yet), written down as
        JSON lines with reason, place and content; without any bad report nothing is written.
        """
        check_survey(survey)
        if quarantine is not None and Path(quarantine).exists():  # said before the work rather than after it
            raise InvalidInput(
                f"quarantine = {quarantine} already exists: Spark writes a folder that is not there yet"
            )
        folder = None if quarantine is None else os.fspath(quarantine)
        tally = spark_tally.count_reports(self.session, reports, survey, folder)
        if strict and tally.rejected:
            reason, number = next(iter(tally.rejected.items()))
            raise FormatError(f"{number} bad reports: {reason}")
        if progress is not None:
            progress(tally.n_reports)
        return tally

    def pair_counts(self, reports: Any, survey: Survey, pairs: spark_tally.Names) -> PairCounts:
        """Two answers of one report counted together, as one machine counts them, to the last bit."""
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
        """Fold a streaming DataFrame of reports into a tally in `folder`: see `spark_stream.follow`."""
        from hdr4me.engines.spark_stream import follow

        return follow(reports, survey, folder, keep_rejected=keep_rejected, every=every)
