"""Sources of records: paths, folders, patterns and standard input, with text decoded to UTF-8."""

from __future__ import annotations

import codecs
import glob
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from hdr4me.errors import FormatError, InvalidInput

STANDARD_INPUT = "-"  # the name of standard input

_TAB = {"tab": "\t", "\\t": "\t"}


@dataclass(frozen=True, init=False)
class RecordFiles:
    r"""Files of records, and how their text is read.

    A folder means all files in it and in its subfolders, except names that begin with a dot or an underscore. A name
    with `*`, `?` or `[` that is not the name of a file is a pattern. `-` is standard input.

    The encoding of text files is UTF-8 unless it is given or a byte order mark indicates UTF-16. The delimiter of CSV
    files, unless given, is the comma, semicolon, tab or vertical bar that splits the header into the requested columns.

    `decimal` and `thousands` are the separators of numbers that are strings, such as "," and "." for 1.234,5.
    `date_format` is the form of dates and times that are strings, such as "%d.%m.%Y", or several forms with bars in
    between ("%d.%m.%Y|%d.%m.%Y %H:%M"); ISO 8601 is always accepted.
    `sheet` is the sheet of an Excel file; the first one unless given.

    >>> RecordFiles("people.csv", encoding="latin-1", delimiter="tab", decimal=",").delimiter
    '\t'
    """

    paths: tuple[str, ...]
    encoding: str | None
    delimiter: str | None
    decimal: str | None
    thousands: str | None
    date_format: str | None
    sheet: str | None

    def __init__(
        self,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        encoding: str | None = None,
        delimiter: str | None = None,
        decimal: str | None = None,
        thousands: str | None = None,
        date_format: str | None = None,
        sheet: str | None = None,
    ) -> None:
        listed = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        if not listed:
            raise InvalidInput.of("paths", listed, "at least one file of records")
        object.__setattr__(self, "paths", tuple(os.fspath(path) for path in listed))
        object.__setattr__(self, "encoding", None if encoding is None else _encoding(encoding))
        object.__setattr__(self, "delimiter", None if delimiter is None else _delimiter(delimiter))
        for name, mark in (("decimal", decimal), ("thousands", thousands)):
            if mark is not None and (len(mark) != 1 or mark.isalnum() or mark in "+-"):
                raise InvalidInput.of(
                    name, mark, "one character that is neither a letter, a digit nor a sign"
                )
            object.__setattr__(self, name, mark)
        if (decimal or ".") == thousands:
            raise InvalidInput(f"decimal and thousands must differ: both are {thousands!r}")
        object.__setattr__(self, "date_format", None if date_format is None else _date_format(date_format))
        object.__setattr__(self, "sheet", sheet)

    def files(self) -> list[str]:
        """All files, with folders and patterns expanded in alphabetical order."""
        return [file for path in self.paths for file in _files(path)]


def is_remote(path: str) -> bool:
    """Whether a path is remote storage, which only Spark can open."""
    return "://" in path and not path.startswith("file:")


def _files(text: str) -> Iterator[str]:
    if is_remote(text):
        raise InvalidInput(
            f"{text} is remote and cannot be opened here: read it with Spark and pass the DataFrame"
        )
    if text.startswith("file:"):
        text = unquote(urlsplit(text).path)
    if text == STANDARD_INPUT:
        yield text
    elif Path(text).is_dir():
        yield from map(str, files_in(Path(text)))
    elif not Path(text).exists() and glob.has_magic(text):
        matches = sorted(glob.glob(text, recursive=True))  # noqa: PTH207  (an absolute pattern)
        if not matches:
            raise FormatError(f"no file matches the pattern {text}")
        for match in matches:
            yield from _files(match) if Path(match).is_dir() else [match]
    else:
        yield text


def files_in(folder: Path) -> list[Path]:
    """The files in a folder and its subfolders, except names that begin with a dot or an underscore."""
    found = [
        file
        for file in folder.rglob("*")
        if not file.is_dir() and not any(x.startswith((".", "_")) for x in file.relative_to(folder).parts)
    ]
    if not found:
        raise FormatError(f"the folder {folder} contains no files")
    return sorted(found)


def _encoding(name: str) -> str:
    allowed = "the name of a text encoding, such as latin-1, cp1252 or utf-16"
    try:
        found = codecs.lookup(name)
        "".encode(name)  # rejects codecs that are not text encodings, such as rot13 or base64
    except (LookupError, ValueError, TypeError):
        raise InvalidInput.of("encoding", name, allowed) from None
    return found.name


