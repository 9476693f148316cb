"""hdr4me tally and merge: files of reports become one tally, and tallies add up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from hdr4me.cli import options as opt
from hdr4me.cli.options import ENGINE, JSON, MASTER, OUTPUT, PAIR, SURVEY, File
from hdr4me.cli.output import print_json, print_note

if TYPE_CHECKING:
    from hdr4me.tally import Tally


def tally(
    survey: SURVEY,
    reports: Annotated[list[Path], Argument(help="Files of reports: Parquet, Arrow or JSON lines.")],
    output: OUTPUT,
    quarantine: Annotated[File, Option(help="Where bad reports go, with reasons (JSON lines).")] = None,
    strict: Annotated[bool, Option("--strict", help="Stop at the first bad report.")] = False,
    pair: PAIR = None,
    engine: ENGINE = "local",
    master: MASTER = None,
    json: JSON = False,
) -> None:
    """Count reports into integers; bad ones are left out, counted by reason and, with --quarantine, kept.

    Each --pair is also counted together, into the file OUTPUT.pairs.

    Example: hdr4me tally survey.json reports-*.parquet --output day.tally
    """
    from hdr4me.engines import Local
    from hdr4me.survey import Survey
    from hdr4me.tally import PairCounts

    beside = output.with_name(output.name + ".pairs") if pair else None
    opt.check_outputs([output, quarantine, beside], [survey, *reports])
    opt.check_twice(reports)
    document = Survey.load(survey)
    names = [opt.pair_of("--pair", text) for text in pair or []]
    if names:
        PairCounts(document, names)  # refused before any report is read if they cannot be counted
    with opt.open_engine(engine, master) as worker:
        found = opt.tally_files(worker, document, reports, quarantine, strict)
        # An engine of another package may not count pairs: this machine does then.
        count = getattr(worker, "pair_counts", Local().pair_counts)
        together = count(list(reports), document, names) if names else None
    _save(found, output, json)
    if together is not None and beside is not None:
        together.save(beside)
        print_note(f"wrote {beside}")


def merge(
    tallies: Annotated[list[Path], Argument(help="Tallies of one survey.")],
    output: OUTPUT,
    json: JSON = False,
) -> None:
    """Add tallies of the same survey: exact, in any order, from any machine.

    Example: hdr4me merge monday.tally tuesday.tally --output week.tally
    """
    opt.check_outputs([output])  # it may be one of the tallies: they are read first, and it is replaced whole
    opt.check_twice(tallies)
    _save(opt.load_sum(tallies), output, json)


def _save(found: Tally, output: Path, json: bool) -> None:
    found.save(output)
    if json:
        print_json(
            {"survey": found.survey.fingerprint, "reports": found.n_reports, "rejected": found.rejected}
        )
    else:
        print_note(f"{found.n_reports:,} reports of survey {found.survey.fingerprint[:12]}")
        say_rejected(found)
    print_note(f"wrote {output}")


def say_rejected(found: Tally) -> None:
    """How many reports were left out, and why."""
    for reason, number in found.rejected.items():
        print_note(f"{number:,} left out: {reason}")
