"""The contents of a store in one form, whatever the database: rows of small tables, and blocks."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

from hdr4me.collector import postgres_rows
from hdr4me.collector.blocks import Block
from hdr4me.collector.ids import IdSet
from hdr4me.collector.migrations import SQLITE, migrate
from hdr4me.collector.postgres_link import Connection, Ids
from hdr4me.collector.sqlite_file import APPLICATION, connect, insert_block, shape

__all__ = ["TABLES", "digest", "from_postgres", "into_postgres", "into_sqlite", "rows_in"]

TABLES = {
    "surveys": "fingerprint, document",
    "rounds": "number, fingerprint, state, opened, closed",
    "deleted": "round, id",
    "rejected": "round, reason, hour, count",
    "quarantine": "round, hour, source",
    "tokens": "number, sha256, scope, label",
    "tallies": "round, kind, content",
}
"""Every table but the blocks, with its columns; the SQLite store's own."""

Rows = list[tuple[Any, ...]]
Tables = dict[str, Rows]

_LAST_TOKEN = "last token"
"""Beside the tables: one row with the number of the latest token, which is never given again."""


def digest(rows: Rows) -> str:
    """SHA-256 of a table, whatever the order of its rows."""
    total = hashlib.sha256()
    for row in sorted(rows, key=repr):
        total.update(repr(row).encode())
        total.update(b"\n")
    return total.hexdigest()


# -- SQLite ----------------------------------------------------------------------------------------------------


def rows_in(connection: sqlite3.Connection) -> Tables:
    """The small tables of an SQLite store."""
    found = {
        name: connection.execute(f"select {columns} from {name}").fetchall()
        for name, columns in TABLES.items()
    }
    found[_LAST_TOKEN] = connection.execute(
        "select seq from sqlite_sequence where name = 'tokens'"
    ).fetchall()
    return found


def into_sqlite(path: Path, tables: Tables, blocks: Iterable[Block]) -> None:
    """A new SQLite store with these contents."""
    connection = connect(path)
    try:
        shape(connection)
        connection.execute("begin")
        version = migrate(0, SQLITE, connection.execute, str(path))
        connection.execute(f"pragma application_id = {APPLICATION}")
        connection.execute(f"pragma user_version = {version}")
        for name, columns in TABLES.items():
            marks = ", ".join("?" * len(columns.split(",")))
            connection.executemany(f"insert into {name} ({columns}) values ({marks})", tables[name])
        for (last,) in tables[_LAST_TOKEN]:
            connection.execute("delete from sqlite_sequence where name = 'tokens'")
            connection.execute("insert into sqlite_sequence values ('tokens', ?)", (last,))
        for block in blocks:
            insert_block(connection, block)
        connection.execute("commit")
    finally:
        connection.close()


# -- PostgreSQL ------------------------------------------------------------------------------------------------


def from_postgres(connection: Connection) -> Tables:
    """The small tables of a PostgreSQL store, as the SQLite store would have them."""
    found: Tables = {}
    for name, columns in TABLES.items():
        if name != "deleted":
            where = " where kind <> 'running'" if name == "tallies" else ""
            rows = connection.execute(f"select {columns} from {name}{where}", binary=True).fetchall()
            found[name] = [tuple(_plain(value) for value in row) for row in rows]
    found["deleted"] = [
        (number, id)
        for number, _, state, _, _ in found["rounds"]
        if state != "sealed"
        for id in _deleted(connection, number)
    ]
    row = connection.execute(
        "select last_value, is_called from tokens_number_seq",
    ).fetchone()
    found[_LAST_TOKEN] = [(row[0],)] if row and row[1] else []
    return found


def _plain(value: Any) -> Any:
    return (
        value.toordinal()
        if isinstance(value, date)
        else bytes(value)
        if isinstance(value, memoryview)
        else value
    )


def _deleted(connection: Connection, round: int) -> Iterator[bytes]:
    """Ids that are known and in no block."""
    row = connection.execute(
        "select (select count(*) from ids where round = %s), "
        "(select coalesce(sum(n), 0)::bigint from blocks where round = %s)",
        (round, round),
    ).fetchone()
    if row is None or row[0] == row[1]:
        return
    stored = IdSet()
    for (ids,) in connection.execute("select ids from blocks where round = %s", (round,), binary=True):
        stored.add_bytes(ids)
    with connection.cursor(name="ids", binary=True) as cursor:
        cursor.itersize = 10_000
        cursor.execute("select uuid_send(id) from ids where round = %s order by id", (round,))
        while some := [id for (id,) in cursor.fetchmany(10_000)]:
            known = stored.find(some)
            yield from (id for id, old in zip(some, known.tolist(), strict=True) if not old)


def into_postgres(connection: Connection, tables: Tables, blocks: Iterable[Block]) -> None:
    """Fill an empty PostgreSQL store, in the caller's transaction."""
    for name, columns in TABLES.items():
        if name == "deleted":
            continue
        marks = ", ".join(["%s"] * len(columns.split(",")))
        over = " overriding system value" if name == "tokens" else ""
        for row in tables[name]:
            values: tuple[Any, ...] = row
            if name == "rounds":
                values = (*row[:3], *(day and date.fromordinal(day) for day in row[3:]))
                if row[2] != "sealed":
                    postgres_rows.make_partitions(connection, row[0])
            connection.execute(f"insert into {name} ({columns}){over} values ({marks})", values)
    for (last,) in tables[_LAST_TOKEN]:
        connection.execute("select setval('tokens_number_seq', %s)", (last,))
    for round_, id in tables["deleted"]:
        _insert_ids(connection, round_, [id])
    for block in blocks:
        postgres_rows.insert_block(connection, block)
        _insert_ids(connection, block.round, block.ids)


def _insert_ids(connection: Connection, round: int, ids: list[bytes]) -> None:
    connection.execute("insert into ids (round, id) select %s, one from unnest(%b) one", (round, Ids(ids)))
