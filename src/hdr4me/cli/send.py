"""hdr4me send: records become reports that are sent to a collector."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from hdr4me.cli import options as opt
from hdr4me.cli.options import DELIMITER, ENCODING, JSON, SURVEY, UNUSABLE, File, Texts
from hdr4me.cli.output import print_json, print_note, progress
from hdr4me.cli.perturb import perturb_files, record_files
from hdr4me.errors import InvalidInput


def send(
    survey: SURVEY,
    records: Annotated[Texts, Argument(help="Records: any files that perturb accepts.")] = None,
    to: Annotated[str, Option(help="The collector's address, such as https://collector.example.")] = "",
    token: Annotated[
        str | None, Option(envvar="HDR4ME_TOKEN", help="An upload token, if the collector needs one.")
    ] = None,
    round: Annotated[int | None, Option(help="The round's number; else the latest open round.")] = None,
    form: Annotated[str, Option("--form", help="How reports travel: arrow or ndjson.")] = "arrow",
    spool: Annotated[File, Option(help="A folder that keeps reports and ids, to send them again.")] = None,
    encoding: ENCODING = None,
    delimiter: DELIMITER = None,
    allow_unusable: UNUSABLE = False,
    json: JSON = False,
) -> None:
    """Randomise records here and send the reports, never the records; each is counted once, whatever fails.

    Ids are made with the reports and written down before anything is sent. If sending fails, the spool is kept and the
    message says how to send it again; perturbing again would spend the budget of every user again.

    Example: hdr4me send survey.json records.parquet --to http://127.0.0.1:8000
    """
    with opt.needs_collector():
        from hdr4me.collector.sending import NotTaken, Spool
        from hdr4me.collector.sending import send as send_spool
    from hdr4me.engines import Local
    from hdr4me.survey import Survey

    if not to:
        raise InvalidInput.missing("--to")
    document = Survey.load(survey)
    folder = spool or Path(tempfile.mkdtemp(prefix="hdr4me-send-"))
    made = Spool(folder, document)
    account = None
    if made.is_there:
        if records:
            raise InvalidInput(
                f"{folder} is a whole spool: give no records to send it again, or another folder for new reports"
            )
        print_note(f"sending the {len(made):,} reports of {folder}")
    elif not records:
        raise InvalidInput.missing("RECORDS")
    else:
        files = record_files(records, encoding, delimiter)
        folder.mkdir(parents=True, exist_ok=True)
        n, account = perturb_files(Local(), files, document, made.reports, allow_unusable)
        made.seal(n)
    try:
        with progress("sending", len(made)) as advance, opt.named_options():
            sent = send_spool(made, to, token=token, round=round, form=form, progress=advance)
    except NotTaken as error:
        how = "Give the token by --token or HDR4ME_TOKEN. " if "needs a token" in str(error) else ""
        again = f"hdr4me send {survey} --spool {folder} --to {to}"
        raise NotTaken(f"{error}. {how}The reports are kept: {again}") from None
    if spool is None:
        shutil.rmtree(folder, ignore_errors=True)
    if json:
        about = {"survey": document.fingerprint, "stored": sent.stored, "duplicates": sent.duplicates}
        print_json(
            {**about, "rejected": sent.rejected, "account": None if account is None else account.rows()}
        )
    else:
        total = sent.stored + sent.duplicates
        print_note(f"sent {total:,} reports: {sent.stored:,} new, {sent.duplicates:,} known")
    if sent.rejected:
        raise NotTaken(f"the collector rejected {sent.rejected:,} reports")
