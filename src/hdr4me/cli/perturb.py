"""hdr4me perturb: a file of records becomes a file of reports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hdr4me.cli.engine import ENGINE, MASTER, open_engine
from hdr4me.cli.output import print_json, print_note, progress
from hdr4me.cli.paths import check_outputs


def perturb(
    survey: Annotated[Path, typer.Argument(help="The survey's document.")],
    records: Annotated[
        Path, typer.Argument(help="Records, a column for each dimension: Parquet, Arrow or CSV.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Reports: .parquet, .arrow or .jsonl.")],
    engine: ENGINE = "local",
    master: MASTER = None,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Randomise every record with the system's cryptographic randomness: m of d dimensions, exact tables.

    Each run draws anew and spends the survey's whole budget for every user again: publish the reports of one run only.

    Example: hdr4me perturb survey.json records.parquet --output reports.parquet
    """
    from hdr4me.engines import count_records
    from hdr4me.survey import Survey

    check_outputs([output], [survey, records])
    document = Survey.load(survey)
    again = output.exists()
    total = count_records(records) if records.is_file() else None
    with open_engine(engine, master) as worker, progress("perturbing", total) as advance:
        n = worker.perturb(records, document, output, progress=advance)
    if json:
        print_json({"survey": document.fingerprint, "reports": n, "bytes_per_report": document.report_size})
    else:
        print_note(f"wrote {n:,} reports ({document.report_size} bytes each in binary) to {output}")
    if again:
        print_note("note: what stood there is replaced; if it was published, these must not be")
