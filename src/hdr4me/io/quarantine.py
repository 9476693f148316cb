"""Where bad reports go: a file of JSON lines with the reason, the place and the content; standard library only."""

from __future__ import annotations

import json
import os
from collections import Counter
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import IO

from hdr4me.atomic import replacing
from hdr4me.io.report import Rejected

QUARANTINE_BYTES = 1 << 26
"""A quarantine is no larger, however many bad reports there are: beyond it they are only counted."""


class Quarantine(AbstractContextManager["Quarantine"]):
    """A handler for rejected reports that writes them to `path`; without any, no file is made.

    Beyond `limit_bytes` reports are only counted: `n_left_out` says how many, and so does the file in a last line for
    each reason.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from hdr4me.io import Reason
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Quarantine(Path(folder, "bad.jsonl")) as quarantine:
    ...         quarantine(Rejected(Reason.CODE, "row 7", "0000ff"))
    ...     Path(folder, "bad.jsonl").read_text()
    '{"reason": "code out of support", "where": "row 7", "content": "0000ff"}\\n'
    """

    def __init__(self, path: str | os.PathLike[str], *, limit_bytes: int = QUARANTINE_BYTES) -> None:
        self.path = path
        self.n_written = 0
        self.left_out: Counter[str] = Counter()
        self._room = limit_bytes
        self._stack = ExitStack()
        self._file: IO[str] | None = None

    @property
    def n_left_out(self) -> int:
        """How many rejected reports are only counted."""
        return sum(self.left_out.values())

    def __call__(self, rejected: Rejected) -> None:
        """Write one down, or count it if the limit is reached."""
        line = _line(rejected.reason.text, rejected.where, rejected.content) if self._room >= 0 else ""
        self._room -= len(line)
        if self._room < 0:
            self.left_out[rejected.reason.text] += 1
            return
        self._open().write(line)
        self.n_written += 1

    def _open(self) -> IO[str]:
        if self._file is None:
            temporary = self._stack.enter_context(replacing(self.path))
            self._file = self._stack.enter_context(temporary.open("w", encoding="utf-8"))
        return self._file

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self.left_out:
            self._open().writelines(_line(*line) for line in left_out_lines(self.left_out))
        self._stack.__exit__(kind, error, trace)
        self._file = None


def left_out_lines(left_out: Counter[str]) -> list[tuple[str, str, str]]:
    """What a quarantine says of reports beyond its limit: reason, place and content of one line for each reason.

    >>> left_out_lines(Counter({"missing": 1200}))
    [('missing', "beyond the quarantine's limit", '1200 reports')]
    """
    return [
        (reason, "beyond the quarantine's limit", f"{n} reports") for reason, n in sorted(left_out.items())
    ]


def _line(reason: str, where: str, content: str) -> str:
    return json.dumps({"reason": reason, "where": where, "content": content}) + "\n"
