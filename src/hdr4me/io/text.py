"""A file of text as a stream of UTF-8 bytes: decompressed, decoded, without a byte order mark."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Literal

import pyarrow as pa

from hdr4me.errors import FormatError
from hdr4me.io.origin import STANDARD_INPUT

__all__ = ["BLOCK", "Text", "open_text", "shown", "wrong_encoding"]

BLOCK = 1 << 24
"""A record, and the header, must fit into a block of this many bytes."""

_COMPRESSED: dict[bytes, Literal["gzip", "zstd", "bz2"]] = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
}
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class Text:
    """An open file of text: its first block of UTF-8 bytes, `head`, and all of it as a `stream`."""

    def __init__(self, path: str, encoding: str | None, head: bytes, stream: io.BufferedReader) -> None:
        self.path = path
        self.encoding = encoding
        self.name = shown(path)
        self.head = head
        self.stream = stream


def shown(path: str) -> str:
    """How a message calls a file.

    >>> shown("-"), shown("people.csv")
    ('standard input', 'people.csv')
    """
    return "standard input" if path == STANDARD_INPUT else path


def wrong_encoding(name: str, where: str, encoding: str = "UTF-8") -> FormatError:
    """The error for bytes that are not text in the encoding."""
    return FormatError(
        f"{name}, {where}: not text in {encoding}; give the file's encoding, such as --encoding latin-1 or cp1252"
    )


@contextmanager
def open_text(path: str, encoding: str | None = None) -> Iterator[Text]:
    """Open a file of text, or standard input, whatever it is compressed with (gzip, zstd, bzip2)."""
    name = shown(path)
    with ExitStack() as stack:
        raw: IO[bytes] = (
            sys.stdin.buffer if path == STANDARD_INPUT else stack.enter_context(Path(path).open("rb"))
        )
        start = _read(raw, 4)
        whole: Any = io.BufferedReader(_Joined(start, raw))
        for magic, method in _COMPRESSED.items():
            if start.startswith(magic):
                whole = pa.CompressedInputStream(pa.PythonFile(whole, "r"), method)
                start = _read(whole, 4)
                whole = io.BufferedReader(_Joined(start, whole))
        if not start:
            raise FormatError(f"{name} is empty")
        if start == b"PAR1" or start == b"ARRO":
            raise FormatError(
                f"{name} holds Parquet or Arrow behind compression or standard input: give it as a plain file"
            )
        used = encoding or next((kind for bom, kind in _MARKS if start.startswith(bom)), "utf-8")
        if used not in ("utf-8", "utf-8-sig"):
            whole = io.BufferedReader(_Decoded(name, whole, used), BLOCK)
        head = _read(whole, BLOCK).removeprefix(codecs.BOM_UTF8)
        if not head.strip():
            raise FormatError(f"{name} is empty")
        yield Text(path, encoding, head, io.BufferedReader(_Joined(head, whole), BLOCK))


def _read(stream: Any, size: int) -> bytes:
    """`size` bytes, or fewer at the end of the stream."""
    parts: list[bytes] = []
    while size and (part := stream.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class _Joined(io.RawIOBase):
    """Bytes that were read already, followed by the rest of a stream."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head = memoryview(head)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if len(self._head):
            part: Any = self._head[: len(buffer)]
            self._head = self._head[len(part) :]
        else:
            part = self._rest.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)


class _Decoded(io.RawIOBase):
    """A stream of another encoding as UTF-8; bytes that the encoding does not have stop it with the row's number."""

    def __init__(self, name: str, stream: Any, encoding: str) -> None:
        self._name = name
        self._stream = stream
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)("strict")
        self._waiting = memoryview(b"")
        self._lines = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not len(self._waiting):
            raw = self._stream.read(1 << 20)
            try:
                text = self._decoder.decode(raw, final=not raw)
            except UnicodeDecodeError as error:
                before = error.object[: error.start].decode(self._encoding, "replace")
                line = 1 + self._lines + before.count("\n")
                raise wrong_encoding(self._name, f"line {line:,}", self._encoding) from None
            self._lines += text.count("\n")
            self._waiting = memoryview(text.encode("utf-8"))
            if not raw and not len(self._waiting):
                return 0
        part = self._waiting[: len(buffer)]
        self._waiting = self._waiting[len(part) :]
        buffer[: len(part)] = part
        return len(part)
