"""Where a command may write: checked before any work is done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hdr4me.cli.output import print_note
from hdr4me.errors import InvalidInput

__all__ = ["check_outputs", "check_twice"]


def check_outputs(outputs: Sequence[Path | None], inputs: Sequence[Path | None] = ()) -> None:
    """Each output's folder exists, and no output is a directory, an input or another output."""
    taken = {path.resolve(): "an input" for path in inputs if path is not None}
    for path in outputs:
        if path is None:
            continue
        try:
            str(path).encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidInput(f"{path} cannot be written: its name is not UTF-8") from None
        if not path.parent.is_dir():
            raise InvalidInput(f"{path} cannot be written: there is no folder {path.parent}")
        if path.is_dir():
            raise InvalidInput(f"{path} cannot be written: it is a directory")
        if path.resolve() in taken:
            raise InvalidInput(f"{path} cannot be written: it is also {taken[path.resolve()]}")
        taken[path.resolve()] = "another output"


def check_twice(paths: Sequence[Path]) -> None:
    """Say so when a file is given twice: its reports are then counted twice."""
    resolved = [path.resolve() for path in paths]
    for path in sorted({path for path in resolved if resolved.count(path) > 1}):
        print_note(f"note: {path.name} is given more than once, and counted each time")
