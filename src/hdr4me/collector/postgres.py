"""The store in PostgreSQL: several workers may write at once, and the database decides which id came first.

A write inserts the ids of a batch, sorted, as one binary parameter; those that were not there come back and become
blocks, in the same transaction. Counted blocks are merged into larger ones, and their counts into one stored tally.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from hdr4me.collector.arrivals import blocks_of, check_payloads, sort_out
from hdr4me.collector.blocks import COLUMNS, Block, joined, read_block, without_id
from hdr4me.collector.counting import Running, count, minus
from hdr4me.collector.loads import Load, Outcome, write_one_by_one
from hdr4me.collector.postgres_link import Connection, Ids, Link
from hdr4me.collector.rounds import check_seal, closing_day, day_of, sealed_kind
from hdr4me.collector.store import (
    Arrival,
    Damage,
    Damaged,
    OnDamage,
    Quarantine,
    Round,
    Sealed,
    Stored,
    StoreError,
    UnknownRound,
    Written,
)
from hdr4me.collector.tables import Tables
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.survey import Survey
from hdr4me.tally import Tally
from hdr4me.tally.file import dumps, loads

__all__ = ["FOLD", "PostgresStore"]

_log = logging.getLogger("hdr4me.collector")

FOLD = 1 << 15
"""So many reports wait before their counts are merged into the stored tally."""

_MOST_FOLDED = 1 << 18
"""Reports that are merged at once: they are held in memory."""

_STATE, _COUNTS = 0x6844, 0x6845
"""Locks of a round: its state (shared by writers), and its stored tally."""

_NAMES = ", ".join(COLUMNS)
_ROUNDS = """select number, fingerprint, state, opened, closed,
  case when state = 'sealed' then 0 else
    coalesce((select sum(n) from blocks where blocks.round = rounds.number), 0) end::bigint from rounds"""


class PostgresStore(Tables):
    """Reports in PostgreSQL (see `Store`), in the schema `hdr4me`; memory does not grow with the reports.

    Parameters
    ----------
    url
        postgresql://user:password@host/database
    fold
        So many reports wait before their counts are merged into the stored tally.
    """

    def __init__(self, url: str, *, fold: int = FOLD) -> None:
        self._link = Link(url)
        self._fold_at = fold
        self._lock = threading.Lock()
        self._surveys: dict[str, Survey] = {}
        self._damage: list[Damage] = []
        try:
            self.schema_version = self._link.prepare()
        except BaseException:
            self._link.close()
            raise

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        def work(connection: Connection) -> list[tuple[Any, ...]]:
            cursor = connection.execute(sql.replace("?", "%s"), values)
            return cursor.fetchall() if cursor.description else []

        return self._link.run(work)

    def _note(self, damage: Damage) -> None:
        with self._lock:
            if damage not in self._damage:
                self._damage.append(damage)
                _log.error("%s is damaged: %s", self._link.name, damage)

    # -- rounds ----------------------------------------------------------------------------------------------------

    def open_round(self, survey: Survey, *, now: datetime) -> Round:
        """Open the next round, for this survey."""
        day = day_of(now)

        def work(connection: Connection) -> int:
            connection.execute("lock table rounds in share row exclusive mode")
            connection.execute(
                "insert into surveys values (%s, %s) on conflict do nothing",
                (survey.fingerprint, survey.to_json()),
            )
            row = connection.execute("select coalesce(max(number), 0) + 1 from rounds").fetchone()
            assert row is not None
            number: int = row[0]
            connection.execute(
                "insert into rounds values (%s, %s, 'open', %s, null)", (number, survey.fingerprint, day)
            )
            make_partitions(connection, number)
            return number

        return self.round(self._link.run(work))

    def close_round(self, number: int, *, now: datetime) -> Round:
        """Take no more reports for a round."""

        def work(connection: Connection) -> None:
            round_ = self._locked(connection, number)
            if round_.state == "open":
                day = closing_day(round_.opened, now)
                connection.execute(
                    "update rounds set state = 'closed', closed = %s where number = %s", (day, number)
                )

        self._link.run(work)
        return self.round(number)

    def _locked(self, connection: Connection, number: int) -> Round:
        """The round, whose writers have ended and wait until this transaction ends."""
        connection.execute("select pg_advisory_xact_lock(%s, %s)", (_STATE, number))
        connection.execute("select pg_advisory_xact_lock(%s, %s)", (_COUNTS, number))
        return self._round(connection, number)

    def rounds(self) -> list[Round]:
        """Every round, by number."""
        return self._link.run(
            lambda c: [self._made(c, row) for row in c.execute(_ROUNDS + " order by number").fetchall()]
        )

    def round(self, number: int) -> Round:
        """One round."""
        return self._link.run(lambda connection: self._round(connection, number))

    def _round(self, connection: Connection, number: int) -> Round:
        row = None
        if type(number) is int and 0 < number < 1 << 31:
            row = connection.execute(_ROUNDS + " where number = %s", (number,)).fetchone()
        if row is None:
            raise UnknownRound(f"round = {number!r} is not allowed: there is no such round")
        return self._made(connection, row)

    def _made(self, connection: Connection, row: tuple[Any, ...]) -> Round:
        number, fingerprint, state, opened, closed, stored = row
        survey = self._survey(connection, fingerprint)
        if state == "sealed":
            stored = self._stored_tally(connection, number, survey, "all").n_reports
        return Round(number, fingerprint, survey.series, state, opened, closed, stored)

    def survey(self, fingerprint: str) -> Survey:
        """The survey with a fingerprint."""
        found = self._surveys.get(fingerprint)
        return found or self._link.run(lambda connection: self._survey(connection, fingerprint))

    def _survey(self, connection: Connection, fingerprint: str) -> Survey:
        if fingerprint not in self._surveys:
            row = connection.execute(
                "select document from surveys where fingerprint = %s", (fingerprint,)
            ).fetchone()
            if row is None:
                raise InvalidInput.of("fingerprint", fingerprint, "the fingerprint of a round's survey")
            self._surveys[fingerprint] = Survey.from_json(row[0])
        return self._surveys[fingerprint]

    # -- reports ---------------------------------------------------------------------------------------------------

    def write(self, batch: Sequence[Arrival]) -> Written:
        """Store a batch; when `write` returns, the batch is on the database's disk."""
        rounds = sort_out(batch)

        def work(connection: Connection) -> Written:
            surveys = self._open_surveys(connection, list(rounds))
            check_payloads(
                blocks_of(batch, [place for number in surveys for place in rounds[number].places]), surveys
            )
            new: list[int] = []
            for number in surveys:
                places = dict(zip(rounds[number].ids, rounds[number].places, strict=True))
                found = connection.execute(
                    "insert into ids (round, id) select %s, one from unnest(%b) one "
                    "on conflict do nothing returning uuid_send(id)",
                    (number, Ids(rounds[number].ids)),
                    binary=True,
                ).fetchall()
                new += [places[id] for (id,) in found]
            for block in blocks_of(batch, new):
                insert_block(connection, block)
            stored = [False] * len(batch)
            for place in new:
                stored[place] = True
            return Written(tuple(stored), tuple(arrival.round not in surveys for arrival in batch))

        if not batch:
            return Written((), ())
        return self._link.run(work)

    def write_loads(self, loads: Sequence[Load]) -> list[Outcome]:
        """Store the reports of several requests; when `write_loads` returns, they are on the database's disk."""
        return write_one_by_one(self.write, loads)

    def _open_surveys(self, connection: Connection, numbers: Sequence[int]) -> dict[int, Survey]:
        """The surveys of those rounds that are open, and stay open until this transaction ends."""
        with connection.pipeline():
            for number in numbers:
                connection.execute("select pg_advisory_xact_lock_shared(%s, %s)", (_STATE, number))
            rows = connection.execute(
                "select number, fingerprint, state from rounds where number = any(%s)", (list(numbers),)
            ).fetchall()
        missing = set(numbers) - {number for number, _, _ in rows}
        if missing:
            raise UnknownRound(f"round = {min(missing)} is not allowed: there is no such round")
        return {
            number: self._survey(connection, fingerprint)
            for number, fingerprint, state in sorted(rows)
            if state == "open"
        }

    def delete(self, round: int, id: bytes) -> bool:
        """Delete a report, exactly."""

        def work(connection: Connection) -> bool:
            connection.execute("select pg_advisory_xact_lock_shared(%s, %s)", (_STATE, round))
            connection.execute("select pg_advisory_xact_lock(%s, %s)", (_COUNTS, round))
            found = self._round(connection, round)
            if found.sealed:
                raise Sealed(
                    f"round {round} is sealed: its reports are gone, and its tally cannot be taken apart"
                )
            known = connection.execute(
                "select 1 from ids where round = %s and id = any(%b)", (round, Ids([id]))
            ).fetchone()
            if known is None:
                return False
            for block in self._read(connection, "position(%b in ids) > 0", round, id):
                if id in block.ids:
                    self._take(connection, block, id, self._survey(connection, found.fingerprint))
                    return True
            return False

        if type(id) is not bytes or len(id) != 16:
            raise InvalidInput.of("id", id, "16 bytes")
        return self._link.run(work)

    def _take(self, connection: Connection, block: Block, id: bytes, survey: Survey) -> None:
        rest, gone = without_id(block, id)
        key = (block.round, block.number)
        waiting = connection.execute("delete from pending where round = %s and number = %s returning 1", key)
        counted = waiting.fetchone() is None
        connection.execute("delete from blocks where round = %s and number = %s", key)
        if rest is not None:
            insert_block(connection, rest, pending=not counted)
        if counted:
            running = self._stored_tally(connection, block.round, survey, "running")
            put_tally(connection, block.round, "running", minus(running, count([gone], survey)))

    def _read(
        self,
        connection: Connection,
        condition: str,
        round: int,
        *values: Any,
        found: list[Damage] | None = None,
    ) -> Iterator[Block]:
        """Whole blocks of a round for which a condition holds; what is damaged is noted."""
        with connection.cursor(name="blocks", binary=True) as cursor:
            cursor.itersize = 256
            cursor.execute(f"select {_NAMES} from blocks where round = %s and {condition}", (round, *values))
            for row in cursor:
                try:
                    yield read_block(row)
                except FormatError as error:
                    damage = Damage(row[0], row[1], str(error))
                    self._note(damage)
                    if found is not None:
                        found.append(damage)

    def blocks(self, round: int, *, on_damage: OnDamage | None = None) -> Iterator[Block]:
        """Every whole block of a round, as it was when the first is asked for."""
        found: list[Damage] = []
        with self._link.reading() as connection:
            self._round(connection, round)
            yield from self._read(connection, "true", round, found=found)
        if found and on_damage is None:
            raise Damaged(self._link.name, found)
        for damage in found if on_damage is not None else ():
            on_damage(damage)  # type: ignore[misc]

    def arrivals(self, round: int) -> list[Stored]:
        """Stored reports by hour and source."""
        sql = (
            "select hour, source, sum(n)::bigint from blocks where round = ? "
            "group by hour, source order by hour, source"
        )
        return [Stored(*row) for row in self._rows(sql, round)]

    # -- tallies ---------------------------------------------------------------------------------------------------

    def tally(self, round: int, *, without: Sequence[Quarantine] = ()) -> Tally:
        """The library's own tally of the round: the stored one, and what waits."""
        with self._link.reading() as connection:
            found = self._round(connection, round)
            survey = self._survey(connection, found.fingerprint)
            if found.sealed:
                kind = sealed_kind(round, without, self.quarantines(round))
                return self._stored_tally(connection, round, survey, kind)
            total = self._stored_tally(connection, round, survey, "running")
            waiting = count(self._read(connection, _WAITING, round), survey)
            left_out = Tally(survey)
            for quarantine in _distinct(without):
                left_out = left_out + count(
                    (
                        block
                        for block in self._read(connection, *_covered(round, quarantine))
                        if not any(q.covers(block.hour, block.source) for q in _before(without, quarantine))
                    ),
                    survey,
                )
        if waiting.n_reports >= self._fold_at:
            self.fold(round)
        return minus(total + waiting, left_out)

    def fold(self, round: int) -> None:
        """Merge the counts of waiting blocks into the stored tally, and the blocks into larger ones."""

        def work(connection: Connection) -> None:
            connection.execute("select pg_advisory_xact_lock(%s, %s)", (_COUNTS, round))
            found = self._round(connection, round)
            if found.sealed:
                return
            survey = self._survey(connection, found.fingerprint)
            chosen, reports = [], 0
            for number, n in connection.execute("select number, n from pending where round = %s", (round,)):
                if reports < _MOST_FOLDED:
                    chosen.append(number)
                    reports += n
            blocks = list(self._read(connection, "number = any(%s)", round, chosen))
            if not blocks:
                return
            numbers = [block.number for block in blocks]
            running = self._stored_tally(connection, round, survey, "running")
            put_tally(connection, round, "running", running + count(blocks, survey))
            connection.execute("delete from pending where round = %s and number = any(%s)", (round, numbers))
            connection.execute("delete from blocks where round = %s and number = any(%s)", (round, numbers))
            groups: dict[tuple[int, int], list[Block]] = {}
            for block in blocks:
                groups.setdefault((block.hour, block.source), []).append(block)
            for group in groups.values():
                insert_block(connection, joined(group), pending=False)

        self._link.run(work)

    def _stored_tally(self, connection: Connection, round: int, survey: Survey, kind: str) -> Tally:
        row = connection.execute(
            "select content from tallies where round = %s and kind = %s", (round, kind), binary=True
        ).fetchone()
        if row is None and kind == "running":
            return Tally(survey)
        if row is None:
            raise StoreError(f"{self._link.name}: the tally of round {round} is missing; restore a backup")
        return loads(row[0], survey)

    def damage(self) -> list[Damage]:
        """Damaged blocks found so far, by this process."""
        with self._lock:
            return list(self._damage)

    # -- the end ---------------------------------------------------------------------------------------------------

    def seal(self, round: int, *, despite_damage: bool = False) -> Round:
        """Keep only the tally of a closed round."""
        quarantines = self.quarantines(round)

        def work(connection: Connection) -> None:
            connection.execute("set local lock_timeout = '10s'")
            found = self._locked(connection, round)
            if not check_seal(found):
                return
            survey = self._survey(connection, found.fingerprint)
            damage: list[Damage] = []
            total, kept = Running(survey), Running(survey)
            for block in self._read(connection, "true", round, found=damage):
                rows = block.rows(survey)
                total.add(rows)
                if not any(q.covers(block.hour, block.source) for q in quarantines):
                    kept.add(rows)
            if damage and not despite_damage:
                raise Damaged(self._link.name, damage)
            put_tally(connection, round, "all", total.total())
            put_tally(connection, round, "kept", kept.total())
            connection.execute("delete from tallies where round = %s and kind = 'running'", (round,))
            connection.execute("delete from pending where round = %s", (round,))
            connection.execute("update rounds set state = 'sealed' where number = %s", (round,))
            connection.execute(f"drop table blocks_{int(round)}, ids_{int(round)}")

        self._link.run(work)
        return self.round(round)

    def free_space(self) -> int | None:
        """Not known: the database may be on another machine."""
        return None

    def ping(self) -> None:
        """Return if the database answers."""
        self._rows("select 1")

    def close(self) -> None:
        """Close the connections."""
        self._link.close()


