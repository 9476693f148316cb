"""A closed round of the SQLite store sealed: its tallies stay, its blocks and ids are overwritten."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from hdr4me.collector.rounds import check_seal
from hdr4me.collector.sqlite_file import shrink, told
from hdr4me.collector.sqlite_handle import SqliteHandle
from hdr4me.collector.sqlite_reading import blocks, tally
from hdr4me.collector.sqlite_state import Live
from hdr4me.collector.statements import SEAL_ROUND
from hdr4me.collector.store import Damage, Damaged, Quarantine, Round, StoreUnavailable
from hdr4me.tally.file import dumps

__all__ = ["seal"]

_log = logging.getLogger("hdr4me.collector")


def seal(
    handle: SqliteHandle,
    round: int,
    despite_damage: bool,
    quarantines: Callable[[int], Sequence[Quarantine]],
) -> Round:
    """Keep only the tally of a closed round (see `Store.seal`); `quarantines` reads what is in quarantine."""
    with handle.lock:
        live = handle.live(round)
        if not check_seal(live.public()):
            return live.public()
        found: list[Damage] = []
        for _ in blocks(handle, round, found.append):
            pass
        if found and not despite_damage:
            raise Damaged(str(handle.path), found)
        total = tally(handle, round, (), quarantines)
        kept = tally(handle, round, quarantines(round), quarantines)
        with handle.transaction() as connection:
            for kind, one in (("all", total), ("kept", kept)):
                connection.execute("insert into tallies values (?, ?, ?)", (round, kind, dumps(one)))
            connection.execute(SEAL_ROUND, (round,))
            connection.execute("delete from blocks where round = ?", (round,))
            connection.execute("delete from deleted where round = ?", (round,))
        with handle.remembering():
            handle.memory.rounds[round] = Live(
                round, live.survey, "sealed", live.opened, live.closed, total.n_reports
            )
        try:
            with told(handle.path):
                shrink(handle.ready())
        except (
            StoreUnavailable
        ) as error:  # the rows are overwritten already; only the space is not given back
            _log.warning("%s", error)
        handle.truncate()
        return handle.memory.rounds[round].public()
