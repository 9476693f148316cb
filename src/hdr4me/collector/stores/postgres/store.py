"""The store in PostgreSQL: several workers may write at once, and the database decides which id came first.

A write inserts the sorted ids of a group as one binary parameter; the new ones are returned and become blocks in the
same transaction. Counted blocks are merged into larger ones, and their counts into one stored tally.

Two advisory locks of a round are held until a transaction ends. The lock of the state is shared by writers and held
exclusively to close or finalize the round. The lock of the counts is held to change the stored tally. A transaction
that needs both locks the state first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from functools import partial
from typing import Any

import numpy as np

from hdr4me.collector.batch import Batch, Block, grouped, joined, split_ids, together, without_id
from hdr4me.collector.errors import Damage, OnDamage, UnknownRound
from hdr4me.collector.stores import protocol
from hdr4me.collector.stores.memory import Running, count, minus
from hdr4me.collector.stores.postgres import database as table
from hdr4me.collector.stores.postgres.database import Connection, Database
from hdr4me.collector.stores.protocol import Quarantine, Round, Rows, Store, Stored
from hdr4me.survey import Survey
from hdr4me.tally import Tally
from hdr4me.tally.file import loads

FOLD = 1 << 15  # reports that wait before their counts are merged into the stored tally
_MOST_FOLDED = 1 << 18  # reports that are merged at once: they are held in memory
_MOST_BYTES = 16 << 20
_VACUUM_EVERY = 1800.0  # seconds between two rewritings of the tables of rounds with deleted reports
_VACUUM_AGAIN = 60.0  # seconds after which a table that is in use is tried again
_PENDING = """select pending.number, pending.n, 16 * pending.n + octet_length(data) from pending
  join blocks using (round, number) where round = ?"""
_STATE, _COUNTS = 0x6844, 0x6845  # the two locks of a round

_ROUNDS = """select number, fingerprint, state, opened, closed,
  (stored + coalesce((select sum(n) from pending where pending.round = rounds.number), 0))::bigint from rounds"""
# The name is of a round with deleted reports whose bytes are in its table, the value the last transaction that deleted.
_DELETED = """insert into settings values (%s, pg_current_xact_id()::text)
  on conflict (name) do update set value = excluded.value"""
# A deleted row is not removed while a transaction or a view is older than its deletion.
_REMOVABLE = """select name, value, not exists (select 1 from pg_stat_activity where pid <> pg_backend_pid()
  and greatest(age(backend_xid), age(backend_xmin)) >= age(value::xid8::xid))
  from settings where starts_with(name, 'deleted ')"""
_WAITING = "round = %s and number in (select number from pending where pending.round = blocks.round)"
_OF_KEYS = "round = %s and (hour, source) in (select * from unnest(%s::integer[], %s::integer[]))"


def _lock(connection: Connection, which: int, round: int, *, shared: bool = False) -> None:
    """Hold a lock of a round until the transaction ends."""
    kind = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    connection.execute(f"select {kind}(%s, %s)", (which, round))


def _fetch(connection: Connection, sql: str, *values: Any) -> Rows:
    """The rows of a statement in which `?` marks a value."""
    cursor = connection.execute(sql.replace("?", "%s"), values, binary=True)
    return cursor.fetchall() if cursor.description else []


class PostgresStore(Store):
    """Reports in PostgreSQL (see `Store`); when `fold` reports wait, their counts are merged into the stored tally."""

    def __init__(self, url: str, *, fold: int = FOLD) -> None:
        self._database = Database(url)
        super().__init__(self._database.name)
        self.schema_version = self._database.schema_version
        self._fold_at = fold
        self._next_vacuum = time.monotonic()

    def _rows(self, sql: str, *values: Any) -> Rows:
        with self._database.transaction() as connection:
            return _fetch(connection, sql, *values)

    def open_round(self, survey: Survey, *, now: datetime) -> Round:
        day = protocol.day_of(now)
        with self._database.transaction() as connection:
            fetch = partial(_fetch, connection)
            fetch("lock table rounds in share row exclusive mode")
            fetch(protocol.ADD_SURVEY, survey.fingerprint, survey.to_json())
            number: int = fetch("select coalesce(max(number), 0) + 1 from rounds")[0][0]
            fetch(protocol.ADD_ROUND, number, survey.fingerprint, day)
            fetch("update rounds set stored = 0 where number = ?", number)
            table.make_partitions(connection, number)
        return self.round(number)

    def close_round(self, number: int, *, now: datetime) -> Round:
        with self._database.transaction() as connection:
            found = self._locked_round(connection, number)
            if found.state == "open":
                _fetch(connection, protocol.CLOSE_ROUND, max(found.opened, protocol.day_of(now)), number)
        return self.round(number)

    def correct_dates(self, day: date) -> None:
        for name in ("opened", "closed"):
            self._rows(f"update rounds set {name} = ? where {name} > ?", day, day)

    def rounds(self) -> list[Round]:
        with self._database.transaction() as connection:
            rows = _fetch(connection, _ROUNDS + " order by number")
            return [self._made(connection, row) for row in rows]

    def round(self, number: int) -> Round:
        with self._database.transaction() as connection:
            return self._round(connection, number)

    def _round(self, connection: Connection, number: int) -> Round:
        if type(number) is int and 0 < number < 1 << 31:
            for row in _fetch(connection, _ROUNDS + " where number = ?", number):
                return self._made(connection, row)
        raise UnknownRound(number)

    def _made(self, connection: Connection, row: Sequence[Any]) -> Round:
        number, fingerprint, state, opened, closed, stored = row
        fetch = partial(_fetch, connection)
        survey = self.survey(fingerprint, fetch)
        if stored is None:  # finalized by an earlier version
            stored = self._stored_tally(number, survey, "all", fetch).n_reports
            fetch("update rounds set stored = ? where number = ?", stored, number)
        return Round(number, fingerprint, survey.series, state, opened, closed, stored)

    def _locked_round(self, connection: Connection, number: int) -> Round:
        """The round, whose writers have ended and wait until this transaction ends."""
        _lock(connection, _STATE, number)
        _lock(connection, _COUNTS, number)
        return self._round(connection, number)

    def write(self, batches: Sequence[Batch]) -> None:
        groups, news = grouped(batches), []
        if not groups:
            return
        with self._database.transaction() as connection:
            surveys = self._open_surveys(connection, [group.round for group in groups])
            for group in groups:
                if group.round not in surveys:
                    group.refuse()
                    continue
                inserted = table.insert_ids(connection, group.round, group.ids, group.numbers, group.places)
                new = np.array([id in inserted for id in split_ids(group.ids)], bool)
                for block, _ in group.blocks(new, surveys[group.round]):
                    table.insert_block(connection, block)
                news.append((group, new))
        for group, new in news:
            group.acknowledge(new)

    def _open_surveys(self, connection: Connection, numbers: Sequence[int]) -> dict[int, Survey]:
        """The surveys of those rounds that are open, and stay open until this transaction ends."""
        with connection.pipeline():
            for number in numbers:
                _lock(connection, _STATE, number, shared=True)
            sql = "select number, fingerprint, state from rounds where number = any(%s)"
            rows = connection.execute(sql, (list(numbers),)).fetchall()
        missing = set(numbers) - {number for number, _, _ in rows}
        if missing:
            raise UnknownRound(min(missing))
        fetch = partial(_fetch, connection)
        return {
            number: self.survey(fingerprint, fetch) for number, fingerprint, state in rows if state == "open"
        }

    def maintain(self) -> bool:
        if time.monotonic() >= self._next_vacuum:
            self._next_vacuum = time.monotonic() + _VACUUM_AGAIN
            if self._remove_deleted():
                self._next_vacuum = time.monotonic() + _VACUUM_EVERY
        sql = "select round from pending group by round having sum(n) >= ? limit 1"
        for (number,) in self._rows(sql, self._fold_at):
            return self.fold(number)
        return False

    def _remove_deleted(self) -> bool:
        """Rewrite the tables of rounds with deleted reports; False if one of them has to wait."""
        done = True
        for name, value, removable in self._rows(_REMOVABLE):
            if removable and self._database.rewrite(f"blocks_{int(name.split()[1])}"):
                self._rows("delete from settings where name = ? and value = ?", name, value)
            else:
                done = False
        return done

    def fold(self, round: int) -> bool:
        """Merge the counts of some waiting blocks into the stored tally, and the blocks into larger ones."""
        with self._database.transaction() as connection:
            _lock(connection, _COUNTS, round)
            found = self._round(connection, round)
            if found.state == "finalized":
                return False
            chosen, reports, size = [], 0, 0
            for number, n, its_size in _fetch(connection, _PENDING, round):
                if reports < _MOST_FOLDED and size < _MOST_BYTES:
                    chosen.append(number)
                    reports, size = reports + n, size + its_size
            condition = "round = %s and number = any(%s)"
            blocks = list(table.read_blocks(connection, self._note, condition, round, chosen))
            if not blocks:
                return False
            survey = self.survey(found.fingerprint)
            running = self._running(connection, round, survey)
            table.put_tally(connection, round, "running", running + count(blocks, survey))
            numbers = [block.number for block in blocks]
            connection.execute(f"delete from pending where {condition}", (round, numbers))
            connection.execute(f"delete from blocks where {condition}", (round, numbers))
            for group in together(blocks):
                made = joined(group)
                table.insert_block(connection, made, pending=False)
                table.move_blocks(connection, round, [block.number for block in group], made.number)
            total = sum(map(len, blocks))
            connection.execute("update rounds set stored = stored + %s where number = %s", (total, round))
        return True

    def _running(self, connection: Connection, round: int, survey: Survey) -> Tally:
        """The stored tally of a round that is not finalized; empty at first."""
        rows = _fetch(connection, "select content from tallies where round = ? and kind = 'running'", round)
        return loads(rows[0][0], survey) if rows else Tally(survey)

    def delete(self, round: int, id: bytes) -> bool:
        with self._database.transaction() as connection:
            _lock(connection, _STATE, round, shared=True)
            _lock(connection, _COUNTS, round)
            found = self._round(connection, round)
            protocol.check_delete(round, found.state, id)
            number = table.block_of_id(connection, round, id)
            if number is None:
                return False
            condition = "round = %s and number = %s"
            for block in table.read_blocks(connection, self._note, condition, round, number):
                if id in block.ids:
                    self._take(connection, block, id, self.survey(found.fingerprint))
                    connection.execute(_DELETED, (f"deleted {round}",))
                    return True
        return False

    def _take(self, connection: Connection, block: Block, id: bytes, survey: Survey) -> None:
        """Write the block without the report."""
        rest, gone = without_id(block, id)
        key = (block.round, block.number)
        counted = not _fetch(
            connection, "delete from pending where round = ? and number = ? returning 1", *key
        )
        connection.execute("delete from blocks where round = %s and number = %s", key)
        if rest is not None:
            table.insert_block(connection, rest, pending=not counted)
            table.move_blocks(connection, block.round, [block.number], rest.number)
        if counted:
            connection.execute("update rounds set stored = stored - 1 where number = %s", (block.round,))
            running = self._running(connection, block.round, survey)
            table.put_tally(connection, block.round, "running", minus(running, count([gone], survey)))

    def blocks(self, round: int, *, on_damage: OnDamage | None = None) -> Iterator[Block]:
        found: list[Damage] = []
        with self._database.reading() as connection:
            self._round(connection, round)
            yield from table.read_blocks(connection, found.append, "round = %s", round)
        self._report(found, on_damage)

    def arrivals(self, round: int) -> list[Stored]:
        sql = (
            "select hour, source, sum(n)::bigint from blocks where round = ? "
            "group by hour, source order by hour, source"
        )
        return [Stored(*row) for row in self._rows(sql, round)]

    def tally(self, round: int, *, without: Sequence[Quarantine] = ()) -> Tally:
        with self._database.reading() as connection:
            found = self._round(connection, round)
            survey = self.survey(found.fingerprint, partial(_fetch, connection))
            if found.state != "finalized":
                total = self._running(connection, round, survey)
                waiting = count(table.read_blocks(connection, self._note, _WAITING, round), survey)
                keys = _fetch(connection, "select distinct hour, source from blocks where round = ?", round)
                chosen = [key for key in keys if protocol.covered(without, *key)]
                columns = [[key[i] for key in chosen] for i in (0, 1)]
                left_out = count(table.read_blocks(connection, self._note, _OF_KEYS, round, *columns), survey)
                return minus(total + waiting, left_out)
        return self._finalized_tally(round, survey, without)

    def finalize(self, round: int, *, despite_damage: bool = False) -> Round:
        quarantines = self.quarantines(round)
        with self._database.transaction() as connection:
            connection.execute("set local lock_timeout = '10s'")
            found = self._locked_round(connection, round)
            if protocol.check_finalize(found):
                survey = self.survey(found.fingerprint)
                damage: list[Damage] = []
                total, kept = Running(survey), Running(survey)
                for block in table.read_blocks(connection, damage.append, "round = %s", round):
                    rows = block.rows(survey)
                    total.add(rows)
                    if not protocol.covered(quarantines, block.hour, block.source):
                        kept.add(rows)
                self._report(damage, self._note if despite_damage else None)
                table.put_tally(connection, round, "all", total.total())
                table.put_tally(connection, round, "kept", kept.total())
                fetch: Callable[..., Rows] = partial(_fetch, connection)
                fetch("delete from tallies where round = ? and kind = 'running'", round)
                for name in ("pending", "moved"):
                    fetch(f"delete from {name} where round = ?", round)
                fetch("update rounds set stored = ? where number = ?", total.total().n_reports, round)
                fetch(protocol.FINALIZE_ROUND, round)
                # In the order in which a writer locks them; the other order would be a deadlock.
                fetch(f"drop table ids_{int(round)}, blocks_{int(round)}")
        return self.round(round)

    def close(self) -> None:
        self._database.close()
