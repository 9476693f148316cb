"""hdr4me send: records become reports that are sent to a collector."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hdr4me.cli.extra import needs_collector
from hdr4me.cli.option_names import named_options
from hdr4me.cli.output import print_json, print_note, progress
from hdr4me.cli.paths import check_twice
from hdr4me.cli.perturb import DELIMITER, ENCODING, _refuse
from hdr4me.errors import InvalidInput

if TYPE_CHECKING:
    from hdr4me.collector.sending import Spool
    from hdr4me.io import Account, RecordFiles
    from hdr4me.survey import Survey


def send(
    survey: Annotated[Path, typer.Argument(help="The survey's document.")],
    records: Annotated[
        list[str] | None,
        typer.Argument(help="Records, a column for each dimension: any files that perturb takes."),
    ] = None,
    to: Annotated[str, typer.Option(help="The collector's address, such as https://collector.example.")] = "",
    token: Annotated[
        str | None, typer.Option(envvar="HDR4ME_TOKEN", help="An upload token, if the collector wants one.")
    ] = None,
    round: Annotated[
        int | None, typer.Option(help="The round's number; the latest open round of the survey unless given.")
    ] = None,
    form: Annotated[str, typer.Option("--form", help="How reports travel: arrow or ndjson.")] = "arrow",
    spool: Annotated[
        Path | None,
        typer.Option(
            help="A folder that keeps the reports and their ids. A whole spool that is there is sent again: "
            "nothing is counted twice."
        ),
    ] = None,
    encoding: ENCODING = None,
    delimiter: DELIMITER = None,
    allow_unusable: Annotated[
        bool, typer.Option("--allow-unusable", help="Go on where a column has no usable value.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Randomise records here and send the reports, never the records; each is counted once, whatever fails.

    Ids are made with the reports and written down before anything is sent. If sending fails, the spool is kept and the
    message says how to send it again; perturbing again would spend the budget of every user again.

    Example: hdr4me send survey.json records.parquet --to http://127.0.0.1:8000
    """
    with needs_collector():
        from hdr4me.collector.sending import NotTaken, Spool
        from hdr4me.collector.sending import send as send_spool
    from hdr4me.survey import Survey

    if not to:
        raise InvalidInput.missing("--to")
    document = Survey.load(survey)
    folder = spool or Path(tempfile.mkdtemp(prefix="hdr4me-send-"))
    made = Spool(folder, document)
    account: Account | None = None
    if made.is_there:
        if records:
            raise InvalidInput(
                f"{folder} is a whole spool: give no records to send it again, or another folder for new reports"
            )
        print_note(f"sending the {len(made):,} reports of {folder}")
    else:
        account = _fill(made, document, records or [], encoding, delimiter, allow_unusable)
    try:
        with progress("sending", len(made)) as advance, named_options({"form": "--form", "url": "--to"}):
            sent = send_spool(made, to, token=token, round=round, form=form, progress=advance)
    except NotTaken as error:
        how = "Give the token by --token or HDR4ME_TOKEN. " if "needs a token" in str(error) else ""
        raise NotTaken(
            f"{error}. {how}The reports are kept: hdr4me send {survey} --spool {folder} --to {to}"
        ) from None
    if spool is None:
        shutil.rmtree(folder, ignore_errors=True)
    if json:
        summary: dict[str, Any] = {"survey": document.fingerprint, "stored": sent.stored}
        summary |= {"duplicates": sent.duplicates, "rejected": sent.rejected}
        print_json({**summary, "account": None if account is None else account.rows()})
    else:
        print_note(
            f"sent {sent.stored + sent.duplicates:,} reports: {sent.stored:,} new, {sent.duplicates:,} known"
        )
    if sent.rejected:
        raise NotTaken(f"the collector rejected {sent.rejected:,} reports")


def _fill(
    made: Spool,
    document: Survey,
    records: list[str],
    encoding: str | None,
    delimiter: str | None,
    allow_unusable: bool,
) -> Account:
    """Perturb the records into the spool; the account is judged before anything is sent."""
    from hdr4me.engines import Local
    from hdr4me.io import RecordFiles, count_records

    if not records:
        raise InvalidInput.missing("RECORDS")
    with named_options({"encoding": "--encoding", "delimiter": "--delimiter"}):
        files: RecordFiles = RecordFiles(records, encoding=encoding, delimiter=delimiter)
    check_twice([Path(path) for path in records if path != "-"])
    made.folder.mkdir(parents=True, exist_ok=True)
    found: list[Account] = []

    def on_account(account: Account) -> None:
        found.append(account)
        for sentence in account.notes():
            print_note(f"warning: {sentence}")
        _refuse(account, allow_unusable)

    sizes = [count_records(path) for path in files.files()]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    with progress("perturbing", total) as advance:
        n = Local().perturb(files, document, made.reports, progress=advance, on_account=on_account)
    made.seal(n)
    return found[0]