def _delimiter(text: str) -> str:
    found = _TAB.get(text.lower(), text)
    if len(found) != 1 or not found.isascii() or found in '"\r\n\0':
        raise InvalidInput.of("delimiter", text, "one character, such as ; or tab")
    return found


def _date_format(text: str) -> str:
    example = datetime(2013, 1, 31, 17, 30)
    try:
        for form in text.split("|"):
            if "%" not in form or datetime.strptime(example.strftime(form), form).year not in (1900, 2013):
                raise ValueError
    except ValueError:
        allowed = "a form with the codes of Python's strptime, such as %d.%m.%Y, or several with | between"
        raise InvalidInput.of("date_format", text, allowed) from None
    return text


# -- text: decompressed, decoded, without a byte order mark ------------------------------------------------------

BLOCK = 1 << 24  # A record, and the header, must fit into a block of this many bytes

_COMPRESSED: dict[bytes, Any] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
_MARKS = {
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}


@dataclass(frozen=True)
class Text:
    """An open file of text: its first block of UTF-8 bytes, `head`, and all of it as a `stream`."""

    path: str
    name: str
    encoding: str | None
    head: bytes
    stream: io.BufferedReader


def wrong_encoding(name: str, where: str, encoding: str = "UTF-8") -> FormatError:
    """The error for bytes that are invalid in the encoding."""
    return FormatError(
        f"{name}, {where}: not valid {encoding} text; specify the encoding, such as --encoding latin-1 or cp1252"
    )


@contextmanager
def open_text(path: str, encoding: str | None = None) -> Iterator[Text]:
    """Open a text file or standard input, which may be compressed (gzip, zstd, bzip2)."""
    name = "standard input" if path == STANDARD_INPUT else path
    with ExitStack() as stack:
        piped = path == STANDARD_INPUT
        stream: Any = sys.stdin.buffer if piped else stack.enter_context(Path(path).open("rb"))
        start, stream = _peek(stream, 4)
        for magic, method in _COMPRESSED.items():
            if start.startswith(magic):
                inflated = pa.CompressedInputStream(pa.PythonFile(stream, "r"), method)
                start, stream = _peek(_stream(_rest(inflated)), 4)
        if not start:
            raise FormatError(f"{name} is empty")
        if start == b"PAR1" or start == b"ARRO":
            raise FormatError(
                f"{name} is Parquet or Arrow inside compression or on standard input: save it as an uncompressed file"
            )
        used = encoding or next((kind for kind, marks in _MARKS.items() if start.startswith(marks)), "utf-8")
        if used not in ("utf-8", "utf-8-sig"):
            stream = _stream(_decoded(name, stream, used), BLOCK)
        head = stream.read(BLOCK).removeprefix(codecs.BOM_UTF8)
        if not head.strip():
            raise FormatError(f"{name} is empty")
        yield Text(path, name, encoding, head, _stream(chain([head], _rest(stream)), BLOCK))


def _peek(stream: Any, size: int) -> tuple[bytes, io.BufferedReader]:
    """The first `size` bytes of a buffered stream, and a stream that begins with them."""
    start = stream.read(size)
    return start, _stream(chain([start], _rest(stream)))


def _rest(stream: Any) -> Iterator[bytes]:
    return iter(lambda: stream.read(1 << 20), b"")


def _decoded(name: str, stream: Any, encoding: str) -> Iterator[bytes]:
    """A stream decoded from another encoding to UTF-8; invalid bytes are an error with the line number."""
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    n_lines = 0
    for raw in chain(_rest(stream), [b""]):
        try:
            text = decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(encoding, "replace")
            line = 1 + n_lines + before.count("\n")
            raise wrong_encoding(name, f"line {line:,}", encoding) from None
        n_lines += text.count("\n")
        yield text.encode("utf-8")


def _stream(chunks: Iterator[bytes], size: int = io.DEFAULT_BUFFER_SIZE) -> io.BufferedReader:
    """Chunks of bytes as a buffered stream."""
    return io.BufferedReader(_Chunks(chunks), size)


class _Chunks(io.RawIOBase):
    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._waiting = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not len(self._waiting):
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._waiting = memoryview(chunk)
        part = self._waiting[: len(buffer)]
        self._waiting = self._waiting[len(part) :]
        buffer[: len(part)] = part
        return len(part)
