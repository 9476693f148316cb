"""hdr4me tally: files of reports become one tally."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from hdr4me.cli.engine import ENGINE, MASTER, open_engine, tally_files
from hdr4me.cli.option_names import pair_of
from hdr4me.cli.output import print_json, print_note
from hdr4me.cli.paths import check_outputs, check_twice

if TYPE_CHECKING:
    from hdr4me.tally import Tally


def tally(
    survey: Annotated[Path, Argument(help="The survey's document.")],
    reports: Annotated[list[Path], Argument(help="Files of reports: Parquet, Arrow or JSON lines.")],
    output: Annotated[Path, Option("--output", "-o", help="Where to write the tally.")],
    quarantine: Annotated[
        Path | None, Option(help="Where bad reports go, with their reasons (JSON lines).")
    ] = None,
    strict: Annotated[bool, Option("--strict", help="Stop at the first bad report.")] = False,
    pair: Annotated[
        list[str] | None,
        Option(metavar="<a,b>", help="Also count these two together, into OUTPUT.pairs (repeat)."),
    ] = None,
    engine: ENGINE = "local",
    master: MASTER = None,
    json: Annotated[bool, Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Count reports into integers; bad ones are left out, counted by reason and, with --quarantine, kept.

    Example: hdr4me tally survey.json reports-*.parquet --output day.tally
    """
    from hdr4me.engines import Local
    from hdr4me.survey import Survey
    from hdr4me.tally import PairCounts

    beside = output.with_name(output.name + ".pairs") if pair else None
    check_outputs([output, quarantine, beside], [survey, *reports])
    check_twice(reports)
    document = Survey.load(survey)
    names = [pair_of("--pair", text) for text in pair or []]
    if names:
        PairCounts(document, names)  # refused before any report is read if they cannot be counted
    with open_engine(engine, master) as worker:
        counted = tally_files(worker, document, reports, quarantine, strict)
        # An engine of another package may not count pairs: this machine does then.
        count = getattr(worker, "pair_counts", Local().pair_counts)
        together = count(list(reports), document, names) if names else None
    counted.save(output)
    describe(counted, json)
    print_note(f"wrote {output}")
    if together is not None and beside is not None:
        together.save(beside)
        print_note(f"wrote {beside}")


def load_sum(paths: Sequence[Path]) -> Tally:
    """The sum of tallies in files, all of the first one's survey."""
    from hdr4me.tally import Tally

    total = Tally.load(paths[0])
    for path in paths[1:]:
        total = total + Tally.load(path, total.survey)
    return total


def describe(counted: Tally, json: bool) -> None:
    """The summary of a tally, for a program or a person."""
    if json:
        print_json(
            {"survey": counted.survey.fingerprint, "reports": counted.n_reports, "rejected": counted.rejected}
        )
        return
    print_note(f"{counted.n_reports:,} reports of survey {counted.survey.fingerprint[:12]}")
    say_rejected(counted)


def say_rejected(counted: Tally) -> None:
    """How many reports were left out, and why."""
    for reason, number in counted.rejected.items():
        print_note(f"{number:,} left out: {reason}")
