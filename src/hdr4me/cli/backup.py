"""hdr4me backup and restore: a collector's store as one verified file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from hdr4me.cli.options import DATABASE, JSON, OUTPUT, check_outputs
from hdr4me.cli.output import print_json, print_note, working

if TYPE_CHECKING:
    from hdr4me.collector.backup import Contents


def backup(
    database: DATABASE,
    output: OUTPUT,
    despite_damage: Annotated[bool, Option("--despite-damage", help="Leave damaged blocks out.")] = False,
    json: JSON = False,
) -> None:
    """Copy a collector's store while it runs; the copy is read back and every checksum verified.

    Example: hdr4me backup collector.db --output monday.backup
    """
    from hdr4me.collector.backup import backup as copy

    check_outputs([output], [] if "://" in database else [Path(database)])
    with working("copying and verifying"):
        contents = copy(database, output, despite_damage=despite_damage)
    _summary(contents, json)
    print_note(f"wrote {output}; every checksum was verified")


def restore(
    source: Annotated[Path, Argument(help="A file that backup wrote.")],
    database: Annotated[str, Option(help="A new SQLite file, or postgresql://… without rounds.")],
    json: JSON = False,
) -> None:
    """Make a store of a backup, after every checksum of it is verified; nothing is overwritten.

    Example: hdr4me restore monday.backup --database collector.db
    """
    from hdr4me.collector.backup import restore as fill

    with working("verifying and restoring"):
        contents = fill(source, database)
    _summary(contents, json)
    print_note(f"restored into {database.rpartition('@')[2] if '://' in database else database}")


def _summary(contents: Contents, json: bool) -> None:
    if json:
        print_json({"rounds": contents.rounds, "blocks": contents.blocks, "reports": contents.reports})
    else:
        print_note(f"{contents.reports:,} reports of {contents.rounds} rounds")
