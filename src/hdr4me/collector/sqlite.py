"""The store in one SQLite file: one process, one writer, every commit on the disk before it is acknowledged.

A write is one transaction that appends blocks; which ids are stored is known in memory, so no index of random ids
slows the writer down. A small block is appended under the next number, so that a write touches one page or two; when
there are many, or the hour is over, they are merged under a random number, and the order of arrival is gone.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hdr4me.client.lock import locked
from hdr4me.collector.arrivals import blocks_of, check_payloads, sort_out
from hdr4me.collector.blocks import Block, joined, read_block, without_id
from hdr4me.collector.counting import count, minus
from hdr4me.collector.loads import Load, Outcome, prepare
from hdr4me.collector.migrations import SQLITE, migrate
from hdr4me.collector.rounds import check_seal, closing_day, day_of, sealed_kind
from hdr4me.collector.sqlite_file import (
    APPLICATION,
    check_structure,
    connect,
    insert_block,
    scan,
    shape,
    shrink,
    told,
)
from hdr4me.collector.sqlite_state import FRESH, MERGED, Live, level_of
from hdr4me.collector.store import (
    Arrival,
    Damage,
    Damaged,
    OnDamage,
    Quarantine,
    Round,
    Sealed,
    StoreBusy,
    Stored,
    StoreError,
    StoreUnavailable,
    UnknownRound,
    Written,
)
from hdr4me.collector.tables import Tables
from hdr4me.errors import FormatError, InvalidInput, LedgerBusy
from hdr4me.survey import Survey
from hdr4me.tally import Tally
from hdr4me.tally.file import dumps, loads

__all__ = ["SqliteStore"]

_log = logging.getLogger("hdr4me.collector")
_COLUMNS = "number, round, hour, source, n, ids, sizes, data, checksum"


class SqliteStore(Tables):
    """Reports in an SQLite file (see `Store`).

    Memory: 16 bytes for the id of each stored report and about 20 MB; see `hdr4me.collector.ids`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        self._closing = ExitStack()
        self._damage: list[Damage] = []
        self._surveys: dict[str, Survey] = {}
        self._rounds: dict[int, Live] = {}
        self._next_fresh = FRESH
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
            self._connection: sqlite3.Connection | None = connect(self.path)
            self._closing.callback(self._connection.close)
            with told(self.path):
                self.schema_version = self._prepare(self._connection)
            self._ready()
        except BaseException:
            self._closing.close()
            raise

    def _prepare(self, connection: sqlite3.Connection) -> int:
        """Settings and migrations; the version of the schema."""
        version: int = connection.execute("pragma user_version").fetchone()[0]
        application = connection.execute("pragma application_id").fetchone()[0]
        tables = connection.execute("select count(*) from sqlite_master").fetchone()[0]
        if application != APPLICATION and tables:
            raise FormatError(f"{self.path} is an SQLite file of another program, not a store")
        if not tables:
            shape(connection)
        connection.execute("pragma journal_mode = wal")
        connection.execute("begin immediate")
        try:
            last = migrate(version, SQLITE, connection.execute, str(self.path))
            if last != version:
                connection.execute(f"pragma application_id = {APPLICATION}")
                connection.execute(f"pragma user_version = {last}")
            connection.execute("commit")
        except BaseException:
            if connection.in_transaction:
                connection.execute("rollback")
            raise
        return last

    # -- connection ------------------------------------------------------------------------------------------------

    def _ready(self) -> sqlite3.Connection:
        """The connection, with what is known in memory read anew if it may be wrong; the caller holds the lock."""
        if self._connection is None:
            raise StoreUnavailable(f"{self.path} is closed")
        if not self._loaded:
            self._load(self._connection)
        return self._connection

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing; on the disk when the block ends. The caller holds the lock."""
        connection = self._ready()
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
    def _remembering(self) -> Iterator[None]:
        """Memory follows the file; if that fails half way, the file is read anew before anything else is done."""
        self._loaded = False
        yield
        self._loaded = True

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock, self._transaction() as connection:
            return connection.execute(sql, values).fetchall()

    def _load(self, connection: sqlite3.Connection) -> None:
        """Read every block: ids, tallies, damage."""
        self._damage, self._rounds, self._next_fresh = [], {}, FRESH
        with told(self.path):
            for number, fingerprint, state, opened, closed in connection.execute(
                "select number, fingerprint, state, opened, closed from rounds order by number"
            ).fetchall():
                live = Live(number, self.survey(fingerprint), state, _date(opened), closed and _date(closed))
                if state == "sealed":
                    live.n_sealed = self._sealed_tally(live, "all").n_reports
                self._rounds[number] = live
            ids: dict[int, list[bytes]] = {number: [] for number in self._rounds}
            check_structure(connection, self._note)
            for block in scan(connection, self._note):
                if block.round not in self._rounds:
                    self._note(Damage(block.number, block.round, "its round does not exist"))
                    continue
                live = self._rounds[block.round]
                live.place(block)
                self._next_fresh = (
                    max(self._next_fresh, block.number + 1) if block.number >= FRESH else self._next_fresh
                )
                live.running.add(block.rows(live.survey))
                ids[block.round].append(block.id_bytes)
            for number, id in connection.execute("select round, id from deleted"):
                ids.setdefault(number, []).append(id)
            for number, live in self._rounds.items():
                live.ids.add_bytes(b"".join(ids[number]))
        self._loaded = True

    def _note(self, damage: Damage) -> None:
        if damage not in self._damage:
            self._damage.append(damage)
            _log.error("%s is damaged: %s", self.path, damage)

    # -- rounds ----------------------------------------------------------------------------------------------------

    def open_round(self, survey: Survey, *, now: datetime) -> Round:
        """Open the next round, for this survey."""
        day = day_of(now)
        with self._lock:
            self._ready()
            number = max(self._rounds, default=0) + 1
            with self._transaction() as connection:
                connection.execute(
                    "insert into surveys values (?, ?) on conflict do nothing",
                    (survey.fingerprint, survey.to_json()),
                )
                connection.execute(
                    "insert into rounds values (?, ?, 'open', ?, null)",
                    (number, survey.fingerprint, day.toordinal()),
                )
            self._surveys[survey.fingerprint] = survey
            live = self._rounds[number] = Live(number, survey, "open", day, None)
            return live.public()

    def close_round(self, number: int, *, now: datetime) -> Round:
        """Take no more reports for a round."""
        with self._lock:
            live = self._live(number)
            if live.state == "open":
                day = closing_day(live.opened, now)
                change = _Change()
                with self._transaction() as connection:
                    connection.execute(
                        "update rounds set state = 'closed', closed = ? where number = ?",
                        (day.toordinal(), number),
                    )
                    self._forget_order(connection, live, change, set())
                with self._remembering():
                    self._follow(change)
                    live.state, live.closed = "closed", day
            return live.public()

    def rounds(self) -> list[Round]:
        """Every round, by number."""
        with self._lock:
            self._ready()
            return [live.public() for live in self._rounds.values()]

    def round(self, number: int) -> Round:
        """One round."""
        with self._lock:
            return self._live(number).public()

    def _live(self, number: int) -> Live:
        self._ready()
        if number not in self._rounds:
            raise UnknownRound(
                f"round = {number!r} is not allowed: this store has {len(self._rounds)} rounds"
            )
        return self._rounds[number]

    def survey(self, fingerprint: str) -> Survey:
        """The survey with a fingerprint."""
        with self._lock:
            if fingerprint not in self._surveys:
                if self._connection is None:
                    raise StoreUnavailable(f"{self.path} is closed")
                with told(self.path):
                    row = self._connection.execute(
                        "select document from surveys where fingerprint = ?", (fingerprint,)
                    ).fetchone()
                if row is None:
                    raise InvalidInput.of("fingerprint", fingerprint, "the fingerprint of a round's survey")
                self._surveys[fingerprint] = Survey.from_json(row[0])
            return self._surveys[fingerprint]

    # -- reports ---------------------------------------------------------------------------------------------------

    def write(self, batch: Sequence[Arrival]) -> Written:
        """Store a batch; when `write` returns, the batch is on the disk."""
        rounds = sort_out(batch)
        with self._lock:
            self._ready()
            stored, refused = [False] * len(batch), [False] * len(batch)
            new: list[int] = []
            for number, arrived in rounds.items():
                live = self._rounds.get(number)
                if live is None:
                    raise UnknownRound(f"round = {number!r} is not allowed: there is no such round")
                if live.state != "open":
                    continue
                known = live.ids.find(arrived.ids).tolist()
                new += [place for place, old in zip(arrived.places, known, strict=True) if not old]
            for place, arrival in enumerate(batch):
                refused[place] = self._rounds[arrival.round].state != "open"
            blocks = blocks_of(batch, new)
            check_payloads(blocks, {number: self._rounds[number].survey for number in rounds})
            if blocks:
                self._insert(blocks)
            for place in new:
                stored[place] = True
            return Written(tuple(stored), tuple(refused))

    def write_loads(self, loads: Sequence[Load]) -> list[Outcome]:
        """Store the reports of several requests; when `write_loads` returns, they are on the disk."""
        rounds = prepare(loads)
        stored, refused = np.zeros((2, len(loads)), np.int64)
        with self._lock:
            self._ready()
            blocks: list[Block] = []
            for prepared in rounds:
                live = self._rounds.get(prepared.round)
                if live is None:
                    raise UnknownRound(f"round = {prepared.round!r} is not allowed: there is no such round")
                if live.state != "open":
                    for place in np.unique(prepared.owners).tolist():
                        refused[place] = len(loads[place])
                    continue
                new = ~live.ids.find_bytes(prepared.ids)
                blocks += prepared.blocks(new)
                stored += np.bincount(prepared.owners[new], minlength=len(loads))
            check_payloads(
                blocks, {prepared.round: self._rounds[prepared.round].survey for prepared in rounds}
            )
            if blocks:
                self._insert(blocks)
        return [Outcome(*pair) for pair in zip(stored.tolist(), refused.tolist(), strict=True)]

    def _insert(self, blocks: Sequence[Block]) -> None:
        """New blocks in one transaction, merged with others where there are many small ones or an hour has ended."""
        change = _Change()
        with self._transaction() as connection:
            hours = {(block.round, block.hour) for block in blocks}
            for number in {block.round for block in blocks}:
                self._forget_order(connection, self._rounds[number], change, hours)
            for block in blocks:
                settled = self._settled(connection, block, change)
                if settled is block and level_of(len(block)) == 0:
                    settled = replace(block, number=self._next_fresh + len(change.made))
                change.made.append(settled)
                insert_block(connection, settled)
        with self._remembering():
            self._follow(change)
            for block in blocks:
                live = self._rounds[block.round]
                live.ids.add_bytes(block.id_bytes)
                live.running.add(block.rows(live.survey))

    def _settled(self, connection: sqlite3.Connection, block: Block, change: _Change) -> Block:
        """A small block, with all other small ones if they are many."""
        if level_of(len(block)) == 0:
            small = self._rounds[block.round].level(block.hour, block.source, len(block))
            if len(small) + 1 >= MERGED:
                return joined([*self._removed(connection, small, change), block])
        return block

    def _forget_order(
        self, connection: sqlite3.Connection, live: Live, change: _Change, except_for: set[tuple[int, int]]
    ) -> None:
        """Merge the numbered blocks of hours that have ended: their numbers tell in which order they came."""
        for hour, source in sorted(live.fresh):
            if (live.number, hour) not in except_for:
                others = self._removed(connection, live.fresh[hour, source], change)
                if others:
                    change.made.append(joined(others))
                    insert_block(connection, change.made[-1])

    def _removed(self, connection: sqlite3.Connection, numbers: set[int], change: _Change) -> list[Block]:
        """Blocks that are taken out of the file, to be merged; damaged ones stay, and are not tried again."""
        found = self._read(connection, sorted(numbers))
        numbers.intersection_update({block.number for block in found})
        connection.executemany("delete from blocks where number = ?", [(block.number,) for block in found])
        change.gone += found
        return found

    def _follow(self, change: _Change) -> None:
        for block in change.gone:
            self._rounds[block.round].displace(block)
        for block in change.made:
            self._rounds[block.round].place(block)
            self._next_fresh = (
                max(self._next_fresh, block.number + 1) if block.number >= FRESH else self._next_fresh
            )

    def _place(self, block: Block) -> None:
        self._rounds[block.round].place(block)
        if block.number >= FRESH:
            self._next_fresh = max(self._next_fresh, block.number + 1)

    def _read(self, connection: sqlite3.Connection, numbers: Sequence[int]) -> list[Block]:
        """Blocks by number; a damaged one is noted and left where it is."""
        found = []
        for number in numbers:
            try:
                row = connection.execute(
                    f"select {_COLUMNS} from blocks where number = ?", (number,)
                ).fetchone()
                if row is None:
                    raise FormatError("it is not in the file any more")
                found.append(read_block(row))
            except (FormatError, sqlite3.DatabaseError) as error:
                self._note(Damage(number, None, str(error)))
        return found

    def delete(self, round: int, id: bytes) -> bool:
        """Delete a report, exactly."""
        with self._lock:
            live = self._live(round)
            if live.state == "sealed":
                raise Sealed(
                    f"round {round} is sealed: its reports are gone, and its tally cannot be taken apart"
                )
            if not live.ids.find([id])[0]:
                return False
            connection = self._ready()
            with told(self.path):
                numbers = connection.execute(
                    "select number from blocks where round = ? and instr(ids, ?)", (round, id)
                ).fetchall()
            for block in self._read(connection, [number for (number,) in numbers]):
                if id in block.ids:
                    self._take(live, block, id)
                    return True
            return False

    def _take(self, live: Live, block: Block, id: bytes) -> None:
        rest, gone = without_id(block, id)
        with self._transaction() as connection:
            connection.execute("delete from blocks where number = ?", (block.number,))
            if rest is not None:
                insert_block(connection, rest)
            connection.execute("insert into deleted values (?, ?)", (live.number, id))
        with self._remembering():
            live.displace(block)
            if rest is not None:
                live.place(rest)
            live.running.take(gone.rows(live.survey))
        self._truncate()

    def _truncate(self) -> None:
        """Empty the write-ahead log, which still holds what was deleted; a reader may keep it for a while."""
        if self._connection is not None:
            with told(self.path):
                self._connection.execute("pragma wal_checkpoint(truncate)")

    def _snapshot(self, stack: ExitStack) -> sqlite3.Connection:
        """A reader of the file as it is now; the caller holds the lock."""
        reader = connect(self.path, readonly=True)
        stack.callback(reader.close)
        with told(self.path):
            reader.execute("begin")
            reader.execute("select count(*) from rounds").fetchone()
        return reader

    def blocks(self, round: int, *, on_damage: OnDamage | None = None) -> Iterator[Block]:
        """Every whole block of a round, as it was when the first is asked for."""
        with ExitStack() as stack:
            with self._lock:
                numbers = self._live(round).numbers()
                found = list(self._damage)
                reader = self._snapshot(stack)
            yield from self._verified(reader, round, numbers, found)
        if found and on_damage is None:
            raise Damaged(str(self.path), found)
        for damage in found if on_damage is not None else ():
            on_damage(damage)  # type: ignore[misc]

    def _verified(
        self, reader: sqlite3.Connection, round: int, numbers: set[int], found: list[Damage]
    ) -> Iterator[Block]:
        """Blocks of these numbers; those that are not there any more are appended to `found`, and noted."""
        before, seen = len(found), set()
        with told(self.path):
            for block in scan(reader, lambda damage: None, round):
                seen.add(block.number)
                yield block
        found += [Damage(number, round, "it cannot be read any more") for number in sorted(numbers - seen)]
        with self._lock:
            for damage in found[before:]:
                self._note(damage)

    def arrivals(self, round: int) -> list[Stored]:
        """Stored reports by hour and source."""
        with self._lock:
            return [Stored(*key, n) for key, n in sorted(self._live(round).stored.items()) if n]

    def tally(self, round: int, *, without: Sequence[Quarantine] = ()) -> Tally:
        """The library's own tally of the round."""
        with ExitStack() as stack:
            with self._lock:
                live = self._live(round)
                if live.state == "sealed":
                    return self._sealed_tally(live, sealed_kind(round, without, self.quarantines(round)))
                total = live.running.total()
                if not any(q.covers(hour, source) for q in without for hour, source in live.stored):
                    return total
                reader = self._snapshot(stack)
                numbers = live.numbers()
            blocks = self._verified(reader, round, numbers, [])
            left_out = (b for b in blocks if any(q.covers(b.hour, b.source) for q in without))
            return minus(total, count(left_out, live.survey))

    def _sealed_tally(self, live: Live, kind: str) -> Tally:
        assert self._connection is not None
        with told(self.path):
            row = self._connection.execute(
                "select content from tallies where round = ? and kind = ?", (live.number, kind)
            ).fetchone()
        if row is None:
            raise StoreError(f"{self.path}: the tally of round {live.number} is missing; restore a backup")
        return loads(row[0], live.survey)

    def damage(self) -> list[Damage]:
        """Damaged blocks found so far."""
        with self._lock:
            self._ready()
            return list(self._damage)

    # -- the end ---------------------------------------------------------------------------------------------------

    def seal(self, round: int, *, despite_damage: bool = False) -> Round:
        """Keep only the tally of a closed round."""
        with self._lock:
            live = self._live(round)
            if not check_seal(live.public()):
                return live.public()
            found: list[Damage] = []
            for _ in self.blocks(round, on_damage=found.append):
                pass
            if found and not despite_damage:
                raise Damaged(str(self.path), found)
            total = self.tally(round)
            kept = self.tally(round, without=self.quarantines(round))
            with self._transaction() as connection:
                for kind, tally in (("all", total), ("kept", kept)):
                    connection.execute("insert into tallies values (?, ?, ?)", (round, kind, dumps(tally)))
                connection.execute("update rounds set state = 'sealed' where number = ?", (round,))
                connection.execute("delete from blocks where round = ?", (round,))
                connection.execute("delete from deleted where round = ?", (round,))
            with self._remembering():
                self._rounds[round] = Live(
                    round, live.survey, "sealed", live.opened, live.closed, total.n_reports
                )
            try:
                with told(self.path):
                    shrink(self._ready())
            except (
                StoreUnavailable
            ) as error:  # the rows are overwritten already; only the space is not given back
                _log.warning("%s", error)
            self._truncate()
            return self._rounds[round].public()

    def free_space(self) -> int | None:
        """Bytes free on the disk of the file."""
        return shutil.disk_usage(self.path.absolute().parent).free

    def ping(self) -> None:
        """Return if the file can be read."""
        with self._lock, told(self.path):
            self._ready().execute("select count(*) from rounds").fetchone()

    def close(self) -> None:
        """Write the log into the file and let go of it."""
        with self._lock:
            if self._connection is None:
                return
            try:
                self._truncate()
            except StoreError as error:  # what is in the log stays in the log, and is read from there
                _log.warning("%s", error)
            self._connection = None
            self._closing.close()


@dataclass
class _Change:
    """Blocks that a transaction takes out and puts in."""

    gone: list[Block] = field(default_factory=list)
    made: list[Block] = field(default_factory=list)


def _date(ordinal: int) -> date:
    return date.fromordinal(ordinal)
