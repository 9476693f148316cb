"""Counted blocks of the PostgreSQL store merged into larger ones, and their counts into one stored tally."""

from __future__ import annotations

from hdr4me.collector.blocks import Block, joined
from hdr4me.collector.counting import count
from hdr4me.collector.postgres_handle import PostgresHandle
from hdr4me.collector.postgres_link import Connection
from hdr4me.collector.postgres_locks import hold_counts
from hdr4me.collector.postgres_rounds import one_round
from hdr4me.collector.postgres_rows import insert_block, put_tally, read_blocks, stored_tally

__all__ = ["FOLD", "fold"]

FOLD = 1 << 15
"""So many reports wait before their counts are merged into the stored tally."""

_MOST_FOLDED = 1 << 18
"""Reports that are merged at once: they are held in memory."""


def fold(handle: PostgresHandle, round: int) -> None:
    """Merge the counts of waiting blocks into the stored tally, and the blocks into larger ones."""

    def work(connection: Connection) -> None:
        hold_counts(connection, round)
        found = one_round(handle, connection, round)
        if found.sealed:
            return
        survey = handle.survey(connection, found.fingerprint)
        chosen, reports = [], 0
        for number, n in connection.execute("select number, n from pending where round = %s", (round,)):
            if reports < _MOST_FOLDED:
                chosen.append(number)
                reports += n
        condition = "round = %s and number = any(%s)"
        blocks = list(read_blocks(connection, handle.damage.note, condition, round, chosen))
        if not blocks:
            return
        numbers = [block.number for block in blocks]
        running = stored_tally(connection, handle.link.name, round, survey, "running")
        put_tally(connection, round, "running", running + count(blocks, survey))
        connection.execute(f"delete from pending where {condition}", (round, numbers))
        connection.execute(f"delete from blocks where {condition}", (round, numbers))
        groups: dict[tuple[int, int], list[Block]] = {}
        for block in blocks:
            groups.setdefault((block.hour, block.source), []).append(block)
        for group in groups.values():
            insert_block(connection, joined(group), pending=False)

    handle.link.run(work)
