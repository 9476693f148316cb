"""New reports into the SQLite store: which are new is known in memory, and the new ones are one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hdr4me.collector.arrivals import blocks_of, check_payloads, sort_out
from hdr4me.collector.blocks import Block
from hdr4me.collector.loads import Load, Outcome, prepare
from hdr4me.collector.rounds import no_round
from hdr4me.collector.sqlite_file import insert_block
from hdr4me.collector.sqlite_handle import SqliteHandle
from hdr4me.collector.sqlite_merging import Change, follow, forget_order, settled
from hdr4me.collector.sqlite_state import Live, level_of
from hdr4me.collector.store import Arrival, Written

__all__ = ["write", "write_loads"]


def write(handle: SqliteHandle, batch: Sequence[Arrival]) -> Written:
    """Store a batch; when `write` returns, the batch is on the disk."""
    rounds = sort_out(batch)
    with handle.lock:
        handle.ready()
        stored, refused = [False] * len(batch), [False] * len(batch)
        new: list[int] = []
        for number, arrived in rounds.items():
            live = _live(handle, number)
            if live.state != "open":
                continue
            known = live.ids.find(arrived.ids).tolist()
            new += [place for place, old in zip(arrived.places, known, strict=True) if not old]
        for place, arrival in enumerate(batch):
            refused[place] = handle.memory.rounds[arrival.round].state != "open"
        _insert(handle, blocks_of(batch, new), list(rounds))
        for place in new:
            stored[place] = True
        return Written(tuple(stored), tuple(refused))


def write_loads(handle: SqliteHandle, loads: Sequence[Load]) -> list[Outcome]:
    """Store the reports of several requests; when `write_loads` returns, they are on the disk."""
    rounds = prepare(loads)
    stored, refused = np.zeros((2, len(loads)), np.int64)
    with handle.lock:
        handle.ready()
        blocks: list[Block] = []
        for prepared in rounds:
            live = _live(handle, prepared.round)
            if live.state != "open":
                for place in np.unique(prepared.owners).tolist():
                    refused[place] = len(loads[place])
                continue
            new = ~live.ids.find_bytes(prepared.ids)
            blocks += prepared.blocks(new)
            stored += np.bincount(prepared.owners[new], minlength=len(loads))
        _insert(handle, blocks, [prepared.round for prepared in rounds])
    return [Outcome(*pair) for pair in zip(stored.tolist(), refused.tolist(), strict=True)]


def _live(handle: SqliteHandle, number: int) -> Live:
    live = handle.memory.rounds.get(number)
    if live is None:
        raise no_round(number)
    return live


def _insert(handle: SqliteHandle, blocks: Sequence[Block], rounds: Sequence[int]) -> None:
    """New blocks in one transaction, merged with others where there are many small ones or an hour has ended."""
    check_payloads(blocks, {number: handle.memory.rounds[number].survey for number in rounds})
    if not blocks:
        return
    change = Change()
    with handle.transaction() as connection:
        hours = {(block.round, block.hour) for block in blocks}
        for number in {block.round for block in blocks}:
            forget_order(handle, connection, handle.memory.rounds[number], change, hours)
        for block in blocks:
            made = settled(handle, connection, block, change)
            if made is block and level_of(len(block)) == 0:
                made = replace(block, number=handle.memory.next_fresh + len(change.made))
            change.made.append(made)
            insert_block(connection, made)
    with handle.remembering():
        follow(handle.memory, change)
        for block in blocks:
            live = handle.memory.rounds[block.round]
            live.ids.add_bytes(block.id_bytes)
            live.running.add(block.rows(live.survey))
