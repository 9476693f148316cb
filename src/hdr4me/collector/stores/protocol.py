"""What the collector stores, the protocol of the stores, and their errors.

Never stored: an address, a user agent, a time finer than the hour, the order in which reports arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from hdr4me.collector.batch import Batch, Block
from hdr4me.errors import HDR4MEError, InvalidInput
from hdr4me.survey import Survey
from hdr4me.tally import Tally

State = Literal["open", "closed", "sealed"]
Scope = Literal["upload", "read", "admin"]


class StoreError(HDR4MEError):
    """The store cannot complete the request; no acknowledged report is lost."""


class StoreUnavailable(StoreError):
    """The database does not answer, or a write failed: nothing was acknowledged, and the caller may try again."""


class StoreFull(StoreUnavailable):
    """There is no space left for a write."""


class StoreReadOnly(StoreUnavailable):
    """The database is read-only."""


class StoreBusy(StoreError):
    """Another process has the store open for writing."""


class SchemaTooNew(StoreError):
    """The store was written by a newer version of this program."""


class Sealed(StoreError):
    """The reports of the round are deleted: only its tally is kept."""


class UnknownRound(InvalidInput):
    """There is no round with this number."""

    def __init__(self, number: object) -> None:
        super().__init__(f"round = {number!r} is not allowed: there is no such round")


@dataclass(frozen=True)
class Damage:
    """A damaged block: its number, the round that it claims (None: unreadable), and the reason."""

    block: int | None
    round: int | None
    reason: str

    def __str__(self) -> str:
        if self.block is None:
            return self.reason
        round_ = "an unreadable round" if self.round is None else f"round {self.round}"
        return f"block {self.block} of {round_}: {self.reason}"


OnDamage = Callable[[Damage], None]


class Damaged(StoreError):
    """Stored blocks are damaged (`damage` lists them); the other blocks are readable."""

    def __init__(self, where: str, damage: Sequence[Damage]) -> None:
        self.damage = tuple(damage)
        shown = "; ".join(map(str, self.damage[:5]))
        more = f"; and {len(self.damage) - 5} more" if len(self.damage) > 5 else ""
        super().__init__(f"{where} is damaged: {shown}{more}. Restore a backup; the other blocks are intact")


class Stored(NamedTuple):
    """The number of stored reports of an hour and a source."""

    hour: int
    source: int
    stored: int


@dataclass(frozen=True)
class Round:
    """One collection of one survey; after sealing, `stored` is the number of reports in its tally."""

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
    """Reports that are left out of an estimate: those of an hour, of a source, or of a source in an hour.

    >>> Quarantine(hour=5).covers(5, 0), Quarantine(hour=5, source=1).covers(5, 0)
    (True, False)
    """

    hour: int | None = None
    source: int | None = None

    def __post_init__(self) -> None:
        if self.hour is None and self.source is None:
            raise InvalidInput.missing("hour", "source")
        for name, value in (("hour", self.hour), ("source", self.source)):
            if value is not None and (type(value) is not int or not 0 <= value < 1 << 31):
                raise InvalidInput.of(name, value, "an integer from 0 to 2^31 - 1")

    def covers(self, hour: int, source: int) -> bool:
        """Whether reports of this hour and source are left out."""
        return self.hour in (None, hour) and self.source in (None, source)


@dataclass(frozen=True)
class Rejection:
    """The number of rejected uploads of an hour, by reason."""

    reason: str
    hour: int
    count: int


@dataclass(frozen=True)
class Token:
    """A bearer token, known by its SHA-256 only. Its number is the `source` of the reports uploaded with it."""

    number: int
    sha256: bytes
    scope: Scope
    label: str


@runtime_checkable
class Store(Protocol):
    """Where reports are stored.

    One thread at a time calls `write`; the other methods may be called from any thread at any time. All methods are
    synchronous: a service calls them from threads. A write that fails raises StoreUnavailable (or StoreFull,
    StoreReadOnly), and then nothing was acknowledged; a database that answers again is used again.
    """

    schema_version: int
    """The number of the last migration."""

    def open_round(self, survey: Survey, *, now: datetime) -> Round:
        """Open the next round, with this survey."""

    def close_round(self, number: int, *, now: datetime) -> Round:
        """Accept no more reports for a round; closing a closed round changes nothing."""

    def rounds(self) -> list[Round]:
        """Every round, by number."""

    def round(self, number: int) -> Round:
        """One round; UnknownRound if there is none."""

    def survey(self, fingerprint: str) -> Survey:
        """The survey of a round; InvalidInput if there is none."""

    def write(self, batches: Sequence[Batch]) -> None:
        """Store the reports of several requests in one transaction.

        When `write` returns, the reports are on the disk, and each batch holds its result: `stored` and `refused`.
        """

    def delete(self, round: int, id: bytes) -> bool:
        """Delete a report from the blocks and from the tally. False if it is not stored.

        The id stays known until the round is sealed, so that a late repetition of the upload does not restore the
        report. Raises Sealed if only the tally is left.
        """

    def blocks(self, round: int, *, on_damage: OnDamage | None = None) -> Iterator[Block]:
        """Every intact block of a round, as of the first iteration.

        Damaged blocks are passed to `on_damage`; without it, Damaged is raised at the end.
        """

    def arrivals(self, round: int) -> list[Stored]:
        """Stored reports by hour and source, in that order; empty after sealing."""

    def tally(self, round: int, *, without: Sequence[Quarantine] = ()) -> Tally:
        """The tally of a round: the same bytes as `hdr4me tally` writes for the exported reports.

        Reports in damaged blocks are not in it: `damage` lists the blocks. After sealing, `without` is either empty
        or all of `quarantines(round)`; anything else raises Sealed.
        """

    def damage(self) -> list[Damage]:
        """Damaged blocks found so far, in all rounds."""

    def rejected(self, round: int, reason: str, hour: int, count: int = 1) -> None:
        """Count rejected uploads."""

    def rejections(self, round: int) -> list[Rejection]:
        """The counts of `rejected`, by reason and hour."""

    def set_quarantine(self, round: int, quarantine: Quarantine, *, on: bool = True) -> None:
        """Put reports into quarantine, or release them. Nothing is deleted. Raises Sealed after sealing."""

    def quarantines(self, round: int) -> list[Quarantine]:
        """What is in quarantine."""

    def add_token(self, sha256: bytes, scope: Scope, label: str = "") -> Token:
        """Store a token by its SHA-256 (32 bytes); the same one twice is an error."""

    def remove_token(self, number: int) -> bool:
        """Remove a token. Its number is never used again."""

    def tokens(self) -> list[Token]:
        """Every token, by number."""

    def seal(self, round: int, *, despite_damage: bool = False) -> Round:
        """Keep only the tally of a closed round: its blocks and ids are deleted for good.

        Raises InvalidInput if the round is open, and Damaged if blocks are damaged, unless `despite_damage`.
        """

    def free_space(self) -> int | None:
        """Bytes free for the store; None if unknown."""

    def ping(self) -> None:
        """Return if the database answers; raise StoreUnavailable if it does not."""

    def close(self) -> None:
        """Close the database. A closed store raises StoreUnavailable."""
