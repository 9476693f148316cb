"""An open SQLite store: its one connection and lock, its transactions, and what is known in memory of its file.

Every part of the SQLite store works on one `SqliteHandle`, whose lock makes the parts one after another.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hdr4me.client.lock import locked
from hdr4me.collector.damage import DamageLog
from hdr4me.collector.migrations import migrate
from hdr4me.collector.rounds import find_survey
from hdr4me.collector.sqlite_file import APPLICATION, connect, shape, told
from hdr4me.collector.sqlite_loading import load
from hdr4me.collector.sqlite_state import Live, Memory
from hdr4me.collector.statements import SURVEY_DOCUMENT
from hdr4me.collector.store import StoreBusy, StoreError, StoreUnavailable, UnknownRound
from hdr4me.errors import FormatError, LedgerBusy
from hdr4me.survey import Survey

__all__ = ["SqliteHandle"]

_log = logging.getLogger("hdr4me.collector")


class SqliteHandle:
    """The file of a store, open in this process and in no other.

    Parameters
    ----------
    path
        The file; it is made if there is none.
    steps
        The migrations (see `hdr4me.collector.migrations`).

    Attributes
    ----------
    lock
        Whoever uses the connection or the memory holds this lock, unless a method says otherwise.
    connection
        None when the store is closed.
    """

    def __init__(self, path: str | os.PathLike[str], steps: Sequence[tuple[str, ...]]) -> None:
        self.path = Path(path)
        self.lock = threading.RLock()
        self.damage = DamageLog(str(self.path))
        self.surveys: dict[str, Survey] = {}
        self.memory = Memory()
        self._closing = ExitStack()
        self._loaded = False
        if self.path.is_dir():
            raise FormatError(f"{path} is a directory, expected a store's file")
        try:
            self._closing.enter_context(locked(self.path.with_name(self.path.name + ".lock"), 0.0))
        except LedgerBusy:
            raise StoreBusy(
                f"{path} is open in another process: SQLite has one writer; stop that process, or use PostgreSQL"
            ) from None
        except OSError as error:
            raise StoreUnavailable(f"{path} cannot be opened: {error.strerror}") from error
        try:
            self.connection: sqlite3.Connection | None = connect(self.path)
            self._closing.callback(self.connection.close)
            with told(self.path):
                self.schema_version = _prepare(self.connection, self.path, steps)
            self.ready()
        except BaseException:
            self._closing.close()
            raise

    def usable(self) -> sqlite3.Connection:
        """The connection; StoreUnavailable if the store is closed."""
        if self.connection is None:
            raise StoreUnavailable(f"{self.path} is closed")
        return self.connection

    def ready(self) -> sqlite3.Connection:
        """The connection, with what is known in memory read anew if the memory may be wrong."""
        connection = self.usable()
        if not self._loaded:
            self.damage.clear()
            self.memory = Memory()
            with told(self.path):
                load(connection, self.path, self.memory, self.survey, self.damage.note)
            self._loaded = True
        return connection

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing; on the disk when the block ends."""
        connection = self.ready()
        with told(self.path):
            connection.execute("begin immediate")
            try:
                yield connection
                connection.execute("commit")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("rollback")
                raise

    @contextmanager
    def remembering(self) -> Iterator[None]:
        """Memory follows the file; if that fails half way, the file is read anew before anything else is done."""
        self._loaded = False
        yield
        self._loaded = True

    def live(self, number: int) -> Live:
        """What is known of a round; UnknownRound if there is none."""
        self.ready()
        rounds = self.memory.rounds
        if number not in rounds:
            raise UnknownRound(f"round = {number!r} is not allowed: this store has {len(rounds)} rounds")
        return rounds[number]

    def survey(self, fingerprint: str) -> Survey:
        """The survey with a fingerprint; the caller need not hold the lock."""

        def row() -> tuple[str] | None:
            connection = self.usable()
            with told(self.path):
                found: tuple[str] | None = connection.execute(SURVEY_DOCUMENT, (fingerprint,)).fetchone()
            return found

        with self.lock:
            return find_survey(self.surveys, fingerprint, row)

    def snapshot(self, stack: ExitStack) -> sqlite3.Connection:
        """A reader of the file as the file is now; the reader itself is used without the lock."""
        reader = connect(self.path, readonly=True)
        stack.callback(reader.close)
        with told(self.path):
            reader.execute("begin")
            reader.execute("select count(*) from rounds").fetchone()
        return reader

    def truncate(self) -> None:
        """Empty the write-ahead log, which still holds what was deleted; a reader may keep it for a while."""
        if self.connection is not None:
            with told(self.path):
                self.connection.execute("pragma wal_checkpoint(truncate)")

    def close(self) -> None:
        """Write the log into the file and let go of the file; the caller need not hold the lock."""
        with self.lock:
            if self.connection is None:
                return
            try:
                self.truncate()
            except StoreError as error:  # what is in the log stays in the log, and is read from there
                _log.warning("%s", error)
            self.connection = None
            self._closing.close()


def _prepare(connection: sqlite3.Connection, path: Path, steps: Sequence[tuple[str, ...]]) -> int:
    """Settings and migrations; the version of the schema."""
    version: int = connection.execute("pragma user_version").fetchone()[0]
    application = connection.execute("pragma application_id").fetchone()[0]
    tables = connection.execute("select count(*) from sqlite_master").fetchone()[0]
    if application != APPLICATION and tables:
        raise FormatError(f"{path} is an SQLite file of another program, not a store")
    if not tables:
        shape(connection)
    connection.execute("pragma journal_mode = wal")
    connection.execute("begin immediate")
    try:
        last = migrate(version, steps, connection.execute, str(path))
        if last != version:
            connection.execute(f"pragma application_id = {APPLICATION}")
            connection.execute(f"pragma user_version = {last}")
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise
    return last
