"""Rounds of the SQLite store: opened and closed, in the file and then in memory."""

from __future__ import annotations

from datetime import datetime

from hdr4me.collector.rounds import closing_day, day_of
from hdr4me.collector.sqlite_handle import SqliteHandle
from hdr4me.collector.sqlite_merging import Change, follow, forget_order
from hdr4me.collector.sqlite_state import Live
from hdr4me.collector.statements import ADD_ROUND, ADD_SURVEY, CLOSE_ROUND
from hdr4me.collector.store import Round
from hdr4me.survey import Survey

__all__ = ["close_round", "open_round"]


def open_round(handle: SqliteHandle, survey: Survey, now: datetime) -> Round:
    """Open the next round, for this survey."""
    day = day_of(now)
    with handle.lock:
        handle.ready()
        number = max(handle.memory.rounds, default=0) + 1
        with handle.transaction() as connection:
            connection.execute(ADD_SURVEY, (survey.fingerprint, survey.to_json()))
            connection.execute(ADD_ROUND, (number, survey.fingerprint, day.toordinal()))
        handle.surveys[survey.fingerprint] = survey
        live = handle.memory.rounds[number] = Live(number, survey, "open", day, None)
        return live.public()


def close_round(handle: SqliteHandle, number: int, now: datetime) -> Round:
    """Take no more reports for a round."""
    with handle.lock:
        live = handle.live(number)
        if live.state == "open":
            day = closing_day(live.opened, now)
            change = Change()
            with handle.transaction() as connection:
                connection.execute(CLOSE_ROUND, (day.toordinal(), number))
                forget_order(handle, connection, live, change, set())
            with handle.remembering():
                follow(handle.memory, change)
                live.state, live.closed = "closed", day
        return live.public()
