"""Reports: what travels, and the files it travels in; NumPy and Arrow are loaded only with the file formats."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hdr4me.reports.report import OnRejected, Reason, Rejected, Report, refuse

if TYPE_CHECKING:
    from hdr4me.reports.files import ReportWriter as ReportWriter
    from hdr4me.reports.files import read_reports as read_reports
    from hdr4me.reports.files import write_reports as write_reports
    from hdr4me.reports.quarantine import Quarantine as Quarantine

__all__ = [
    "OnRejected",
    "Quarantine",
    "Reason",
    "Rejected",
    "Report",
    "ReportWriter",
    "read_reports",
    "refuse",
    "write_reports",
]

_HOMES = {
    "ReportWriter": "files",
    "read_reports": "files",
    "write_reports": "files",
    "Quarantine": "quarantine",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hdr4me.reports' has no attribute {name!r}")
    return getattr(import_module(f"hdr4me.reports.{_HOMES[name]}"), name)
