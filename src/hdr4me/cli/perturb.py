"""hdr4me perturb: records become a file of reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from hdr4me.cli.engine import ENGINE, MASTER, open_engine
from hdr4me.cli.option_names import named_options, options
from hdr4me.cli.output import print_json, print_note, print_table, progress
from hdr4me.cli.paths import check_outputs, check_twice
from hdr4me.errors import InvalidInput

if TYPE_CHECKING:
    from hdr4me.io import Account

DELIMITER = Annotated[
    str | None,
    Option(help="What separates the fields of a CSV file (tab for tabs); told by the header."),
]
ENCODING = Annotated[str | None, Option(help="The encoding of text files: UTF-8 unless given.")]


def perturb(
    survey: Annotated[Path, Argument(help="The survey's document.")],
    records: Annotated[
        list[str],
        Argument(
            help="Records, a column for each dimension: Parquet, Arrow, CSV or JSON lines (.gz, .zst too), folders "
            "and patterns of them, or - for standard input."
        ),
    ],
    output: Annotated[
        Path | None, Option("--output", "-o", help="Reports: .parquet, .arrow or .jsonl.")
    ] = None,
    encoding: ENCODING = None,
    delimiter: DELIMITER = None,
    check: Annotated[
        bool, Option("--check", help="Read the records and show the account; write nothing.")
    ] = False,
    allow_unusable: Annotated[
        bool, Option("--allow-unusable", help="Go on where a column has no usable value.")
    ] = False,
    engine: ENGINE = "local",
    master: MASTER = None,
    json: Annotated[bool, Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Randomise every record with the system's cryptographic randomness: m of d dimensions, exact tables.

    Each run draws anew and spends the survey's whole budget for every user again: publish the reports of one run only.

    The account of missing, unknown and out-of-range values is counted from the true records. It is for you, is not
    private and is in no report.

    Example: hdr4me perturb survey.json records.parquet --output reports.parquet
    """
    from hdr4me.io import RecordFiles, count_records
    from hdr4me.survey import Survey

    if check == (output is not None):
        raise InvalidInput("give --output for the reports, or --check to read the records and write nothing")
    with named_options(options("encoding", "delimiter")):
        files = RecordFiles(records, encoding=encoding, delimiter=delimiter)
    paths = [Path(path) for path in records if path != "-"]
    check_outputs([output], [survey, *paths])
    check_twice(paths)
    document = Survey.load(survey)
    found: list[Account] = []

    def on_account(account: Account) -> None:
        found.append(account)
        for sentence in account.notes():
            print_note(f"warning: {sentence}")
        _refuse(account, allow_unusable)

    with open_engine(engine, master) as worker:
        if output is None:
            account = worker.account(files, document)
            _show(account, json)
            _refuse(account, allow_unusable)
            return
        again = output.exists()
        sizes = [count_records(path) for path in files.files()]
        total = None if None in sizes else sum(size or 0 for size in sizes)
        with progress("perturbing", total) as advance:
            n = worker.perturb(files, document, output, progress=advance, on_account=on_account)
    if json:
        summary: dict[str, Any] = {"survey": document.fingerprint, "reports": n}
        print_json({**summary, "bytes_per_report": document.report_size, "account": found[0].rows()})
    else:
        print_note(f"wrote {n:,} reports ({document.report_size} bytes each in binary) to {output}")
    if again:
        print_note("note: what stood there is replaced; if it was published, these must not be")


def _refuse(account: Account, allow_unusable: bool) -> None:
    from hdr4me.io.columns import refusal

    unusable = account.unusable()
    if unusable and not allow_unusable:
        raise refusal(unusable)
    for sentence in unusable:
        print_note(f"warning: {sentence}")


def _show(account: Account, json: bool) -> None:
    if json:
        print_json({"records": account.n_records, "account": account.rows(), "warnings": account.notes()})
        return
    show_account(account)
    for sentence in account.notes():
        print_note(f"warning: {sentence}")


def show_account(account: Account) -> None:
    """The table of what was read, missing, unknown and out of range."""
    rows = account.rows()
    print_table(
        f"{account.n_records:,} records; the account is counted from true values: it is not private",
        list(rows[0]),
        [list(row.values()) for row in rows],
    )
