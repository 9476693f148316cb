"""Records and reports: one reader for every command, one writer; NumPy and Arrow load only with what needs them.

Records are true values in any form (files, tables, frames) and never leave the machine that holds them. Reports are
what users send. The modules `report` and `quarantine` use the standard library only.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hdr4me.io.report import OnRejected, Reason, Rejected, Report, refuse

if TYPE_CHECKING:
    from hdr4me.io.columns import Account as Account
    from hdr4me.io.columns import RecordsWarning as RecordsWarning
    from hdr4me.io.columns import account_of as account_of
    from hdr4me.io.columns import judge as judge
    from hdr4me.io.files import ReportWriter as ReportWriter
    from hdr4me.io.files import read_reports as read_reports
    from hdr4me.io.files import write_reports as write_reports
    from hdr4me.io.infer import infer_schema as infer_schema
    from hdr4me.io.origin import RecordFiles as RecordFiles
    from hdr4me.io.reading import count_records as count_records
    from hdr4me.io.reading import record_batches as record_batches
    from hdr4me.io.report import Quarantine as Quarantine

_HOMES = {
    "Account": "columns",
    "Quarantine": "report",
    "RecordFiles": "origin",
    "RecordsWarning": "columns",
    "ReportWriter": "files",
    "account_of": "columns",
    "count_records": "reading",
    "infer_schema": "infer",
    "judge": "columns",
    "read_reports": "files",
    "record_batches": "reading",
    "write_reports": "files",
}

__all__ = [
    "Account",
    "OnRejected",
    "Quarantine",
    "Reason",
    "RecordFiles",
    "RecordsWarning",
    "Rejected",
    "Report",
    "ReportWriter",
    "account_of",
    "count_records",
    "infer_schema",
    "judge",
    "read_reports",
    "record_batches",
    "refuse",
    "write_reports",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hdr4me.io' has no attribute {name!r}")
    return getattr(import_module(f"hdr4me.io.{_HOMES[name]}"), name)
