"""The public names of `hdr4me.io` and the modules that define them: the only list (`__init__.py` reads it too)."""

from hdr4me.io.columns import data_quality as data_quality
from hdr4me.io.draft import draft_schema as draft_schema
from hdr4me.io.files import ReportWriter as ReportWriter
from hdr4me.io.files import read_reports as read_reports
from hdr4me.io.files import write_reports as write_reports
from hdr4me.io.infer import infer_schema as infer_schema
from hdr4me.io.quality import DataQuality as DataQuality
from hdr4me.io.quality import RecordsWarning as RecordsWarning
from hdr4me.io.quality import check_quality as check_quality
from hdr4me.io.reading import count_records as count_records
from hdr4me.io.reading import record_batches as record_batches
from hdr4me.io.report import OnRejected as OnRejected
from hdr4me.io.report import Quarantine as Quarantine
from hdr4me.io.report import Reason as Reason
from hdr4me.io.report import Rejected as Rejected
from hdr4me.io.report import Report as Report
from hdr4me.io.report import refuse as refuse
from hdr4me.io.source import RecordFiles as RecordFiles

__all__: list[str]
