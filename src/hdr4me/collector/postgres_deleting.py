"""One report deleted from the PostgreSQL store: from its block, and from the stored tally if it is counted there."""

from __future__ import annotations

from hdr4me.collector.blocks import Block, without_id
from hdr4me.collector.counting import count, minus
from hdr4me.collector.postgres_handle import PostgresHandle
from hdr4me.collector.postgres_link import Connection, Ids
from hdr4me.collector.postgres_locks import hold_counts, share_state
from hdr4me.collector.postgres_rounds import one_round
from hdr4me.collector.postgres_rows import insert_block, put_tally, read_blocks, stored_tally
from hdr4me.collector.rounds import check_delete
from hdr4me.errors import InvalidInput
from hdr4me.survey import Survey

__all__ = ["delete"]


def delete(handle: PostgresHandle, round: int, id: bytes) -> bool:
    """Delete a report, exactly; False if it is not stored."""

    def work(connection: Connection) -> bool:
        share_state(connection, round)
        hold_counts(connection, round)
        found = one_round(handle, connection, round)
        check_delete(round, found.state)
        known = connection.execute(
            "select 1 from ids where round = %s and id = any(%b)", (round, Ids([id]))
        ).fetchone()
        if known is None:
            return False
        condition = "round = %s and position(%b in ids) > 0"
        for block in read_blocks(connection, handle.damage.note, condition, round, id):
            if id in block.ids:
                _take(handle, connection, block, id, handle.survey(connection, found.fingerprint))
                return True
        return False

    if type(id) is not bytes or len(id) != 16:
        raise InvalidInput.of("id", id, "16 bytes")
    return handle.link.run(work)


def _take(handle: PostgresHandle, connection: Connection, block: Block, id: bytes, survey: Survey) -> None:
    """Write the block without the report; the id stays known."""
    rest, gone = without_id(block, id)
    key = (block.round, block.number)
    waiting = connection.execute("delete from pending where round = %s and number = %s returning 1", key)
    counted = waiting.fetchone() is None
    connection.execute("delete from blocks where round = %s and number = %s", key)
    if rest is not None:
        insert_block(connection, rest, pending=not counted)
    if counted:
        running = stored_tally(connection, handle.link.name, block.round, survey, "running")
        put_tally(connection, block.round, "running", minus(running, count([gone], survey)))
