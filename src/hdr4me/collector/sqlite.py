"""The store in one SQLite file: one process, one writer, every commit on the disk before it is acknowledged.

A write is one transaction that appends blocks; which ids are stored is known in memory, so no index of random ids
slows the writer down. A small block is appended under the next number, so that a write touches one page or two; when
there are many, or the hour is over, they are merged under a random number, and the order of arrival is gone.

The class here names what a store can do. Each part is a file: `sqlite_handle` (the open file, its lock and its
transactions), `sqlite_loading` and `sqlite_state` (what is known in memory), `sqlite_rounds`, `sqlite_writing`,
`sqlite_merging`, `sqlite_reading`, `sqlite_deleting`, `sqlite_sealing`, and `sqlite_file` (SQLite itself).
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from hdr4me.collector import (
    sqlite_deleting,
    sqlite_reading,
    sqlite_rounds,
    sqlite_sealing,
    sqlite_writing,
)
from hdr4me.collector.blocks import Block
from hdr4me.collector.loads import Load, Outcome
from hdr4me.collector.migrations import SQLITE
from hdr4me.collector.sqlite_file import told
from hdr4me.collector.sqlite_handle import SqliteHandle
from hdr4me.collector.store import Arrival, Damage, OnDamage, Quarantine, Round, Stored, Written
from hdr4me.collector.tables import Tables
from hdr4me.survey import Survey
from hdr4me.tally import Tally

__all__ = ["SqliteStore"]


class SqliteStore(Tables):
    """Reports in an SQLite file (see `Store`).

    Memory: 16 bytes for the id of each stored report and about 20 MB; see `hdr4me.collector.ids`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._handle = SqliteHandle(path, SQLITE)
        self.path = self._handle.path
        self.schema_version = self._handle.schema_version

    @property
    def _connection(self) -> sqlite3.Connection | None:
        """The connection; None when the store is closed."""
        return self._handle.connection

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._handle.lock, self._handle.transaction() as connection:
            return connection.execute(sql, values).fetchall()

    # -- rounds ----------------------------------------------------------------------------------------------------

    def open_round(self, survey: Survey, *, now: datetime) -> Round:
        """Open the next round, for this survey."""
        return sqlite_rounds.open_round(self._handle, survey, now)

    def close_round(self, number: int, *, now: datetime) -> Round:
        """Take no more reports for a round."""
        return sqlite_rounds.close_round(self._handle, number, now)

    def rounds(self) -> list[Round]:
        """Every round, by number."""
        with self._handle.lock:
            self._handle.ready()
            return [live.public() for live in self._handle.memory.rounds.values()]

    def round(self, number: int) -> Round:
        """One round."""
        with self._handle.lock:
            return self._handle.live(number).public()

    def survey(self, fingerprint: str) -> Survey:
        """The survey with a fingerprint."""
        return self._handle.survey(fingerprint)

    # -- reports ---------------------------------------------------------------------------------------------------

    def write(self, batch: Sequence[Arrival]) -> Written:
        """Store a batch; when `write` returns, the batch is on the disk."""
        return sqlite_writing.write(self._handle, batch)

    def write_loads(self, loads: Sequence[Load]) -> list[Outcome]:
        """Store the reports of several requests; when `write_loads` returns, they are on the disk."""
        return sqlite_writing.write_loads(self._handle, loads)

    def delete(self, round: int, id: bytes) -> bool:
        """Delete a report, exactly."""
        return sqlite_deleting.delete(self._handle, round, id)

    def blocks(self, round: int, *, on_damage: OnDamage | None = None) -> Iterator[Block]:
        """Every whole block of a round, as it was when the first is asked for."""
        return sqlite_reading.blocks(self._handle, round, on_damage)

    def arrivals(self, round: int) -> list[Stored]:
        """Stored reports by hour and source."""
        return sqlite_reading.arrivals(self._handle, round)

    def tally(self, round: int, *, without: Sequence[Quarantine] = ()) -> Tally:
        """The library's own tally of the round."""
        return sqlite_reading.tally(self._handle, round, without, self.quarantines)

    def damage(self) -> list[Damage]:
        """Damaged blocks found so far."""
        with self._handle.lock:
            self._handle.ready()
            return self._handle.damage.all()

    # -- the end ---------------------------------------------------------------------------------------------------

    def seal(self, round: int, *, despite_damage: bool = False) -> Round:
        """Keep only the tally of a closed round."""
        return sqlite_sealing.seal(self._handle, round, despite_damage, self.quarantines)

    def free_space(self) -> int | None:
        """Bytes free on the disk of the file."""
        return shutil.disk_usage(self.path.absolute().parent).free

    def ping(self) -> None:
        """Return if the file can be read."""
        with self._handle.lock, told(self.path):
            self._handle.ready().execute("select count(*) from rounds").fetchone()

    def close(self) -> None:
        """Write the log into the file and let go of it."""
        self._handle.close()
