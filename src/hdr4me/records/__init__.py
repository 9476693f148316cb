"""Records: true values in any form (files, tables, frames) as Arrow batches, and the account of them.

Nothing here leaves the machine that holds the records: engines turn the batches into reports.
"""

from hdr4me.records.account import Account, RecordsWarning, account_of, judge
from hdr4me.records.columns import Source, check_matrix, from_batch, from_matrix
from hdr4me.records.infer import infer_schema
from hdr4me.records.origin import RecordFiles
from hdr4me.records.reading import batch_rows, check_survey, count_records, record_batches

__all__ = [
    "Account",
    "RecordFiles",
    "RecordsWarning",
    "Source",
    "account_of",
    "batch_rows",
    "check_matrix",
    "check_survey",
    "count_records",
    "from_batch",
    "from_matrix",
    "infer_schema",
    "judge",
    "record_batches",
]
