"""hdr4me backup: a collector's store copied into one verified file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hdr4me.cli.output import print_json, print_note, working
from hdr4me.cli.paths import check_outputs

if TYPE_CHECKING:
    from hdr4me.collector.backup import Contents

DATABASE = Annotated[str, typer.Argument(help="A file of SQLite, or postgresql://user@host/name.")]


def backup(
    database: DATABASE,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    despite_damage: Annotated[
        bool, typer.Option("--despite-damage", help="Leave damaged blocks out instead of refusing.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Copy a collector's store while it runs; the copy is read back and every checksum verified.

    Example: hdr4me backup collector.db --output monday.backup
    """
    from hdr4me.collector.backup import backup as copy

    check_outputs([output], [] if "://" in database else [Path(database)])
    with working("copying and verifying"):
        contents = copy(database, output, despite_damage=despite_damage)
    summary(contents, json)
    print_note(f"wrote {output}; every checksum was verified")


def summary(contents: Contents, json: bool) -> None:
    """What a backup holds, for a program or a person."""
    if json:
        print_json({"rounds": contents.rounds, "blocks": contents.blocks, "reports": contents.reports})
    else:
        print_note(f"{contents.reports:,} reports of {contents.rounds} rounds")
