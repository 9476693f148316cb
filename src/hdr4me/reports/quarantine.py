"""Where bad reports go: a file of JSON lines with the reason, the place and the content; standard library only."""

from __future__ import annotations

import json
import os
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import IO

from hdr4me.atomic import replacing
from hdr4me.reports.report import Rejected

__all__ = ["Quarantine"]


class Quarantine(AbstractContextManager["Quarantine"]):
    """A handler for rejected reports that writes them to `path`; without any, no file is made.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from hdr4me.reports import Reason
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Quarantine(Path(folder, "bad.jsonl")) as quarantine:
    ...         quarantine(Rejected(Reason.CODE, "row 7", "0000ff"))
    ...     Path(folder, "bad.jsonl").read_text()
    '{"reason": "code out of support", "where": "row 7", "content": "0000ff"}\\n'
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self.n_written = 0
        self._stack = ExitStack()
        self._file: IO[str] | None = None

    def __call__(self, rejected: Rejected) -> None:
        """Write one down."""
        if self._file is None:
            temporary = self._stack.enter_context(replacing(self.path))
            self._file = self._stack.enter_context(temporary.open("w", encoding="utf-8"))
        line = {"reason": rejected.reason.text, "where": rejected.where, "content": rejected.content}
        self._file.write(json.dumps(line) + "\n")
        self.n_written += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)
        self._file = None
