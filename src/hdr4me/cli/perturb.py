"""hdr4me perturb: records become a file of reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from hdr4me.cli import options as opt
from hdr4me.cli.options import DELIMITER, ENCODING, ENGINE, JSON, MASTER, SURVEY, UNUSABLE, File
from hdr4me.cli.output import print_json, print_note, print_table, progress
from hdr4me.errors import InvalidInput

if TYPE_CHECKING:
    from hdr4me.engines import Engine
    from hdr4me.io import Account, RecordFiles
    from hdr4me.survey import Survey


def perturb(
    survey: SURVEY,
    records: Annotated[list[str], Argument(help="Files, folders or patterns of records, or - for stdin.")],
    output: Annotated[File, Option("--output", "-o", help="Reports: .parquet, .arrow or .jsonl.")] = None,
    encoding: ENCODING = None,
    delimiter: DELIMITER = None,
    check: Annotated[bool, Option("--check", help="Show the account of the records; write nothing.")] = False,
    allow_unusable: UNUSABLE = False,
    engine: ENGINE = "local",
    master: MASTER = None,
    json: JSON = False,
) -> None:
    """Randomise every record with the system's cryptographic randomness: m of d dimensions, exact tables.

    Records have a column for each dimension: Parquet, Arrow, CSV or JSON lines (.gz, .zst too). Each run draws anew and
    spends the survey's whole budget for every user again: publish the reports of one run only.

    The account of missing, unknown and out-of-range values is counted from the true records. It is for you, is not
    private and is in no report.

    Example: hdr4me perturb survey.json records.parquet --output reports.parquet
    """
    from hdr4me.survey import Survey

    if check == (output is not None):
        raise InvalidInput("give --output for the reports, or --check to read the records and write nothing")
    files = record_files(records, encoding, delimiter)
    opt.check_outputs([output], [survey, *(Path(path) for path in records if path != "-")])
    document = Survey.load(survey)
    with opt.open_engine(engine, master) as worker:
        if output is None:
            account = worker.account(files, document)
            if json:
                about = {"records": account.n_records, "account": account.rows(), "warnings": account.notes()}
                print_json(about)
            else:
                show_account(account)
            _judge(account, allow_unusable, notes=not json)
            return
        again = output.exists()
        n, account = perturb_files(worker, files, document, output, allow_unusable)
    if json:
        about = {"survey": document.fingerprint, "reports": n, "bytes_per_report": document.report_size}
        print_json({**about, "account": account.rows()})
    else:
        print_note(f"wrote {n:,} reports ({document.report_size} bytes each in binary) to {output}")
    if again:
        print_note("note: the previous file is replaced; if it was published, do not publish this one")


def record_files(records: Sequence[str], encoding: str | None, delimiter: str | None) -> RecordFiles:
    """Files of records, with a note on those that are given twice."""
    from hdr4me.io import RecordFiles

    with opt.named_options():
        files = RecordFiles(records, encoding=encoding, delimiter=delimiter)
    opt.check_twice([Path(path) for path in records if path != "-"])
    return files


def perturb_files(
    worker: Engine, files: RecordFiles, survey: Survey, output: Path, allow_unusable: bool
) -> tuple[int, Account]:
    """Write the reports of the records, after their account was judged; how many, and the account."""
    found: list[Account] = []

    def on_account(account: Account) -> None:
        found.append(account)
        _judge(account, allow_unusable)

    with progress("perturbing", opt.total_of(files.files())) as advance:
        n = worker.perturb(files, survey, output, progress=advance, on_account=on_account)
    return n, found[0]


def _judge(account: Account, allow_unusable: bool, *, notes: bool = True) -> None:
    """Warn of what the account says; refuse columns without a usable value unless they are allowed."""
    from hdr4me.io.account import refusal

    unusable = account.unusable()
    for sentence in [*(account.notes() if notes else ()), *(unusable if allow_unusable else ())]:
        print_note(f"warning: {sentence}")
    if unusable and not allow_unusable:
        raise refusal(unusable)


def show_account(account: Account) -> None:
    """The table of what was read, missing, unknown and out of range."""
    rows = account.rows()
    title = f"{account.n_records:,} records; the account is counted from true values: it is not private"
    print_table(title, list(rows[0]), [list(row.values()) for row in rows])
