"""The life of a round: opened, closed, sealed; days by the collector's clock, which may be wrong.

What both stores say of a round, its survey and its tallies is written here once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime

from hdr4me.collector.store import Quarantine, Round, Sealed, State, StoreError, UnknownRound
from hdr4me.errors import InvalidInput
from hdr4me.survey import Survey

__all__ = [
    "check_delete",
    "check_seal",
    "closing_day",
    "day_of",
    "find_survey",
    "in_quarantine",
    "no_round",
    "no_tally",
    "sealed_kind",
]


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


def no_round(number: object) -> UnknownRound:
    """The error for a number that no round has."""
    return UnknownRound(f"round = {number!r} is not allowed: there is no such round")


def no_tally(where: object, number: int) -> StoreError:
    """The error for a sealed round whose tally is gone."""
    return StoreError(f"{where}: the tally of round {number} is missing; restore a backup")


def find_survey(
    known: dict[str, Survey], fingerprint: str, row: Callable[[], Sequence[str] | None]
) -> Survey:
    """The survey with a fingerprint, read from the store when it is asked for first.

    Parameters
    ----------
    known
        Surveys that were read before, by fingerprint; a survey that is read is added.
    fingerprint
        The survey's.
    row
        Reads the survey's document, as a row of one column; None if there is none.

    Raises
    ------
    InvalidInput
        The store has no survey with this fingerprint.
    """
    if fingerprint not in known:
        found = row()
        if found is None:
            raise InvalidInput.of("fingerprint", fingerprint, "the fingerprint of a round's survey")
        known[fingerprint] = Survey.from_json(found[0])
    return known[fingerprint]


def check_delete(number: int, state: State) -> None:
    """Raise Sealed if the reports of a round cannot be deleted any more."""
    if state == "sealed":
        raise Sealed(f"round {number} is sealed: its reports are gone, and its tally cannot be taken apart")


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


def in_quarantine(quarantines: Iterable[Quarantine], hour: int, source: int) -> bool:
    """Whether one of the quarantines covers the reports of an hour and a source.

    >>> in_quarantine([Quarantine(hour=5), Quarantine(source=2)], 4, 2), in_quarantine([], 4, 2)
    (True, False)
    """
    return any(quarantine.covers(hour, source) for quarantine in quarantines)
