"""The store in PostgreSQL: several workers may write at once, and the database decides which id came first.

A write inserts the ids of a batch, sorted, as one binary parameter; those that were not there come back and become
blocks, in the same transaction. Counted blocks are merged into larger ones, and their counts into one stored tally.

The class here names what a store can do. Each part is a file: `postgres_link` (connections), `postgres_handle` (what
every part needs), `postgres_rows` and `postgres_locks` (the tables, and who waits for whom), `postgres_rounds`,
`postgres_writing`, `postgres_merging`, `postgres_reading`, `postgres_deleting` and `postgres_sealing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from hdr4me.collector import (
    postgres_deleting,
    postgres_merging,
    postgres_reading,
    postgres_rounds,
    postgres_sealing,
    postgres_writing,
)
from hdr4me.collector.blocks import Block
from hdr4me.collector.damage import DamageLog
from hdr4me.collector.loads import Load, Outcome, write_one_by_one
from hdr4me.collector.postgres_handle import PostgresHandle
from hdr4me.collector.postgres_link import Connection, Link
from hdr4me.collector.postgres_merging import FOLD
from hdr4me.collector.statements import for_postgres
from hdr4me.collector.store import Arrival, Damage, OnDamage, Quarantine, Round, Stored, Written
from hdr4me.collector.tables import Tables
from hdr4me.survey import Survey
from hdr4me.tally import Tally

__all__ = ["FOLD", "PostgresStore"]


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
        link = Link(url)
        self._handle = PostgresHandle(link, fold, DamageLog(link.name))
        try:
            self.schema_version = link.prepare()
        except BaseException:
            link.close()
            raise

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        def work(connection: Connection) -> list[tuple[Any, ...]]:
            cursor = connection.execute(for_postgres(sql), values)
            return cursor.fetchall() if cursor.description else []

        return self._handle.link.run(work)

    # -- rounds ----------------------------------------------------------------------------------------------------

    def open_round(self, survey: Survey, *, now: datetime) -> Round:
        """Open the next round, for this survey."""
        return self.round(postgres_rounds.open_round(self._handle, survey, now))

    def close_round(self, number: int, *, now: datetime) -> Round:
        """Take no more reports for a round."""
        postgres_rounds.close_round(self._handle, number, now)
        return self.round(number)

    def rounds(self) -> list[Round]:
        """Every round, by number."""
        return self._handle.link.run(lambda connection: postgres_rounds.all_rounds(self._handle, connection))

    def round(self, number: int) -> Round:
        """One round."""
        return self._handle.link.run(
            lambda connection: postgres_rounds.one_round(self._handle, connection, number)
        )

    def survey(self, fingerprint: str) -> Survey:
        """The survey with a fingerprint."""
        found = self._handle.surveys.get(fingerprint)
        return found or self._handle.link.run(lambda connection: self._handle.survey(connection, fingerprint))

    # -- reports ---------------------------------------------------------------------------------------------------

    def write(self, batch: Sequence[Arrival]) -> Written:
        """Store a batch; when `write` returns, the batch is on the database's disk."""
        return postgres_writing.write(self._handle, batch)

    def write_loads(self, loads: Sequence[Load]) -> list[Outcome]:
        """Store the reports of several requests; when `write_loads` returns, they are on the database's disk."""
        return write_one_by_one(self.write, loads)

    def delete(self, round: int, id: bytes) -> bool:
        """Delete a report, exactly."""
        return postgres_deleting.delete(self._handle, round, id)

    def blocks(self, round: int, *, on_damage: OnDamage | None = None) -> Iterator[Block]:
        """Every whole block of a round, as it was when the first is asked for."""
        return postgres_reading.blocks(self._handle, round, on_damage)

    def arrivals(self, round: int) -> list[Stored]:
        """Stored reports by hour and source."""
        return [Stored(*row) for row in self._rows(postgres_reading.ARRIVALS, round)]

    def tally(self, round: int, *, without: Sequence[Quarantine] = ()) -> Tally:
        """The library's own tally of the round: the stored one, and what waits."""
        return postgres_reading.tally(self._handle, round, without, self.quarantines)

    def fold(self, round: int) -> None:
        """Merge the counts of waiting blocks into the stored tally, and the blocks into larger ones."""
        postgres_merging.fold(self._handle, round)

    def damage(self) -> list[Damage]:
        """Damaged blocks found so far, by this process."""
        return self._handle.damage.all()

    # -- the end ---------------------------------------------------------------------------------------------------

    def seal(self, round: int, *, despite_damage: bool = False) -> Round:
        """Keep only the tally of a closed round."""
        postgres_sealing.seal(self._handle, round, despite_damage, self.quarantines(round))
        return self.round(round)

    def free_space(self) -> int | None:
        """Not known: the database may be on another machine."""
        return None

    def ping(self) -> None:
        """Return if the database answers."""
        self._rows("select 1")

    def close(self) -> None:
        """Close the connections."""
        self._handle.link.close()
