"""One report deleted from the SQLite store: from its block, from the tally, and from the write-ahead log."""

from __future__ import annotations

from hdr4me.collector.blocks import Block, without_id
from hdr4me.collector.rounds import check_delete
from hdr4me.collector.sqlite_file import insert_block, told
from hdr4me.collector.sqlite_handle import SqliteHandle
from hdr4me.collector.sqlite_reading import read_numbers
from hdr4me.collector.sqlite_state import Live

__all__ = ["delete"]


def delete(handle: SqliteHandle, round: int, id: bytes) -> bool:
    """Delete a report, exactly; False if it is not stored."""
    with handle.lock:
        live = handle.live(round)
        check_delete(round, live.state)
        if not live.ids.find([id])[0]:
            return False
        connection = handle.ready()
        with told(handle.path):
            numbers = connection.execute(
                "select number from blocks where round = ? and instr(ids, ?)", (round, id)
            ).fetchall()
        for block in read_numbers(handle, connection, [number for (number,) in numbers]):
            if id in block.ids:
                _take(handle, live, block, id)
                return True
        return False


def _take(handle: SqliteHandle, live: Live, block: Block, id: bytes) -> None:
    """Write the block without the report; the id stays known."""
    rest, gone = without_id(block, id)
    with handle.transaction() as connection:
        connection.execute("delete from blocks where number = ?", (block.number,))
        if rest is not None:
            insert_block(connection, rest)
        connection.execute("insert into deleted values (?, ?)", (live.number, id))
    with handle.remembering():
        live.displace(block)
        if rest is not None:
            live.place(rest)
        live.running.take(gone.rows(live.survey))
    handle.truncate()
