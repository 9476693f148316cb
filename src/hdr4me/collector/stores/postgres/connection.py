"""A PostgreSQL database of the collector: its schema, a pool of connections, and the driver's errors as the store's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors
from psycopg_pool import ConnectionPool

from hdr4me.collector.errors import StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from hdr4me.collector.stores.protocol import migrate
from hdr4me.errors import InvalidInput

Connection = psycopg.Connection[tuple[Any, ...]]

SCHEMA: list[tuple[str, ...]] = [
    (
        "create table surveys (fingerprint text primary key, document text not null)",
        """create table rounds (number integer primary key, fingerprint text not null, state text not null,
           opened date not null, closed date)""",
        # A partition for each round: dropping it deletes the reports of the round at once.
        """create table blocks (number bigint not null, round integer not null, hour integer not null,
           source integer not null, n integer not null, ids bytea not null, sizes bytea not null,
           data bytea not null, checksum bytea not null, primary key (round, number)) partition by list (round)""",
        """create table ids (round integer not null, id uuid not null, primary key (round, id))
           partition by list (round)""",
        "create table pending (round integer, number bigint, n integer not null, primary key (round, number))",
        """create table rejected (round integer, reason text, hour integer, count bigint not null,
           primary key (round, reason, hour))""",
        "create table quarantine (round integer, hour integer, source integer, primary key (round, hour, source))",
        """create table tokens (number integer generated always as identity primary key,
           sha256 bytea not null unique, scope text not null, label text not null)""",
        "create table tallies (round integer, kind text, content bytea not null, primary key (round, kind))",
    )
]

_MIGRATING = 0x68447234
_CONNECTIONS = 3  # the writer and two readers of a worker
_WAIT = 2.0  # seconds to wait for a connection while the database is down


def _configure(connection: Connection) -> None:
    connection.execute("set search_path to hdr4me")
    # A commit is on the disk before it returns, whatever the default of the database is.
    connection.execute(
        "select set_config('synchronous_commit', 'on', false) "
        "where current_setting('synchronous_commit') in ('off', 'local', 'remote_write')"
    )
    connection.commit()


class Database:
    """One database; any thread may use it. The tables are created or migrated when it is opened."""

    def __init__(self, url: str) -> None:
        self.name = re.sub(r"//[^/@]*@", "//", url).partition("?")[0]  # without user and password
        self._url, self._options = url, {"connect_timeout": 5, "application_name": "hdr4me"}
        with self._errors(), self._connected() as connection:
            self.schema_version = self._prepare(connection)
            connection.commit()
        self._pool = ConnectionPool(
            url,
            kwargs=self._options,
            configure=_configure,
            check=ConnectionPool.check_connection,
            min_size=1,
            max_size=_CONNECTIONS,
            timeout=_WAIT,
            reconnect_timeout=1.0,
            open=True,
        )

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction that is committed when the block ends, and rolled back if it raises.

        The pool checks a connection before it is used. If the commit itself fails, its outcome is unknown and the
        error is raised.
        """
        with self._errors(), self._pool.connection() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A read-only view of the database as of the first statement.

        It has its own connection: a slow download must not hold a connection that the writer waits for.
        """
        with self._errors(), self._connected() as connection:
            connection.execute("set transaction isolation level repeatable read, read only")
            yield connection

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        connection: Connection = psycopg.connect(self._url, **self._options)  # type: ignore[arg-type]
        try:
            _configure(connection)
            yield connection
        finally:
            connection.close()

    def _prepare(self, connection: Connection) -> int:
        """Create or migrate the tables, one process at a time; the version of the schema."""
        connection.execute("select pg_advisory_xact_lock(%s)", (_MIGRATING,))
        if connection.execute("show fsync").fetchone() == ("off",):
            raise InvalidInput(f"{self.name} runs with fsync = off: commits may be lost; set fsync = on")
        connection.execute("create schema if not exists hdr4me")
        connection.execute("create table if not exists schema_version (version integer not null)")
        row = connection.execute("select max(version) from schema_version").fetchone()
        version = (row and row[0]) or 0
        last = migrate(version, SCHEMA, connection.execute, self.name)
        if last != version:
            connection.execute("insert into schema_version values (%s)", (last,))
        return last

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise the driver's errors as the store's."""
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
