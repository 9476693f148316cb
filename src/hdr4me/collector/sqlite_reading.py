"""Blocks and tallies read from the SQLite store: from a snapshot of the file, while the writer goes on."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from hdr4me.collector.blocks import Block, read_block
from hdr4me.collector.counting import count, minus
from hdr4me.collector.damage import hand_over
from hdr4me.collector.rounds import in_quarantine, sealed_kind
from hdr4me.collector.sqlite_file import scan, told
from hdr4me.collector.sqlite_handle import SqliteHandle
from hdr4me.collector.sqlite_loading import sealed_tally
from hdr4me.collector.statements import BLOCK_COLUMNS
from hdr4me.collector.store import Damage, OnDamage, Quarantine, Stored
from hdr4me.errors import FormatError
from hdr4me.tally import Tally

__all__ = ["arrivals", "blocks", "read_numbers", "tally"]


def blocks(handle: SqliteHandle, round: int, on_damage: OnDamage | None) -> Iterator[Block]:
    """Every whole block of a round, as it was when the first is asked for."""
    with ExitStack() as stack:
        with handle.lock:
            numbers = handle.live(round).numbers()
            found = handle.damage.all()
            reader = handle.snapshot(stack)
        yield from _verified(handle, reader, round, numbers, found)
    hand_over(str(handle.path), found, on_damage)


def _verified(
    handle: SqliteHandle, reader: sqlite3.Connection, round: int, numbers: set[int], found: list[Damage]
) -> Iterator[Block]:
    """Blocks of these numbers; those that are not there any more are appended to `found`, and noted."""
    before, seen = len(found), set()
    with told(handle.path):
        for block in scan(reader, lambda damage: None, round):
            seen.add(block.number)
            yield block
    found += [Damage(number, round, "it cannot be read any more") for number in sorted(numbers - seen)]
    with handle.lock:
        for damage in found[before:]:
            handle.damage.note(damage)


def read_numbers(handle: SqliteHandle, connection: sqlite3.Connection, numbers: Sequence[int]) -> list[Block]:
    """Blocks by number; a damaged one is noted and left where it is."""
    found = []
    for number in numbers:
        try:
            row = connection.execute(
                f"select {BLOCK_COLUMNS} from blocks where number = ?", (number,)
            ).fetchone()
            if row is None:
                raise FormatError("it is not in the file any more")
            found.append(read_block(row))
        except (FormatError, sqlite3.DatabaseError) as error:
            handle.damage.note(Damage(number, None, str(error)))
    return found


def arrivals(handle: SqliteHandle, round: int) -> list[Stored]:
    """Stored reports by hour and source."""
    with handle.lock:
        return [Stored(*key, n) for key, n in sorted(handle.live(round).stored.items()) if n]


def tally(
    handle: SqliteHandle,
    round: int,
    without: Sequence[Quarantine],
    quarantines: Callable[[int], Sequence[Quarantine]],
) -> Tally:
    """The library's own tally of a round (see `Store.tally`); `quarantines` is called for a sealed round only."""
    with ExitStack() as stack:
        with handle.lock:
            live = handle.live(round)
            if live.state == "sealed":
                kind = sealed_kind(round, without, quarantines(round))
                return sealed_tally(handle.usable(), handle.path, live, kind)
            total = live.running.total()
            if not any(in_quarantine(without, hour, source) for hour, source in live.stored):
                return total
            reader = handle.snapshot(stack)
            numbers = live.numbers()
        whole = _verified(handle, reader, round, numbers, [])
        left_out = (block for block in whole if in_quarantine(without, block.hour, block.source))
        return minus(total, count(left_out, live.survey))
