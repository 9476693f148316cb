"""Blocks, ids, tallies and tables as rows of PostgreSQL, in the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any

from hdr4me.collector.batch import BLOCK_COLUMNS, Block, read_block, split_ids
from hdr4me.collector.errors import Damage, OnDamage
from hdr4me.collector.stores.memory import IdSet
from hdr4me.collector.stores.postgres.connection import Connection
from hdr4me.collector.stores.protocol import LAST_TOKEN, TABLES, Tables
from hdr4me.errors import FormatError
from hdr4me.tally import Tally
from hdr4me.tally.file import dumps


def make_partitions(connection: Connection, number: int) -> None:
    """Create the tables of the blocks and ids of a round; their contents are random and never compressed."""
    for table in ("blocks", "ids"):
        connection.execute(
            f"create table {table}_{int(number)} partition of {table} for values in ({int(number)})"
        )
    for column in ("ids", "sizes", "data"):
        connection.execute(f"alter table blocks_{int(number)} alter column {column} set storage external")


def insert_ids(connection: Connection, round: int, ids: bytes) -> set[bytes]:
    """Insert sorted ids; those that are new."""
    rows = connection.execute(
        "insert into ids (round, id) select %s, encode(substring(%b from 16 * i + 1 for 16), 'hex')::uuid "
        "from generate_series(0, %s) i on conflict do nothing returning uuid_send(id)",
        (round, ids, len(ids) // 16 - 1),
        binary=True,
    )
    return {id for (id,) in rows}


def insert_block(connection: Connection, block: Block, *, pending: bool = True) -> None:
    """Insert a block as one row; `pending`: its reports are not in the stored tally yet."""
    insert = f"insert into blocks ({BLOCK_COLUMNS}) values (%s, %s, %s, %s, %s, %b, %b, %b, %b)"
    if pending:
        insert = (
            f"with made as ({insert} returning round, number, n) "
            "insert into pending (round, number, n) select round, number, n from made"
        )
    connection.execute(insert, block.row())


def read_blocks(
    connection: Connection, on_damage: OnDamage, condition: str = "true", *values: Any
) -> Iterator[Block]:
    """Intact blocks for which an SQL condition with values holds; damaged ones are passed to `on_damage`."""
    with connection.cursor(name="blocks", binary=True) as cursor:
        cursor.itersize = 256
        cursor.execute(f"select {BLOCK_COLUMNS} from blocks where {condition}", values)
        for row in cursor:
            try:
                yield read_block(row)
            except FormatError as error:
                on_damage(Damage(row[0], row[1], str(error)))


def put_tally(connection: Connection, round: int, kind: str, tally: Tally) -> None:
    """Store a tally, which replaces the one before."""
    connection.execute(
        "insert into tallies (round, kind, content) values (%s, %s, %b) "
        "on conflict (round, kind) do update set content = excluded.content",
        (round, kind, dumps(tally)),
    )


def read_tables(connection: Connection) -> Tables:
    """Every table except the blocks, as the SQLite store would have them."""
    found: Tables = {}
    for name, columns in TABLES.items():
        if name != "deleted":
            where = " where kind <> 'running'" if name == "tallies" else ""
            rows = connection.execute(f"select {columns} from {name}{where}", binary=True)
            found[name] = [tuple(v.toordinal() if isinstance(v, date) else v for v in row) for row in rows]
    found["deleted"] = [
        (number, id)
        for number, _, state, _, _ in found["rounds"]
        if state != "sealed"
        for id in _deleted(connection, number)
    ]
    row = connection.execute("select last_value, is_called from tokens_number_seq").fetchone()
    found[LAST_TOKEN] = [(row[0],)] if row and row[1] else []
    return found


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
        stored.add(ids)
    with connection.cursor(name="ids", binary=True) as cursor:
        cursor.execute("select uuid_send(id) from ids where round = %s order by id", (round,))
        while some := b"".join([id for (id,) in cursor.fetchmany(10_000)]):
            known = stored.find(some).tolist()
            yield from (id for id, old in zip(split_ids(some), known, strict=True) if not old)


def fill(connection: Connection, tables: Tables, blocks: Iterable[Block]) -> None:
    """Fill an empty store with the contents of a backup."""
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
                    make_partitions(connection, row[0])
            connection.execute(f"insert into {name} ({columns}){over} values ({marks})", values)
    for (last,) in tables[LAST_TOKEN]:
        connection.execute("select setval('tokens_number_seq', %s)", (last,))
    for round_, id in tables["deleted"]:
        insert_ids(connection, round_, id)
    for block in blocks:
        insert_block(connection, block)
        insert_ids(connection, block.round, block.id_bytes)
