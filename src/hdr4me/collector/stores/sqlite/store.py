"""The store in one SQLite file: one process, one writer, every commit on the disk before it is acknowledged.

The ids are in memory, so no index of random ids slows the writer down. A small block is appended under the next number.
When there are many of them they are merged under a random number, which removes the order of arrival; `maintain` merges
the others, in steps, when the hour is over or the round is closed.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.client.lock import locked
from hdr4me.collector.batch import (
    FRESH,
    ID_SIZE,
    Batch,
    Block,
    block_of,
    grouped,
    hour_now,
    joined,
    without_id,
)
from hdr4me.collector.errors import Damage, OnDamage, StoreBusy, StoreError, StoreUnavailable, UnknownRound
from hdr4me.collector.stores import protocol
from hdr4me.collector.stores.memory import SMALL, IdSet, Live, count, is_small, minus
from hdr4me.collector.stores.protocol import Quarantine, Round, Rows, Store, Stored, log
from hdr4me.collector.stores.sqlite import database as files
from hdr4me.collector.stores.sqlite.database import INSERT_BLOCK, check_structure, read_numbers, scan
from hdr4me.errors import LedgerBusy
from hdr4me.survey import Survey
from hdr4me.tally import Tally
from hdr4me.tally.file import dumps

_DELETED = (1 << 32) - 1  # the owner of ids whose reports are deleted
_LAST_HOUR = 1 << 31


@dataclass
class _Change:
    """The blocks that a transaction adds, and those that it removes with the block of their ids now."""

    made: list[Block] = field(default_factory=list)
    moved: list[tuple[Block, Block | None]] = field(default_factory=list)


class SqliteStore(Store):
    """Reports in an SQLite file (see `Store`); memory grows with the ids of the stored reports (see `IdSet`)."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(str(path))
        self.path = files.real_path(path)
        self._lock = threading.RLock()
        self._live: dict[int, Live] = {}
        self._next_fresh = FRESH
        self._loaded = self._stale_log = self._appended = False
        lock = files.lock_file(self.path)
        try:
            with ExitStack() as stack:
                stack.enter_context(locked(lock, 0.0))
                files.check_log(self.path)
                files.create(self.path)
                stack.enter_context(files.locked_inode(self.path, wait=0.5))  # of `check_log`
                self._connection: sqlite3.Connection | None = files.connect(self.path)
                stack.callback(self._connection.close)
                with files.store_errors(self.path):
                    self.schema_version = files.prepare(self._connection, self.path)
                self._ready()
                lock.write_bytes(self.id.encode())
                self._closing = stack.pop_all()
        except (LedgerBusy, BlockingIOError):
            raise StoreBusy(
                f"{path} is open in another process: SQLite has one writer; stop that process, or use PostgreSQL"
            ) from None
        except OSError as error:
            raise StoreUnavailable(f"{path} cannot be opened: {error.strerror}") from error

    def _ready(self) -> sqlite3.Connection:
        """The connection, after the file was read again if the memory may be wrong."""
        if self._connection is None:
            raise StoreUnavailable(f"{self.path} is closed")
        if not self._loaded:
            with files.store_errors(self.path):
                self._load(self._connection)
            self._loaded = True
        return self._connection

    def _load(self, connection: sqlite3.Connection) -> None:
        """Read rounds, ids, tallies and blocks into memory, and note all damage."""

        def rows(sql: str, *values: Any) -> Rows:
            return connection.execute(sql, values).fetchall()

        self._damage, self._live, self._next_fresh = {}, {}, FRESH
        for number, fingerprint, state, opened, closed in rows(
            "select number, fingerprint, state, opened, closed from rounds order by number"
        ):
            survey, day = self.survey(fingerprint, rows), date.fromordinal
            live = Live(number, survey, state, day(opened), closed and day(closed))
            if state == "finalized":
                live.finalized_reports = self._stored_tally(number, survey, "all", rows).n_reports
            self._live[number] = live
        # Ids and their owner.
        owned: dict[int, list[tuple[bytes, int]]] = {number: [] for number in self._live}
        check_structure(connection, self._note)
        for block in scan(connection, self._note):
            if block.round not in self._live:
                self._note(Damage(block.number, block.round, "its round does not exist"))
                continue
            self._place(block)
            live = self._live[block.round]
            live.running.add(block.rows(live.survey))
            owned[block.round].append((block.id_bytes, live.own(block.number)))
        for number, id in connection.execute("select round, id from deleted"):
            owned.setdefault(number, []).append((id, _DELETED))
        for number, live in self._live.items():
            ids = b"".join([some for some, _ in owned[number]])
            sizes = [len(some) // ID_SIZE for some, _ in owned[number]]
            live.ids.add(ids, np.repeat(np.array([owner for _, owner in owned[number]], np.uint32), sizes))
            if len(live.ids) < len(ids) // ID_SIZE:
                self._remove_repeated(connection, number)
                self._load(connection)
                return

    def _remove_repeated(self, connection: sqlite3.Connection, round: int) -> None:
        """Keep one of several reports with the same id, and none that was deleted: a second writer stored them."""
        known, numbers = IdSet(), [block.number for block in scan(connection, self._note, round)]
        with files.transaction(connection, self.path):
            for (id,) in connection.execute("select id from deleted where round = ?", (round,)):
                known.add(id)
            for block in read_numbers(connection, numbers, self._note):
                new = ~known.find(block.id_bytes)
                pairs = {id: p for id, p, one in zip(block.ids, block.payloads, new, strict=True) if one}
                known.add(b"".join(pairs))
                if len(pairs) < len(block):
                    log.error("%s: %d reports are stored twice", self.name, len(block) - len(pairs))
                    connection.execute("delete from blocks where number = ?", (block.number,))
                    if pairs:
                        rest = block_of(round, block.hour, block.source, pairs.items())
                        connection.execute(INSERT_BLOCK, rest.row())

    def _place(self, block: Block) -> None:
        self._live[block.round].place(block)
        if block.number >= FRESH:
            self._next_fresh = max(self._next_fresh, block.number + 1)

    def _of(self, number: int) -> Live:
        """A round in memory; UnknownRound if there is none."""
        self._ready()
        if number not in self._live:
            raise UnknownRound(number)
        return self._live[number]

    def _transaction(self) -> AbstractContextManager[sqlite3.Connection]:
        return files.transaction(self._ready(), self.path)

    @contextmanager
    def _remembering(self) -> Iterator[None]:
        """Update the memory after a commit; if that fails half way, the file is read again before the next use."""
        self._loaded = False
        yield
        self._loaded = True

    def _rows(self, sql: str, *values: Any) -> Rows:
        with self._lock, self._transaction() as connection:
            return connection.execute(sql, values).fetchall()

    def open_round(self, survey: Survey, *, now: datetime) -> Round:
        day = protocol.day_of(now)
        with self._lock:
            self._ready()
            number = max(self._live, default=0) + 1
            with self._transaction() as connection:
                connection.execute(protocol.ADD_SURVEY, (survey.fingerprint, survey.to_json()))
                connection.execute(protocol.ADD_ROUND, (number, survey.fingerprint, day.toordinal()))
            self._surveys[survey.fingerprint] = survey
            live = self._live[number] = Live(number, survey, "open", day, None)
            return live.public()

    def close_round(self, number: int, *, now: datetime) -> Round:
        with self._lock:
            live = self._of(number)
            if live.state == "open":
                day = max(live.opened, protocol.day_of(now))
                with self._transaction() as connection:
                    connection.execute(protocol.CLOSE_ROUND, (day.toordinal(), number))
                live.state, live.closed = "closed", day
            return live.public()

    def correct_dates(self, day: date) -> None:
        for name in ("opened", "closed"):
            self._rows(f"update rounds set {name} = ? where {name} > ?", *[day.toordinal()] * 2)
        with self._lock:
            for live in self._live.values():
                live.opened, live.closed = min(live.opened, day), live.closed and min(live.closed, day)

    def rounds(self) -> list[Round]:
        with self._lock:
            self._ready()
            return [live.public() for live in self._live.values()]

    def round(self, number: int) -> Round:
        with self._lock:
            return self._of(number).public()

    def write(self, batches: Sequence[Batch]) -> None:
        groups = grouped(batches)
        with self._lock:
            blocks, news = [], []
            for group in groups:
                live = self._of(group.round)
                if live.state == "open":
                    new = ~live.ids.find(group.ids)
                    blocks += group.blocks(new, live.survey)
                    news.append((group, new))
                else:
                    group.refuse()
            if blocks:
                self._insert(blocks)
        for group, new in news:
            group.acknowledge(new)

    def _insert(self, blocks: Sequence[tuple[Block, NDArray[np.uint8]]]) -> None:
        """Add new blocks in one transaction, merged with others if many are small."""
        change = _Change()
        with self._transaction() as connection:
            for block, _ in blocks:
                made = self._merged(connection, block, change)
                change.made.append(made)
                connection.execute(INSERT_BLOCK, made.row())
        self._appended = True
        with self._remembering():
            self._follow(change)
            for (block, rows), made in zip(blocks, change.made, strict=True):
                live = self._live[block.round]
                live.ids.add(block.id_bytes, live.own(made.number))
                live.running.add(rows)

    def _merged(self, connection: sqlite3.Connection, block: Block, change: _Change) -> Block:
        """A small new block under the next number, or merged with the other numbered ones if they are many."""
        if not is_small(block):
            return block
        live = self._live[block.round]
        fresh = live.fresh.get((block.hour, block.source), set())
        if len(fresh) + 1 >= SMALL:
            others = self._removed(connection, live, fresh)
            made = joined([*others, block])
            change.moved += [(other, made) for other in others]
            return made
        return replace(block, number=self._next_fresh + len(change.made))

    def maintain(self) -> bool:
        """Merge the numbered blocks of one hour and source that are over; then empty the log of deleted rows."""
        if self._forget_order(hour_now()):
            return True
        if self._stale_log:
            self._stale_log = not self._emptied_log()
        return False

    def _forget_order(self, hour: int) -> bool:
        """Merge numbered blocks of one source in an hour before `hour`: their numbers reveal the order of arrival."""
        with self._lock:
            self._ready()
            for live in self._live.values():
                for (its_hour, _), numbers in live.fresh.items():
                    if its_hour < hour or live.state != "open":
                        self._merge(live, set(sorted(numbers)[:SMALL]))
                        return True
        return False

    def _merge(self, live: Live, numbers: set[int]) -> None:
        change = _Change()
        with self._transaction() as connection:
            others = self._removed(connection, live, numbers)
            if others:
                change.made.append(joined(others))
                change.moved = [(other, change.made[0]) for other in others]
                connection.execute(INSERT_BLOCK, change.made[0].row())
        with self._remembering():
            self._follow(change)

    def _emptied_log(self) -> bool:
        """Empty the write-ahead log, which still holds deleted rows; False while a reader or a writer uses it."""
        with files.store_errors(self.path), closing(files.connect(self.path)) as connection:
            connection.execute("pragma busy_timeout = 0")
            return bool(connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0] == 0)

    def _removed(self, connection: sqlite3.Connection, live: Live, numbers: set[int]) -> list[Block]:
        """Blocks that are removed from the file to be merged; damaged ones stay and are not tried again."""
        found = read_numbers(connection, sorted(numbers), self._note)
        damaged = numbers - {block.number for block in found}
        live.blocks -= damaged
        if damaged:
            live.fresh = {key: rest for key, of_key in live.fresh.items() if (rest := of_key - damaged)}
        connection.executemany("delete from blocks where number = ?", [(block.number,) for block in found])
        return found

    def _follow(self, change: _Change) -> None:
        """Update the memory after a commit."""
        for block, _ in change.moved:
            self._live[block.round].displace(block)
        for block in change.made:
            self._place(block)
        for block, target in change.moved:
            self._live[block.round].move(block.number, None if target is None else target.number)

    def delete(self, round: int, id: bytes) -> bool:
        with self._lock:
            live = self._of(round)
            protocol.check_delete(round, live.state, id)
            owner = live.ids.owner(id)
            if owner is None or owner == _DELETED or live.owners[owner] < 0:
                return False
            with self._transaction() as connection:
                found = [b for b in read_numbers(connection, [live.owners[owner]], self._note) if id in b.ids]
                if not found:
                    return False
                rest, gone = without_id(found[0], id)
                change = _Change([] if rest is None else [rest], [(found[0], rest)])
                connection.execute("delete from blocks where number = ?", (found[0].number,))
                for block in change.made:
                    connection.execute(INSERT_BLOCK, block.row())
                connection.execute("insert into deleted values (?, ?)", (round, id))
            with self._remembering():
                self._follow(change)
                live.running.subtract(count([gone], live.survey))
            self._stale_log = True
            return True

    def _snapshot(self, stack: ExitStack) -> sqlite3.Connection:
        """A reader of the file as it is now; the reader itself is used without the lock."""
        reader = files.connect(self.path, readonly=True)
        stack.callback(reader.close)
        with files.store_errors(self.path):
            reader.execute("begin")
            reader.execute("select count(*) from rounds").fetchone()
        return reader

    def blocks(self, round: int, *, on_damage: OnDamage | None = None) -> Iterator[Block]:
        with ExitStack() as stack:
            with self._lock:
                numbers, found = set(self._of(round).blocks), self.damage()
                reader = self._snapshot(stack)
            yield from self._verified(reader, round, numbers, found)
        self._report(found, on_damage)

    def _verified(
        self, reader: sqlite3.Connection, round: int, numbers: set[int], found: list[Damage]
    ) -> Iterator[Block]:
        """The blocks of a round; those of `numbers` that are unreadable are appended to `found`."""
        seen = set()
        with files.store_errors(self.path):
            for block in scan(reader, lambda damage: None, round):
                seen.add(block.number)
                yield block
        found += [Damage(number, round, "it is no longer readable") for number in sorted(numbers - seen)]

    def arrivals(self, round: int) -> list[Stored]:
        with self._lock:
            return [Stored(*key, n) for key, n in sorted(self._of(round).stored.items()) if n]

    def tally(self, round: int, *, without: Sequence[Quarantine] = ()) -> Tally:
        with ExitStack() as stack:
            with self._lock:
                live = self._of(round)
                if live.state == "finalized":
                    return self._finalized_tally(round, live.survey, without)
                total = live.running.total()
                if not any(protocol.covered(without, *key) for key in live.stored):
                    return total
                reader, numbers = self._snapshot(stack), set(live.blocks)
            damage: list[Damage] = []
            every = self._verified(reader, round, numbers, damage)
            left_out = (block for block in every if protocol.covered(without, block.hour, block.source))
            rest = minus(total, count(left_out, live.survey))
        self._report(damage, self._note)
        return rest

    def finalize(self, round: int, *, despite_damage: bool = False) -> Round:
        with self._lock:
            live = self._of(round)
            if not protocol.check_finalize(live.public()):
                return live.public()
            for _ in self.blocks(round, on_damage=self._note if despite_damage else None):
                pass
            total = self.tally(round)
            kept = self.tally(round, without=self.quarantines(round))
            with self._transaction() as connection:
                for kind, tally in (("all", total), ("kept", kept)):
                    connection.execute("insert into tallies values (?, ?, ?)", (round, kind, dumps(tally)))
                connection.execute(protocol.FINALIZE_ROUND, (round,))
                for table in ("blocks", "deleted"):
                    connection.execute(f"delete from {table} where round = ?", (round,))
            with self._remembering():
                finalized = Live(round, live.survey, "finalized", live.opened, live.closed, total.n_reports)
                self._live[round] = finalized
            connection = self._ready()
            if 2 * files.pragma(connection, "freelist_count") > files.pragma(connection, "page_count"):
                self._rewrite(connection)
            self._stale_log = not self._emptied_log()
            return finalized.public()

    def _rewrite(self, connection: sqlite3.Connection) -> None:
        """Write the file in the order of the random block numbers, without the space of deleted rows."""
        try:
            with files.store_errors(self.path):
                connection.execute("vacuum")
        except StoreUnavailable as error:  # deleted rows are overwritten already
            log.warning("%s", error)

    def free_space(self) -> int | None:
        return shutil.disk_usage(self.path.absolute().parent).free

    def close(self) -> None:
        with self._lock:
            if self._connection is None:
                return
            try:
                while self._forget_order(_LAST_HOUR):
                    pass
                if self._appended:  # new blocks are at the end of the file, in the order of arrival
                    self._rewrite(self._connection)
                self._emptied_log()
            except StoreError as error:  # the log stays, and is read from there
                log.warning("%s", error)
            self._connection = None
            self._closing.close()
