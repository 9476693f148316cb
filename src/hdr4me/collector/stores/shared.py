"""What both stores have in common: tables, migrations, and how long the reports of a round are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from hdr4me.collector.batch import ID_SIZE
from hdr4me.collector.errors import SchemaTooNew, Sealed
from hdr4me.collector.stores.protocol import Quarantine, Round, Rows, State, Store
from hdr4me.errors import InvalidInput

Tables = dict[str, Rows]

TABLES = {
    "surveys": "fingerprint, document",
    "rounds": "number, fingerprint, state, opened, closed",
    "deleted": "round, id",
    "rejected": "round, reason, hour, count",
    "quarantine": "round, hour, source",
    "tokens": "number, sha256, scope, label",
    "tallies": "round, kind, content",
}
"""Every table except the blocks, with its columns, as SQLite and backups have them."""

LAST_TOKEN = "last token"
"""Beside the tables of a backup: one row with the number of the latest token, which is never used again."""

ADD_SURVEY = "insert into surveys values (?, ?) on conflict do nothing"
ADD_ROUND = "insert into rounds values (?, ?, 'open', ?, null)"
CLOSE_ROUND = "update rounds set state = 'closed', closed = ? where number = ?"
SEAL_ROUND = "update rounds set state = 'sealed' where number = ?"

GRACE_DAYS = 7
"""Days after closing in which reports can still be counted again, put into quarantine, and deleted by id."""


def migrate(
    version: int, steps: Sequence[tuple[str, ...]], execute: Callable[[str], object], where: str
) -> int:
    """Execute the migrations of `steps` after number `version` in the caller's transaction; the number of the last one.

    A released migration is never changed: a new one is appended.
    """
    if version > len(steps):
        raise SchemaTooNew(
            f"{where} has schema {version}, and this program knows schemas up to {len(steps)}: "
            "use the version of hdr4me that wrote it, or a newer one"
        )
    for step in steps[version:]:
        for statement in step:
            execute(statement)
    return len(steps)


def day_of(now: datetime) -> date:
    """The day in UTC."""
    if not isinstance(now, datetime) or now.tzinfo is None:
        raise InvalidInput.of("now", now, "a datetime with a time zone")
    return now.astimezone(UTC).date()


def check_delete(number: int, state: State, id: bytes) -> None:
    """Raise Sealed if the reports of a round can no longer be deleted, InvalidInput if the id is not one."""
    if type(id) is not bytes or len(id) != ID_SIZE:
        raise InvalidInput.of("id", id, f"{ID_SIZE} bytes")
    if state == "sealed":
        raise Sealed(f"round {number} is sealed: its reports are deleted, and its tally cannot be split")


def check_seal(round: Round) -> bool:
    """Whether there is something to seal; InvalidInput if the round is open."""
    if round.state == "open":
        raise InvalidInput(f"round {round.number} is open: close it before it is sealed")
    return round.state == "closed"


def covered(quarantines: Sequence[Quarantine], hour: int, source: int) -> bool:
    """Whether one of the quarantines covers the reports of an hour and a source."""
    return any(quarantine.covers(hour, source) for quarantine in quarantines)


def hour_of(now: datetime) -> int:
    """Hours since 1970: the only time that is stored with a report."""
    day_of(now)
    hour = int(now.timestamp() // 3600)
    if not 0 <= hour < 1 << 31:
        raise InvalidInput.of("now", now, "a time after 1970: set the clock")
    return hour


class Kept(NamedTuple):
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
