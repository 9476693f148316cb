"""Rounds of the PostgreSQL store: opened, closed, read and locked."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from hdr4me.collector.postgres_handle import PostgresHandle
from hdr4me.collector.postgres_link import Connection
from hdr4me.collector.postgres_locks import hold_counts, hold_state
from hdr4me.collector.postgres_rows import make_partitions, stored_tally
from hdr4me.collector.rounds import closing_day, day_of, no_round
from hdr4me.collector.statements import ADD_ROUND, ADD_SURVEY, CLOSE_ROUND, for_postgres
from hdr4me.collector.store import Round
from hdr4me.survey import Survey

__all__ = ["all_rounds", "close_round", "locked_round", "one_round", "open_round"]

_ROUNDS = """select number, fingerprint, state, opened, closed,
  case when state = 'sealed' then 0 else
    coalesce((select sum(n) from blocks where blocks.round = rounds.number), 0) end::bigint from rounds"""


def open_round(handle: PostgresHandle, survey: Survey, now: datetime) -> int:
    """Open the next round, for this survey; its number."""
    day = day_of(now)

    def work(connection: Connection) -> int:
        connection.execute("lock table rounds in share row exclusive mode")
        connection.execute(for_postgres(ADD_SURVEY), (survey.fingerprint, survey.to_json()))
        row = connection.execute("select coalesce(max(number), 0) + 1 from rounds").fetchone()
        assert row is not None
        number: int = row[0]
        connection.execute(for_postgres(ADD_ROUND), (number, survey.fingerprint, day))
        make_partitions(connection, number)
        return number

    return handle.link.run(work)


def close_round(handle: PostgresHandle, number: int, now: datetime) -> None:
    """Take no more reports for a round."""

    def work(connection: Connection) -> None:
        found = locked_round(handle, connection, number)
        if found.state == "open":
            day = closing_day(found.opened, now)
            connection.execute(for_postgres(CLOSE_ROUND), (day, number))

    handle.link.run(work)


def locked_round(handle: PostgresHandle, connection: Connection, number: int) -> Round:
    """The round, whose writers have ended and wait until this transaction ends."""
    hold_state(connection, number)
    hold_counts(connection, number)
    return one_round(handle, connection, number)


def all_rounds(handle: PostgresHandle, connection: Connection) -> list[Round]:
    """Every round, by number."""
    rows = connection.execute(_ROUNDS + " order by number").fetchall()
    return [_made(handle, connection, row) for row in rows]


def one_round(handle: PostgresHandle, connection: Connection, number: int) -> Round:
    """One round; UnknownRound if there is none."""
    row = None
    if type(number) is int and 0 < number < 1 << 31:
        row = connection.execute(_ROUNDS + " where number = %s", (number,)).fetchone()
    if row is None:
        raise no_round(number)
    return _made(handle, connection, row)


def _made(handle: PostgresHandle, connection: Connection, row: tuple[Any, ...]) -> Round:
    number, fingerprint, state, opened, closed, stored = row
    survey = handle.survey(connection, fingerprint)
    if state == "sealed":
        stored = stored_tally(connection, handle.link.name, number, survey, "all").n_reports
    return Round(number, fingerprint, survey.series, state, opened, closed, stored)
