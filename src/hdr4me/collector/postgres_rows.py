"""Blocks and tallies as rows of PostgreSQL tables, in the transaction of whoever asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hdr4me.collector.blocks import Block, read_block
from hdr4me.collector.postgres_link import Connection
from hdr4me.collector.rounds import no_tally
from hdr4me.collector.statements import BLOCK_COLUMNS, TALLY_CONTENT, for_postgres
from hdr4me.collector.store import Damage, OnDamage
from hdr4me.errors import FormatError
from hdr4me.survey import Survey
from hdr4me.tally import Tally
from hdr4me.tally.file import dumps, loads

__all__ = ["insert_block", "make_partitions", "put_tally", "read_blocks", "stored_tally"]


def make_partitions(connection: Connection, number: int) -> None:
    """The tables of a round's blocks and ids; contents are random and never compressed."""
    for table in ("blocks", "ids"):
        connection.execute(
            f"create table {table}_{int(number)} partition of {table} for values in ({int(number)})"
        )
    for column in ("ids", "sizes", "data"):
        connection.execute(f"alter table blocks_{int(number)} alter column {column} set storage external")


def insert_block(connection: Connection, block: Block, *, pending: bool = True) -> None:
    """One block as one row; `pending`: its reports are not in the stored tally yet."""
    marks = "%s, %s, %s, %s, %s, %b, %b, %b, %b"
    insert = f"insert into blocks ({BLOCK_COLUMNS}) values ({marks})"
    if pending:
        insert = (
            f"with made as ({insert} returning round, number, n) "
            "insert into pending (round, number, n) select round, number, n from made"
        )
    connection.execute(insert, block.row())


def read_blocks(
    connection: Connection, on_damage: OnDamage, condition: str = "true", *values: Any
) -> Iterator[Block]:
    """Whole blocks for which a condition holds, some hundred at a time.

    Parameters
    ----------
    connection
        In a transaction; one reading at a time.
    on_damage
        Takes each block that is damaged.
    condition
        What stands behind `where`.
    values
        The values in the condition.
    """
    with connection.cursor(name="blocks", binary=True) as cursor:
        cursor.itersize = 256
        cursor.execute(f"select {BLOCK_COLUMNS} from blocks where {condition}", values)
        for row in cursor:
            try:
                yield read_block(row)
            except FormatError as error:
                on_damage(Damage(row[0], row[1], str(error)))


def stored_tally(connection: Connection, where: str, round: int, survey: Survey, kind: str) -> Tally:
    """A stored tally of a round.

    Parameters
    ----------
    connection
        In a transaction.
    where
        The store, for messages.
    round, survey
        The number of the round, and its survey.
    kind
        "running": of the counted reports of a round that is not sealed, empty at first. "all" or "kept": of a sealed
        round.
    """
    row = connection.execute(for_postgres(TALLY_CONTENT), (round, kind), binary=True).fetchone()
    if row is None and kind == "running":
        return Tally(survey)
    if row is None:
        raise no_tally(where, round)
    return loads(row[0], survey)


def put_tally(connection: Connection, round: int, kind: str, tally: Tally) -> None:
    """Store a tally in the place of the one before."""
    connection.execute(
        "insert into tallies (round, kind, content) values (%s, %s, %b) "
        "on conflict (round, kind) do update set content = excluded.content",
        (round, kind, dumps(tally)),
    )
