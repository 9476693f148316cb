"""hdr4me merge: tallies add up."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from hdr4me.cli.output import print_note
from hdr4me.cli.paths import check_outputs, check_twice
from hdr4me.cli.tally import describe, load_sum


def merge(
    tallies: Annotated[list[Path], Argument(help="Tallies of one survey.")],
    output: Annotated[Path, Option("--output", "-o", help="Where to write their sum.")],
    json: Annotated[bool, Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Add tallies of the same survey: exact, in any order, from any machine.

    Example: hdr4me merge monday.tally tuesday.tally --output week.tally
    """
    check_outputs([output])  # it may be one of the tallies: they are read first, and it is replaced whole
    check_twice(tallies)
    total = load_sum(tallies)
    total.save(output)
    describe(total, json)
    print_note(f"wrote {output}")
