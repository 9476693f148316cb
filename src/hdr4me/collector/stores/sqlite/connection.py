"""An SQLite file of the collector: its schema, connections and transactions, and SQLite's errors as the store's."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hdr4me.collector.errors import StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from hdr4me.collector.stores.protocol import migrate
from hdr4me.errors import FormatError

APPLICATION = 0x68447234  # in the header of the file: it is a store of this program

SCHEMA: list[tuple[str, ...]] = [
    (
        "create table surveys (fingerprint text primary key, document text not null) without rowid",
        """create table rounds (number integer primary key, fingerprint text not null, state text not null,
           opened integer not null, closed integer)""",
        # Without rowid: the number is a part of the row, which the checksum covers, and VACUUM cannot change it.
        """create table blocks (number integer primary key, round integer not null, hour integer not null,
           source integer not null, n integer not null, ids blob not null, sizes blob not null,
           data blob not null, checksum blob not null) without rowid""",
        "create table deleted (round integer, id blob, primary key (round, id)) without rowid",
        """create table rejected (round integer, reason text, hour integer, count integer not null,
           primary key (round, reason, hour)) without rowid""",
        """create table quarantine (round integer, hour integer, source integer,
           primary key (round, hour, source)) without rowid""",
        """create table tokens (number integer primary key autoincrement, sha256 blob not null unique,
           scope text not null, label text not null)""",
        """create table tallies (round integer, kind text, content blob not null,
           primary key (round, kind)) without rowid""",
    )
]

_PRAGMAS = (
    "synchronous = full",  # a commit is on the disk before it returns
    "secure_delete = on",  # deleted rows are overwritten
    "busy_timeout = 10000",
    "journal_size_limit = 67108864",
    "cache_size = -16384",
    "wal_autocheckpoint = 4096",
)
_PAGE = 1024  # bytes: a commit writes whole pages, and a batch of 64 small reports is less than half of 4 KiB


@contextmanager
def store_errors(path: os.PathLike[str] | str) -> Iterator[None]:
    """Raise SQLite's errors as the store's."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            raise StoreFull(f"{path}: the disk is full; nothing of this batch was stored") from error
        if code == sqlite3.SQLITE_READONLY:
            raise StoreReadOnly(f"{path} cannot be written: it is read-only") from error
        if code == sqlite3.SQLITE_NOTADB:
            raise FormatError(f"{path} is not a store: it is not an SQLite file") from error
        if code == sqlite3.SQLITE_CORRUPT:
            raise StoreError(f"{path} is damaged: {error}; restore it from a backup") from error
        raise StoreUnavailable(f"{path}: {error}") from error


def connect(path: Path, *, readonly: bool = False) -> sqlite3.Connection:
    """A connection without automatic transactions, for use by one thread at a time."""
    uri = f"{path.absolute().as_uri()}?mode={'ro' if readonly else 'rwc'}"
    with store_errors(path):
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        for pragma in _PRAGMAS:
            connection.execute(f"pragma {pragma}")
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection, path: Path) -> Iterator[sqlite3.Connection]:
    """All or nothing; on the disk when the block ends."""
    with store_errors(path):
        connection.execute("begin immediate")
        try:
            yield connection
            connection.execute("commit")
        except BaseException:
            if connection.in_transaction:
                connection.execute("rollback")
            raise


def pragma(connection: sqlite3.Connection, name: str) -> int:
    """An integer setting of the file."""
    return int(connection.execute(f"pragma {name}").fetchone()[0])


def prepare(connection: sqlite3.Connection, path: Path) -> int:
    """Create or migrate the tables; the version of the schema."""
    version = pragma(connection, "user_version")
    tables = connection.execute("select count(*) from sqlite_master").fetchone()[0]
    if tables and pragma(connection, "application_id") != APPLICATION:
        raise FormatError(f"{path} is an SQLite file of another program, not a store")
    if not tables:
        connection.execute(f"pragma page_size = {_PAGE}")
    connection.execute("pragma journal_mode = wal")
    with transaction(connection, path):
        last = migrate(version, SCHEMA, connection.execute, str(path))
        if last != version:
            connection.execute(f"pragma application_id = {APPLICATION}")
            connection.execute(f"pragma user_version = {last}")
    return last


def check_kind(connection: sqlite3.Connection, path: Path) -> None:
    """Raise an error unless the file is a store that this program can read."""
    if pragma(connection, "application_id") != APPLICATION:
        raise FormatError(f"{path} is not a store of this program")
    migrate(max(pragma(connection, "user_version"), len(SCHEMA)), SCHEMA, connection.execute, str(path))
