"""Records to reports on Spark: a DataFrame that is materialised once, or a folder that appears whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hdr4me.engines import spark_records, spark_tasks
from hdr4me.engines.spark_labels import labels
from hdr4me.engines.spark_sources import record_source
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.io.account import Account, OnAccount
from hdr4me.survey import Survey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["account", "perturb_frame", "perturb_to"]


def perturb_frame(session: SparkSession, records: Any, survey: Survey, on_account: OnAccount) -> DataFrame:
    """The reports of records, each drawn once, as a column `report` (see `Spark.perturb`)."""
    source, batches = record_source(session, records, survey)
    rows = source.mapInArrow(spark_tasks.make_reports(survey, batches), spark_records.REPORT_SCHEMA)
    durable = session.sparkContext.getCheckpointDir() is not None
    rows = rows.checkpoint() if durable else rows.localCheckpoint()
    counted = rows.where("account is not null or fault is not null").select("account", "fault")
    on_account(spark_records.account_from(counted.collect(), survey))
    return rows.select(rows["report"].alias("report", metadata=labels(survey)))


def perturb_to(
    session: SparkSession, records: Any, survey: Survey, target: Path, on_account: OnAccount
) -> int:
    """Write the reports of records into a new folder, one file for each task; how many (see `Spark.perturb`)."""
    source, batches = record_source(session, records, survey)
    target = Path(os.path.realpath(target))
    if target.exists():
        raise InvalidInput(f"{target} exists: Spark writes a folder of reports that is not there yet")
    token = secrets.token_hex(6)
    staging, final = (target.with_name(f".{target.name}.{token}.{kind}") for kind in ("tasks", "part"))
    staging.mkdir()
    try:
        work = spark_tasks.write_reports(survey, batches, str(staging))
        rows = source.mapInArrow(work, spark_records.PART_SCHEMA).collect()
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
    source, batches = record_source(session, records, survey)
    rows = source.mapInArrow(spark_tasks.account_records(survey, batches), spark_records.ACCOUNT_SCHEMA)
    return spark_records.account_from(rows.collect(), survey)
