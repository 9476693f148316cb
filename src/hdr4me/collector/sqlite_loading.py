"""What the SQLite store knows in memory, read from its file: every block is read, and what is damaged is noted."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import date
from pathlib import Path

from hdr4me.collector.rounds import no_tally
from hdr4me.collector.sqlite_file import check_structure, scan, told
from hdr4me.collector.sqlite_state import Live, Memory
from hdr4me.collector.statements import TALLY_CONTENT
from hdr4me.collector.store import Damage, OnDamage
from hdr4me.survey import Survey
from hdr4me.tally import Tally
from hdr4me.tally.file import loads

__all__ = ["load", "sealed_tally"]


def load(
    connection: sqlite3.Connection,
    path: Path,
    memory: Memory,
    survey_of: Callable[[str], Survey],
    on_damage: OnDamage,
) -> None:
    """Fill an empty memory with the rounds, the ids, the tallies and the places of all blocks.

    Parameters
    ----------
    connection
        The file's.
    path
        The file, for messages.
    memory
        What is filled.
    survey_of
        The survey with a fingerprint.
    on_damage
        Takes what cannot be trusted.
    """
    for number, fingerprint, state, opened, closed in connection.execute(
        "select number, fingerprint, state, opened, closed from rounds order by number"
    ).fetchall():
        day = date.fromordinal
        live = Live(number, survey_of(fingerprint), state, day(opened), closed and day(closed))
        if state == "sealed":
            live.n_sealed = sealed_tally(connection, path, live, "all").n_reports
        memory.rounds[number] = live
    ids: dict[int, list[bytes]] = {number: [] for number in memory.rounds}
    check_structure(connection, on_damage)
    for block in scan(connection, on_damage):
        if block.round not in memory.rounds:
            on_damage(Damage(block.number, block.round, "its round does not exist"))
            continue
        live = memory.rounds[block.round]
        memory.place(block)
        live.running.add(block.rows(live.survey))
        ids[block.round].append(block.id_bytes)
    for number, id in connection.execute("select round, id from deleted"):
        ids.setdefault(number, []).append(id)
    for number, live in memory.rounds.items():
        live.ids.add_bytes(b"".join(ids[number]))


def sealed_tally(connection: sqlite3.Connection, path: Path, live: Live, kind: str) -> Tally:
    """The tally of a sealed round: of all its reports ("all"), or of those outside quarantine ("kept")."""
    with told(path):
        row = connection.execute(TALLY_CONTENT, (live.number, kind)).fetchone()
    if row is None:
        raise no_tally(path, live.number)
    return loads(row[0], live.survey)
