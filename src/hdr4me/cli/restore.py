"""hdr4me restore: a backup becomes a collector's store again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hdr4me.cli.backup import summary
from hdr4me.cli.output import print_note, working


def restore(
    source: Annotated[Path, typer.Argument(help="A file that backup wrote.")],
    database: Annotated[
        str, typer.Option(help="A new file for SQLite, or postgresql://… of a database without rounds.")
    ],
    json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Make a store of a backup, after every checksum of it is verified; nothing is overwritten.

    Example: hdr4me restore monday.backup --database collector.db
    """
    from hdr4me.collector.backup import restore as fill

    with working("verifying and restoring"):
        contents = fill(source, database)
    summary(contents, json)
    print_note(f"restored into {database.rpartition('@')[2] if '://' in database else database}")
