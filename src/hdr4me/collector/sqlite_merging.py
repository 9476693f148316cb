"""Small blocks of the SQLite store merged into larger ones, inside the transaction of whoever asks for it.

A merge happens when an hour and a source have many small blocks, or when the hour is over: the numbers of small blocks
tell in which order they came, and the random number of a merged block does not.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field

from hdr4me.collector.blocks import Block, joined
from hdr4me.collector.sqlite_file import insert_block
from hdr4me.collector.sqlite_handle import SqliteHandle
from hdr4me.collector.sqlite_reading import read_numbers
from hdr4me.collector.sqlite_state import MERGED, Live, Memory, level_of

__all__ = ["Change", "follow", "forget_order", "settled"]


@dataclass
class Change:
    """Blocks that a transaction takes out and puts in."""

    gone: list[Block] = field(default_factory=list)
    made: list[Block] = field(default_factory=list)


def settled(handle: SqliteHandle, connection: sqlite3.Connection, block: Block, change: Change) -> Block:
    """A small block joined with all other small ones of its hour and source if they are many, else the block itself.

    `block` is not yet in the file; blocks that are taken out of the file are appended to `change`.
    """
    if level_of(len(block)) == 0:
        small = handle.memory.rounds[block.round].level(block.hour, block.source, len(block))
        if len(small) + 1 >= MERGED:
            return joined([*_removed(handle, connection, small, change), block])
    return block


def forget_order(
    handle: SqliteHandle,
    connection: sqlite3.Connection,
    live: Live,
    change: Change,
    except_for: set[tuple[int, int]],
) -> None:
    """Merge the numbered blocks of hours that have ended: their numbers tell in which order they came.

    Parameters
    ----------
    handle
        The store.
    connection
        In a transaction.
    live
        The round.
    change
        What the transaction did so far; the merged blocks and those in their place are appended.
    except_for
        Rounds and hours that have not ended.
    """
    for hour, source in sorted(live.fresh):
        if (live.number, hour) not in except_for:
            others = _removed(handle, connection, live.fresh[hour, source], change)
            if others:
                change.made.append(joined(others))
                insert_block(connection, change.made[-1])


def _removed(
    handle: SqliteHandle, connection: sqlite3.Connection, numbers: set[int], change: Change
) -> list[Block]:
    """Blocks that are taken out of the file, to be merged; damaged ones stay, and are not tried again."""
    found = read_numbers(handle, connection, sorted(numbers))
    numbers.intersection_update({block.number for block in found})
    connection.executemany("delete from blocks where number = ?", [(block.number,) for block in found])
    change.gone += found
    return found


def follow(memory: Memory, change: Change) -> None:
    """Know in memory what a transaction changed, after its commit."""
    for block in change.gone:
        memory.displace(block)
    for block in change.made:
        memory.place(block)
