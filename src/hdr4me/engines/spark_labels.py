"""The column of a DataFrame that holds reports: labelled with its survey's fingerprint, and checked against it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hdr4me.engines.spark_session import require_pyspark
from hdr4me.errors import FingerprintMismatch, FormatError
from hdr4me.survey import Survey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = ["labels", "report_column", "report_schema"]

_SURVEY = "hdr4me.survey"


def labels(survey: Survey) -> dict[str, Any]:
    """A column's metadata; Spark keeps it in Parquet and in tables, and shows it when they are read."""
    return {"hdr4me.format": "hdr4me-reports", "hdr4me.version": "1", _SURVEY: survey.fingerprint}


def report_schema(survey: Survey) -> StructType:
    """The schema of a stream or table of binary reports, labelled with the survey's fingerprint."""
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
