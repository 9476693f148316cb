"""Pictures in the format of their names, with what they were made from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hdr4me.atomic import replacing
from hdr4me.errors import InvalidInput
from hdr4me.pages.stamp import in_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["check_picture", "save_picture"]

PICTURES = (".png", ".svg", ".pdf")
_DESCRIPTION = {".png": "Description", ".svg": "Description", ".pdf": "Subject"}


def check_picture(option: str, path: Path | None) -> None:
    """Refuse a picture's name that does not say which kind of picture it is."""
    if path is not None and path.suffix.lower() not in PICTURES:
        raise InvalidInput(f"{option} {path} is not allowed: its name must end in {', '.join(PICTURES)}")


def save_picture(figure: Figure, path: Path, made: Mapping[str, Any]) -> None:
    """Write a picture in the format of its name, the stamp in its metadata."""
    kind = path.suffix.lower()
    with replacing(path) as temporary:
        figure.savefig(temporary, format=kind[1:], dpi=150, metadata={_DESCRIPTION[kind]: in_words(made)})
