"""The collector's log: one JSON object to a line, without addresses, agents, ids, tokens or contents of reports."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from dataclasses import dataclass
from typing import IO, Any


@dataclass(frozen=True)
class Log:
    """Writes events; times are truncated to the minute, so that no line reveals when one report arrived."""

    file: IO[str] | None = None

    def event(self, event: str, **fields: Any) -> None:
        """Write one line."""
        line = {"time": time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime()), "event": event, **fields}
        print(json.dumps(line, default=str), file=self.file or sys.stderr, flush=True)

    def failure(self, event: str, error: BaseException, **fields: Any) -> None:
        """Write the type of an error and where it was raised, never its message, which may quote a report."""
        frames = traceback.extract_tb(error.__traceback__)[-3:]
        where = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in frames]
        self.event(event, error=type(error).__name__, where=where, **fields)


class _ToLog(logging.Handler):
    """The messages of the HTTP server as events; of exceptions only the type and the place."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            self._log.failure("unforeseen error in a request", error)
        elif record.levelno >= logging.ERROR:
            self._log.event("server error", said=str(record.msg)[:200])


def quiet_server(log: Log) -> None:
    """Write the errors of the HTTP server to `log`, and its access log nowhere, since it holds addresses.

    The warnings of the connection pool are dropped: the store reports the same failures.
    """
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi", "psycopg.pool"):
        logger = logging.getLogger(name)
        logger.handlers = [_ToLog(log)] if name == "uvicorn.error" else []
        logger.propagate = False
        logger.setLevel(logging.WARNING)
