"""How long reports are kept: while a round is open, and a grace period after it was closed; then only the tally."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from hdr4me.collector.stores.protocol import Round, Store
from hdr4me.collector.stores.shared import day_of
from hdr4me.errors import InvalidInput

GRACE_DAYS = 7
"""Days after closing in which reports can still be counted again, put into quarantine, and deleted by id."""


def hour_of(now: datetime) -> int:
    """Hours since 1970: the only time that is stored with a report."""
    day_of(now)
    hour = int(now.timestamp() // 3600)
    if not 0 <= hour < 1 << 31:
        raise InvalidInput.of("now", now, "a time after 1970: set the clock")
    return hour


@dataclass(frozen=True)
class Kept:
    """The result of `seal_due`: the rounds that were sealed, and a sentence if the clock cannot be trusted."""

    sealed: tuple[int, ...]
    clock: str | None


def due(rounds: list[Round], *, now: datetime, grace_days: int = GRACE_DAYS) -> list[Round]:
    """Closed rounds of `rounds` for which `grace_days` whole days have passed since closing, at the time `now`."""
    if type(grace_days) is not int or grace_days < 0:
        raise InvalidInput.of("grace_days", grace_days, "a nonnegative number of days")
    last = day_of(now) - timedelta(days=grace_days + 1)
    return [r for r in rounds if r.state == "closed" and r.closed is not None and r.closed <= last]


def clock_fault(store: Store, *, now: datetime) -> str | None:
    """A sentence if the clock is behind the times in the store, else None.

    Reports are never refused for that: they are stored under the hour of the clock.
    """
    rounds = store.rounds()
    days = [day for r in rounds for day in (r.opened, r.closed) if day is not None]
    hours = [arrival.hour for r in rounds if not r.sealed for arrival in store.arrivals(r.number)]
    day, hour = day_of(now), hour_of(now)
    if days and max(days) > day:
        return f"the clock says {day}, and the store has a round of {max(days)}: set the clock"
    if hours and max(hours) > hour:
        return f"the clock says hour {hour}, and the store has reports of hour {max(hours)}: set the clock"
    return None


def seal_due(store: Store, *, now: datetime, grace_days: int = GRACE_DAYS) -> Kept:
    """Seal every round whose grace period is over; none if the clock is behind, since it is or was wrong.

    A damaged round is not sealed, so that a backup can still help: Damaged is raised.
    """
    fault = clock_fault(store, now=now)
    if fault is not None:
        return Kept((), fault)
    rounds = due(store.rounds(), now=now, grace_days=grace_days)
    return Kept(tuple(store.seal(r.number).number for r in rounds), None)
