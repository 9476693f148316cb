"""What the collector keeps, and the protocol of the stores that keep it.

Never kept: an address, a user agent, a time finer than the hour, the order in which reports arrived.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, runtime_checkable

from hdr4me.collector.blocks import ID_SIZE, Block
from hdr4me.collector.store_errors import (
    Damage,
    Damaged,
    OnDamage,
    SchemaTooNew,
    Sealed,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    UnknownRound,
)
from hdr4me.errors import InvalidInput
from hdr4me.survey import Survey
from hdr4me.tally import Tally

if TYPE_CHECKING:
    from hdr4me.collector.loads import Load, Outcome

__all__ = [
    "ID_SIZE",
    "Arrival",
    "Block",
    "Damage",
    "Damaged",
    "OnDamage",
    "Quarantine",
    "Rejection",
    "Round",
    "SchemaTooNew",
    "Scope",
    "Sealed",
    "Store",
    "StoreBusy",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "StoreUnavailable",
    "Stored",
    "Token",
    "UnknownRound",
    "Written",
]

State = Literal["open", "closed", "sealed"]
Scope = Literal["upload", "read", "admin"]


# -- what is kept ----------------------------------------------------------------------------------------------


class Arrival(NamedTuple):
    """One report on its way into the store.

    Parameters
    ----------
    round
        The number of the round that it answers.
    id
        16 random bytes, made with the report.
    payload
        The report's own bytes on the wire (`Report.to_bytes(survey)`).
    hour
        Whole hours since 1970, by the collector's clock.
    source
        The number of the upload token; 0 where uploads are open.
    """

    round: int
    id: bytes
    payload: bytes
    hour: int
    source: int = 0


class Stored(NamedTuple):
    """How many reports of an hour and a source are stored."""

    hour: int
    source: int
    stored: int


@dataclass(frozen=True)
class Written:
    """What became of each arrival of a batch, in the order of the batch; all of it is durable.

    Parameters
    ----------
    stored
        True: stored now. False: a duplicate of a stored (or deleted) report, or refused.
    refused
        True: not stored because its round is not open.
    """

    stored: tuple[bool, ...]
    refused: tuple[bool, ...]

    @property
    def n_stored(self) -> int:
        """How many reports were stored now."""
        return sum(self.stored)

    @property
    def duplicates(self) -> tuple[bool, ...]:
        """True: stored before, or earlier in the same batch."""
        return tuple(not a and not b for a, b in zip(self.stored, self.refused, strict=True))


@dataclass(frozen=True)
class Round:
    """One collection of one survey.

    Parameters
    ----------
    number
        From 1.
    fingerprint, series
        The survey's.
    state
        "open", "closed" or "sealed".
    opened, closed
        Days, by the collector's clock (UTC).
    stored
        The number of stored reports (after sealing: of counted ones).
    """

    number: int
    fingerprint: str
    series: str
    state: State
    opened: date
    closed: date | None
    stored: int

    @property
    def sealed(self) -> bool:
        """Whether only the tally is left."""
        return self.state == "sealed"


@dataclass(frozen=True)
class Quarantine:
    """Reports that are left out of an estimate: those of an hour, of a source, or of a source in an hour."""

    hour: int | None = None
    source: int | None = None

    def __post_init__(self) -> None:
        if self.hour is None and self.source is None:
            raise InvalidInput.missing("hour", "source")
        for name, value in (("hour", self.hour), ("source", self.source)):
            if value is not None and (type(value) is not int or not 0 <= value < 1 << 31):
                raise InvalidInput.of(name, value, "a whole number from 0 to 2^31 - 1")

    def covers(self, hour: int, source: int) -> bool:
        """Whether reports of this hour and source are left out.

        >>> Quarantine(hour=5).covers(5, 0), Quarantine(hour=5, source=1).covers(5, 0)
        (True, False)
        """
        return self.hour in (None, hour) and self.source in (None, source)


@dataclass(frozen=True)
class Rejection:
    """How many uploads of an hour were no reports, by reason."""

    reason: str
    hour: int
    count: int


@dataclass(frozen=True)
class Token:
    """A bearer token, known by its SHA-256 only. Its number is the `source` of what it uploads."""

    number: int
    sha256: bytes
    scope: Scope
    label: str


# -- the protocol ----------------------------------------------------------------------------------------------


@runtime_checkable
class Store(Protocol):
    """Where reports live.

    One thread at a time calls `write`; the others may be called from any thread at any time. All methods are
    synchronous: a service calls them from threads. A write that fails raises StoreUnavailable (or StoreFull,
    StoreReadOnly), and then nothing of its batch was acknowledged; a database that is back is used again.
    """

    @property
    def schema_version(self) -> int:
        """The number of the last migration."""

    # rounds
    def open_round(self, survey: Survey, *, now: datetime) -> Round:
        """Open the next round, for this survey."""

    def close_round(self, number: int, *, now: datetime) -> Round:
        """Take no more reports for a round; closing a closed round changes nothing."""

    def rounds(self) -> list[Round]:
        """Every round, by number."""

    def round(self, number: int) -> Round:
        """One round; UnknownRound if there is none."""

    def survey(self, fingerprint: str) -> Survey:
        """The survey of a round; InvalidInput if there is none."""

    # reports
    def write(self, batch: Sequence[Arrival]) -> Written:
        """Store a batch; when `write` returns, the batch is on the disk."""

    def write_loads(self, loads: Sequence[Load]) -> list[Outcome]:
        """The same for the reports of several requests in columns, which is how the service writes."""

    def delete(self, round: int, id: bytes) -> bool:
        """Delete a report, exactly: no tally holds it any more. False if it is not stored.

        The id stays known until the round is sealed, so that a late repetition of the upload does not bring the
        report back. Raises Sealed if only the tally is left.
        """

    def blocks(self, round: int, *, on_damage: OnDamage | None = None) -> Iterator[Block]:
        """Every whole block of a round. Damaged ones go to `on_damage`; without it, Damaged is raised at the end."""

    def arrivals(self, round: int) -> list[Stored]:
        """Stored reports by hour and source, in that order; empty after sealing."""

    def tally(self, round: int, *, without: Sequence[Quarantine] = ()) -> Tally:
        """The library's own tally of the round: the same bytes as `hdr4me tally` gives on the exported reports.

        Reports in damaged blocks are not in it: `damage` lists the blocks. After sealing, `without` is either nothing
        or all of `quarantines(round)`; anything else raises Sealed.
        """

    def damage(self) -> list[Damage]:
        """Damaged blocks found so far, of all rounds."""

    # counters, quarantine, tokens
    def rejected(self, round: int, reason: str, hour: int, count: int = 1) -> None:
        """Count uploads that were no reports."""

    def rejections(self, round: int) -> list[Rejection]:
        """The counts of `rejected`, by reason and hour."""

    def set_quarantine(self, round: int, quarantine: Quarantine, *, on: bool = True) -> None:
        """Put reports into quarantine, or take them out. Nothing is deleted. Raises Sealed after sealing."""

    def quarantines(self, round: int) -> list[Quarantine]:
        """What is in quarantine."""

    def add_token(self, sha256: bytes, scope: Scope, label: str = "") -> Token:
        """Remember a token by its SHA-256 (32 bytes); the same one twice is an error."""

    def remove_token(self, number: int) -> bool:
        """Forget a token. Its number is never given again."""

    def tokens(self) -> list[Token]:
        """Every token, by number."""

    # the end of a round
    def seal(self, round: int, *, despite_damage: bool = False) -> Round:
        """Keep only the tally of a closed round: blocks and ids are removed for good.

        Raises InvalidInput if the round is open, and Damaged if blocks are damaged, unless `despite_damage`.
        """

    # the store itself
    def free_space(self) -> int | None:
        """Bytes free for the store; None if that cannot be known."""

    def ping(self) -> None:
        """Return if the database answers; raise StoreUnavailable if it does not."""

    def close(self) -> None:
        """Let go of the database. A closed store raises StoreUnavailable."""
