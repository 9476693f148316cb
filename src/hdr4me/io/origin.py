"""Which files hold the records: paths, folders, patterns and standard input, by one rule for every engine."""

from __future__ import annotations

import codecs
import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from hdr4me.errors import FormatError, InvalidInput

__all__ = ["STANDARD_INPUT", "RecordFiles", "is_remote"]

STANDARD_INPUT = "-"
"""The name that stands for standard input."""

_TAB = {"tab": "\t", "\\t": "\t"}


@dataclass(frozen=True, init=False)
class RecordFiles:
    r"""Files of records, and how their text is read.

    A folder stands for all files inside, at any depth, except those whose name, or whose folder's name, begins with
    a dot or an underscore. A name with `*`, `?` or `[` that is not a file's own is a pattern. `-` is standard input.

    Parameters
    ----------
    paths
        A path, or several.
    encoding
        The encoding of text files (CSV, JSON lines). Unless given: UTF-8, or UTF-16 if a byte order mark says so.
    delimiter
        What separates the fields of a CSV file. Unless given, it is the one of comma, semicolon, tab and vertical
        bar under which the header has the columns that are asked for.

    Raises
    ------
    InvalidInput
        If there is no path, the encoding is not known or the delimiter is not one character.

    Examples
    --------
    >>> RecordFiles("people.csv", encoding="latin-1", delimiter="tab")
    RecordFiles(paths=('people.csv',), encoding='iso8859-1', delimiter='\t')
    """

    paths: tuple[str, ...]
    encoding: str | None
    delimiter: str | None

    def __init__(
        self,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        encoding: str | None = None,
        delimiter: str | None = None,
    ) -> None:
        given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        if not given:
            raise InvalidInput.of("paths", given, "at least one file of records")
        object.__setattr__(self, "paths", tuple(os.fspath(path) for path in given))
        object.__setattr__(self, "encoding", None if encoding is None else _encoding(encoding))
        object.__setattr__(self, "delimiter", None if delimiter is None else _delimiter(delimiter))

    def files(self) -> list[str]:
        """Every file, folders and patterns replaced by what they stand for, each in the order of its names."""
        return [file for path in self.paths for file in _files(path)]


def is_remote(path: str) -> bool:
    """Whether a path names another machine's storage, which only Spark can open.

    >>> is_remote("s3://bucket/people.parquet"), is_remote("file:///data/people.parquet"), is_remote("people.csv")
    (True, False, False)
    """
    return "://" in path and not path.startswith("file:")


def _files(text: str) -> Iterator[str]:
    if is_remote(text):
        raise InvalidInput(
            f"{text} is not a path that this machine can open: read it with Spark and give the DataFrame"
        )
    if text.startswith("file:"):
        text = unquote(urlsplit(text).path)
    if text == STANDARD_INPUT:
        yield text
    elif Path(text).is_dir():
        inside = sorted(str(file) for file in Path(text).rglob("*") if _is_data(file, Path(text)))
        if not inside:
            raise FormatError(f"{text} is a folder without files")
        yield from inside
    elif not Path(text).exists() and glob.has_magic(text):
        matches = sorted(glob.glob(text, recursive=True))  # noqa: PTH207  (an absolute pattern)
        if not matches:
            raise FormatError(f"{text} is a pattern that no file matches")
        for match in matches:
            yield from _files(match) if Path(match).is_dir() else [match]
    else:
        yield text


def _is_data(file: Path, folder: Path) -> bool:
    parts = file.relative_to(folder).parts
    return file.is_file() and not any(part.startswith((".", "_")) for part in parts)


def _encoding(name: str) -> str:
    allowed = "the name of a text encoding, such as latin-1, cp1252 or utf-16"
    try:
        found = codecs.lookup(name)
        "".encode(name)  # refuses what is no text encoding, such as rot13 or base64
    except (LookupError, ValueError, TypeError):
        raise InvalidInput.of("encoding", name, allowed) from None
    return found.name


def _delimiter(text: str) -> str:
    found = _TAB.get(text.lower(), text)
    if len(found) != 1 or not found.isascii() or found in '"\r\n\0':
        raise InvalidInput.of("delimiter", text, "one character, such as ; or tab")
    return found
