"""Connections to PostgreSQL: kept for the next use, replaced when the database was away, errors in plain words."""

from __future__ import annotations

import re
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import numpy as np
import psycopg
from psycopg import errors
from psycopg.adapt import Dumper
from psycopg.pq import Format

from hdr4me.collector.migrations import POSTGRES, migrate
from hdr4me.collector.store import StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from hdr4me.errors import InvalidInput

__all__ = ["Connection", "Ids", "Link"]

Connection = psycopg.Connection[tuple[Any, ...]]
T = TypeVar("T")

_UUID, _UUIDS = 2950, 2951
"""PostgreSQL's numbers of the types uuid and uuid[]."""

_MIGRATING = 0x68447234
_IDLE = 4
"""Connections that are kept open between uses."""


class Ids:
    """Many ids as one binary parameter of type uuid[]."""

    def __init__(self, ids: Sequence[bytes]) -> None:
        items = np.empty(len(ids), [("size", ">i4"), ("id", "V16")])
        items["size"] = 16
        items["id"] = np.frombuffer(b"".join(ids), "V16")
        self.data = struct.pack(">5i", 1, 0, _UUID, len(ids), 1) + items.tobytes()


class _IdsDumper(Dumper):
    oid = _UUIDS
    format = Format.BINARY

    def dump(self, obj: Ids) -> bytes:
        return obj.data


class Link:
    """The way to one database; any thread may use it."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.name = re.sub(r"//[^/@]*@", "//", url).partition("?")[0]  # without user and password
        self._lock = threading.Lock()
        self._idle: list[Connection] | None = []

    def run(self, work: Callable[[Connection], T]) -> T:
        """What `work` returns, in a transaction that is committed when it returns.

        A kept connection may have died with the database: if `work` finds that out, nothing was committed, and it
        runs once more on a new connection. If the commit itself fails, its outcome is unknown and the error is told.
        """
        with self._told():
            connection, kept = self._take()
            try:
                result = self._attempt(connection, work)
            except (psycopg.OperationalError, psycopg.InterfaceError):
                if not kept or not connection.closed:
                    raise
                self._drop()
                connection = self._connect()
                result = self._attempt(connection, work)
            try:
                connection.commit()
            except BaseException:
                connection.close()
                raise
            self._give(connection)
            return result

    def _attempt(self, connection: Connection, work: Callable[[Connection], T]) -> T:
        """What `work` returns, not yet committed; if it raises, nothing is."""
        try:
            return work(connection)
        except BaseException:
            with suppress(psycopg.Error):
                connection.rollback()
            self._give(connection)
            raise

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees the database as it was at its first statement."""
        with self._told():
            connection = self._connect()
            try:
                connection.execute("set transaction isolation level repeatable read, read only")
                yield connection
            finally:
                connection.close()

    def prepare(self) -> int:
        """Make or migrate the tables, one process at a time; the version of the schema."""

        def work(connection: Connection) -> int:
            connection.execute("select pg_advisory_xact_lock(%s)", (_MIGRATING,))
            if connection.execute("show fsync").fetchone() == ("off",):
                raise InvalidInput(
                    f"{self.name} runs with fsync = off: what it commits may be lost; set fsync = on"
                )
            connection.execute("create schema if not exists hdr4me")
            connection.execute("create table if not exists schema_version (version integer not null)")
            row = connection.execute("select max(version) from schema_version").fetchone()
            version = (row and row[0]) or 0
            last = migrate(version, POSTGRES, connection.execute, self.name)
            if last != version:
                connection.execute("insert into schema_version values (%s)", (last,))
            return last

        return self.run(work)

    def close(self) -> None:
        """Close what is kept, and take no more."""
        self._drop()
        with self._lock:
            self._idle = None

    def _take(self) -> tuple[Connection, bool]:
        with self._lock:
            if self._idle is None:
                raise StoreUnavailable(f"{self.name} is closed")
            if self._idle:
                return self._idle.pop(), True
        return self._connect(), False

    def _give(self, connection: Connection) -> None:
        with self._lock:
            if self._idle is not None and len(self._idle) < _IDLE and not connection.closed:
                self._idle.append(connection)
                return
        connection.close()

    def _drop(self) -> None:
        with self._lock:
            dropped, self._idle = self._idle or [], [] if self._idle is not None else None
        for connection in dropped:
            with suppress(psycopg.Error):
                connection.close()

    def _connect(self) -> Connection:
        connection = psycopg.connect(self._url, connect_timeout=5, application_name="hdr4me")
        try:
            connection.adapters.register_dumper(Ids, _IdsDumper)
            connection.execute("set search_path to hdr4me")
            # A commit is on the disk before it returns, whatever the database's default is.
            connection.execute(
                "select set_config('synchronous_commit', 'on', false) "
                "where current_setting('synchronous_commit') in ('off', 'local', 'remote_write')"
            )
            connection.commit()
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _told(self) -> Iterator[None]:
        """The driver's errors as the store's."""
        try:
            yield
        except errors.DiskFull as error:
            raise StoreFull(f"{self.name}: the disk is full; nothing of this batch was stored") from error
        except errors.ReadOnlySqlTransaction as error:
            raise StoreReadOnly(f"{self.name} cannot be written: it is read-only") from error
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            raise StoreUnavailable(f"{self.name} does not answer: {_first_line(error)}") from error
        except psycopg.Error as error:
            raise StoreError(f"{self.name}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
