"""The life of a round: opened, closed, sealed; days by the collector's clock, which may be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime

from hdr4me.collector.store import Quarantine, Round, Sealed
from hdr4me.errors import InvalidInput

__all__ = ["check_seal", "closing_day", "day_of", "sealed_kind"]


def day_of(now: datetime) -> date:
    """The day in UTC.

    >>> day_of(datetime.fromisoformat("2026-03-01T23:30:00-05:00"))
    datetime.date(2026, 3, 2)
    """
    if not isinstance(now, datetime) or now.tzinfo is None:
        raise InvalidInput.of("now", now, "a datetime with a time zone")
    return now.astimezone(UTC).date()


def closing_day(opened: date, now: datetime) -> date:
    """The day of closing; never before the day of opening, even if the clock was set back."""
    return max(opened, day_of(now))


def check_seal(round: Round) -> bool:
    """Whether there is something to seal; InvalidInput if the round is open."""
    if round.state == "open":
        raise InvalidInput(f"round {round.number} is open: close it before it is sealed")
    return round.state == "closed"


def sealed_kind(number: int, without: Sequence[Quarantine], quarantines: Sequence[Quarantine]) -> str:
    """Which of a sealed round's two tallies is meant: all reports, or those that were not in quarantine."""
    if not without:
        return "all"
    if set(without) == set(quarantines):
        return "kept"
    raise Sealed(f"round {number} is sealed: it has one tally of all reports and one without its quarantine")
