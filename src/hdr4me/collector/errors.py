"""The errors of the collector (refused requests, failures of a store, damage found in it), and its log."""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import IO, Any

from hdr4me.errors import HDR4MEError, InvalidInput, printable

_LONGEST = 500


class Refusal(HDR4MEError):
    """A request that is not accepted; `close` ends the connection, because the rest of the request is not read."""

    def __init__(
        self, status: int, sentence: str, *, retry_after: int | None = None, close: bool = False
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers: list[tuple[bytes, bytes]] = []
        if retry_after is not None:
            self.headers.append((b"retry-after", str(max(1, retry_after)).encode()))
        if status == HTTPStatus.UNAUTHORIZED:
            self.headers.append((b"www-authenticate", b"Bearer"))
        if close:
            self.headers.append((b"connection", b"close"))


def error_body(sentence: str) -> bytes:
    """`{"error": sentence}`, without terminal control characters."""
    return json.dumps({"error": printable(sentence)[:_LONGEST]}).encode()


class StoreError(HDR4MEError):
    """The store cannot complete the request; no acknowledged report is lost."""

    # The status, the sentence and the seconds to wait of the answer to the request.
    answer = (503, "the store does not answer: nothing was changed, try again", 2)


class StoreUnavailable(StoreError):
    """The database does not answer, or a write failed: nothing was acknowledged, and the caller may try again."""


class StoreFull(StoreUnavailable):
    """There is no space left for a write."""

    answer = (507, "the disk is full: nothing was changed", 60)


class StoreReadOnly(StoreUnavailable):
    """The database is read-only."""

    answer = (507, "the store is read-only: nothing was changed", 60)


class StoreBusy(StoreError):
    """Another process has the store open for writing."""


class SchemaTooNew(StoreError):
    """The store was written by a newer version of this program."""


class Finalized(StoreError):
    """The reports of the round are deleted: only its tally is kept."""


class UnknownRound(InvalidInput):
    """There is no round with this number."""

    def __init__(self, number: object) -> None:
        super().__init__(f"round = {number!r} is not allowed: there is no such round")


@dataclass(frozen=True)
class Damage:
    """A damaged block: its number, the round that it claims (None: unreadable), and the reason."""

    block: int | None
    round: int | None
    reason: str

    def __str__(self) -> str:
        if self.block is None:
            return self.reason
        round_ = "an unreadable round" if self.round is None else f"round {self.round}"
        return f"block {self.block} of {round_}: {self.reason}"


OnDamage = Callable[[Damage], None]


class Damaged(StoreError):
    """Stored blocks are damaged (`damage` lists them); the other blocks are readable."""

    def __init__(self, where: str, damage: Sequence[Damage]) -> None:
        self.damage = tuple(damage)
        shown = "; ".join(map(str, self.damage[:5]))
        more = f"; and {len(self.damage) - 5} more" if len(self.damage) > 5 else ""
        super().__init__(
            f"{where} is damaged: {shown}{more}. Restore a backup to recover them; the other blocks are intact"
        )


@dataclass(frozen=True)
class Log:
    """Writes events; times are truncated to the minute, so that no line reveals when a report arrived."""

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
    """Writes messages of the HTTP server as events; for an exception only its type and location."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            self._log.failure("unexpected error in a request", error)
        elif record.levelno >= logging.ERROR:
            self._log.event("server error", said=str(record.msg)[:200])


def quiet_server(log: Log) -> None:
    """Write the errors of the HTTP server to `log`; disable its access log, which contains addresses."""
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi", "psycopg.pool"):
        logger = logging.getLogger(name)
        logger.handlers = [_ToLog(log)] if name == "uvicorn.error" else []
        logger.propagate = False
        logger.setLevel(logging.WARNING)
