"""Where a command may write, checked before any work is done; pages and pictures with their provenance."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hdr4me.atomic import replacing, write_text
from hdr4me.cli.output import print_note
from hdr4me.errors import InvalidInput
from hdr4me.pages.stamp import in_words, on_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_DESCRIPTION = {".png": "Description", ".svg": "Description", ".pdf": "Subject"}
"""The metadata field that holds the provenance, for each format of pictures."""


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


def check_picture(option: str, path: Path | None) -> None:
    """Refuse a picture's name that does not say which kind of picture it is."""
    if path is not None and path.suffix.lower() not in _DESCRIPTION:
        raise InvalidInput(f"{option} {path} is not allowed: its name must end in {', '.join(_DESCRIPTION)}")


def write_results(
    html: Path | None,
    png: Path | None,
    made: Mapping[str, Any],
    page: Callable[[], str],
    draw: Callable[[], Figure],
) -> None:
    """Write the page and the picture that were asked for, each with what it was made from."""
    if html is not None:
        write_text(html, on_page(page(), made))
        print_note(f"wrote {html}")
    if png is not None:
        kind = png.suffix.lower()
        with replacing(png) as temporary:
            metadata = {_DESCRIPTION[kind]: in_words(made)}
            draw().savefig(temporary, format=kind[1:], dpi=150, metadata=metadata)
        print_note(f"wrote {png}")
