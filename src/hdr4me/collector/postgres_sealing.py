"""A closed round of the PostgreSQL store sealed: its tallies stay, its blocks and ids are dropped."""

from __future__ import annotations

from collections.abc import Sequence

from hdr4me.collector.counting import Running
from hdr4me.collector.postgres_handle import PostgresHandle
from hdr4me.collector.postgres_link import Connection
from hdr4me.collector.postgres_reading import blocks_of_round
from hdr4me.collector.postgres_rounds import locked_round
from hdr4me.collector.postgres_rows import put_tally
from hdr4me.collector.rounds import check_seal, in_quarantine
from hdr4me.collector.statements import SEAL_ROUND, for_postgres
from hdr4me.collector.store import Damage, Damaged, Quarantine

__all__ = ["seal"]


def seal(handle: PostgresHandle, round: int, despite_damage: bool, quarantines: Sequence[Quarantine]) -> None:
    """Keep only the tally of a closed round (see `Store.seal`); `quarantines` is what is in quarantine."""

    def work(connection: Connection) -> None:
        connection.execute("set local lock_timeout = '10s'")
        found = locked_round(handle, connection, round)
        if not check_seal(found):
            return
        survey = handle.survey(connection, found.fingerprint)
        damage: list[Damage] = []
        total, kept = Running(survey), Running(survey)
        for block in blocks_of_round(handle, connection, round, damage):
            rows = block.rows(survey)
            total.add(rows)
            if not in_quarantine(quarantines, block.hour, block.source):
                kept.add(rows)
        if damage and not despite_damage:
            raise Damaged(handle.link.name, damage)
        put_tally(connection, round, "all", total.total())
        put_tally(connection, round, "kept", kept.total())
        connection.execute("delete from tallies where round = %s and kind = 'running'", (round,))
        connection.execute("delete from pending where round = %s", (round,))
        connection.execute(for_postgres(SEAL_ROUND), (round,))
        connection.execute(f"drop table blocks_{int(round)}, ids_{int(round)}")

    handle.link.run(work)
