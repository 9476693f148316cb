"""Records and reports: one reader for every command, one writer; NumPy and Arrow load only with what needs them.

Records are true values in any form (files, tables, frames) and never leave the machine that holds them. Reports are
what users send. The module `report` uses the standard library only.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hdr4me.io.report import OnRejected, Quarantine, Reason, Rejected, Report, refuse

if TYPE_CHECKING:
    from hdr4me.io.columns import DataQuality, RecordsWarning, data_quality, judge
    from hdr4me.io.files import ReportWriter, read_reports, write_reports
    from hdr4me.io.infer import infer_schema
    from hdr4me.io.origin import RecordFiles
    from hdr4me.io.reading import count_records, record_batches

_HOMES = {
    "columns": ("DataQuality", "RecordsWarning", "data_quality", "judge"),
    "files": ("ReportWriter", "read_reports", "write_reports"),
    "infer": ("infer_schema",),
    "origin": ("RecordFiles",),
    "reading": ("count_records", "record_batches"),
}

__all__ = [
    "DataQuality",
    "OnRejected",
    "Quarantine",
    "Reason",
    "RecordFiles",
    "RecordsWarning",
    "Rejected",
    "Report",
    "ReportWriter",
    "count_records",
    "data_quality",
    "infer_schema",
    "judge",
    "read_reports",
    "record_batches",
    "refuse",
    "write_reports",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"hdr4me.io.{home}"), name)
    raise AttributeError(f"module 'hdr4me.io' has no attribute {name!r}")