_WAITING = "number in (select number from pending where pending.round = blocks.round)"


def _distinct(without: Sequence[Quarantine]) -> list[Quarantine]:
    return list(dict.fromkeys(without))


def _before(without: Sequence[Quarantine], quarantine: Quarantine) -> list[Quarantine]:
    """Quarantines whose blocks were counted before this one's: a block in two of them is counted once."""
    distinct = _distinct(without)
    return distinct[: distinct.index(quarantine)]


def _covered(round: int, quarantine: Quarantine) -> tuple[Any, ...]:
    """Condition and values for the blocks of a quarantine."""
    hour, source = quarantine.hour, quarantine.source
    condition = "(%s::integer is null or hour = %s) and (%s::integer is null or source = %s)"
    return condition, round, hour, hour, source, source


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
    insert = f"insert into blocks ({_NAMES}) values ({marks})"
    if pending:
        insert = (
            f"with made as ({insert} returning round, number, n) "
            "insert into pending (round, number, n) select round, number, n from made"
        )
    connection.execute(insert, block.row())


def put_tally(connection: Connection, round: int, kind: str, tally: Tally) -> None:
    """Store a tally in the place of the one before."""
    connection.execute(
        "insert into tallies (round, kind, content) values (%s, %s, %b) "
        "on conflict (round, kind) do update set content = excluded.content",
        (round, kind, dumps(tally)),
    )
