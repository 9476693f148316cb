"""The protocol of stores, and the records in them (without addresses, exact times or the order of arrival)."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, NamedTuple

from hdr4me.collector.batch import ID_SIZE, Batch, Block, check_numbers
from hdr4me.collector.errors import Damage, Damaged, Finalized, OnDamage, SchemaTooNew, StoreError
from hdr4me.errors import InvalidInput
from hdr4me.survey import Survey
from hdr4me.tally import Tally
from hdr4me.tally.file import loads

State = Literal["open", "closed", "finalized"]
Scope = Literal["send", "read", "admin"]
Rows = list[tuple[Any, ...]]

log = logging.getLogger("hdr4me.collector")
_ANY = -1  # in the table of quarantines: every hour, or every source
ANYONE = bytes(32)  # in the place of a token's SHA-256: reports are accepted without a token
_DAY = 86_400
TOKEN_DAYS = 90  # until a new token expires


class Stored(NamedTuple):
    """The number of stored reports of an hour and a source."""

    hour: int
    source: int
    stored: int


@dataclass(frozen=True)
class Round:
    """One collection of one survey; after finalization, `stored` is the number of reports in its tally."""

    number: int
    fingerprint: str
    series: str
    state: State
    opened: date
    closed: date | None
    stored: int


@dataclass(frozen=True)
class Quarantine:
    """Reports that are left out of an estimate: those of an hour, of a source, or of a source in an hour."""

    hour: int | None = None
    source: int | None = None

    def __post_init__(self) -> None:
        if self.hour is None and self.source is None:
            raise InvalidInput.missing("hour", "source")
        check_numbers(**{name: value for name, value in vars(self).items() if value is not None})


@dataclass(frozen=True)
class Rejection:
    """The number of rejected uploads of an hour, by reason."""

    reason: str
    hour: int
    count: int


@dataclass(frozen=True)
class Token:
    """A bearer token, stored as its SHA-256. Its number is the `source` of the reports uploaded with it."""

    number: int
    sha256: bytes
    scope: Scope
    label: str
    expires: int  # in seconds since 1970


class Act(NamedTuple):
    """An administrative act: the minute, what was done, and by whom."""

    minute: str
    act: str
    who: str


class Registry(ABC):
    """The part of a store that another process may change while a collector runs: tokens, and the log of acts."""

    name: str

    @abstractmethod
    def _rows(self, sql: str, *values: Any) -> Rows:
        """Execute a statement in its own transaction, commit, and return the rows; `?` marks a value."""

    @abstractmethod
    def close(self) -> None:
        """Close the database. A closed store raises StoreUnavailable."""

    @property
    def id(self) -> str:
        """The random identifier of the store; a restored store has a new one."""
        return str(self._rows("select value from settings where name = 'store'")[0][0])

    def add_token(self, sha256: bytes, scope: Scope, label: str = "", *, expires: int | None = None) -> Token:
        """Store a token by its SHA-256 (32 bytes); the same one twice is an error. It expires after 90 days."""
        if type(sha256) is not bytes or len(sha256) != 32:
            raise InvalidInput("sha256 must be the 32 bytes of a token's SHA-256")
        if scope not in ("send", "read", "admin"):
            raise InvalidInput.of("scope", scope, "send, read or admin")
        if sha256 == ANYONE and scope != "send":
            raise InvalidInput(f"a token is needed for the scope {scope}: only send can be open to anyone")
        expires = int(time.time()) + TOKEN_DAYS * _DAY if expires is None else expires
        sql = "insert into tokens (sha256, scope, label, expires) values (?, ?, ?, ?) "
        made = self._rows(sql + "on conflict do nothing returning number", sha256, scope, label, expires)
        if not made:
            raise InvalidInput(f"this token exists already (label = {label!r}): generate another one")
        return Token(made[0][0], sha256, scope, label, expires)

    def remove_token(self, number: int) -> bool:
        """Revoke a token. Its number is never used again."""
        return bool(self._rows("delete from tokens where number = ? returning number", number))

    def tokens(self) -> list[Token]:
        """Every token, by number."""
        rows = self._rows("select number, sha256, scope, label, expires from tokens order by number")
        return [Token(number, bytes(sha256), *rest) for number, sha256, *rest in rows]

    def record(self, act: str, who: str) -> None:
        """Append an administrative act to the log; no statement of this program changes or deletes one."""
        minute = time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime())
        self._rows("insert into acts (minute, act, who) values (?, ?, ?)", minute, act, who)

    def acts(self) -> list[Act]:
        """The log of administrative acts."""
        return [Act(*row) for row in self._rows("select minute, act, who from acts order by number")]


class Store(Registry):
    """Where reports are stored.

    One thread at a time calls `write`; the other methods may be called from any thread at any time. All methods are
    synchronous: a service calls them from threads. A write that fails raises StoreUnavailable (or StoreFull,
    StoreReadOnly), and then nothing was acknowledged; a database that answers again is used again. Methods that do
    not depend on the database are implemented here; `?` marks a value in their SQL.
    """

    schema_version: int  # the number of the last migration

    def __init__(self, name: str) -> None:
        self.name = name
        self._surveys: dict[str, Survey] = {}
        self._damage: dict[Damage, None] = {}  # a set in the order of insertion, which any thread may extend

    @abstractmethod
    def open_round(self, survey: Survey, *, now: datetime) -> Round:
        """Open the next round, with this survey."""

    @abstractmethod
    def close_round(self, number: int, *, now: datetime) -> Round:
        """Accept no more reports for a round; closing a closed round changes nothing."""

    @abstractmethod
    def correct_dates(self, day: date) -> None:
        """Replace dates of rounds that are after a day by that day: they were written under a wrong clock."""

    @abstractmethod
    def rounds(self) -> list[Round]:
        """Every round, by number."""

    @abstractmethod
    def round(self, number: int) -> Round:
        """One round; UnknownRound if there is none."""

    @abstractmethod
    def write(self, batches: Sequence[Batch]) -> None:
        """Store the reports of several requests in one transaction.

        When `write` returns, the reports are on the disk, and each batch holds its result: `stored` and `refused`.
        """

    @abstractmethod
    def delete(self, round: int, id: bytes) -> bool:
        """Delete a report from the blocks and from the tally. False if it is not stored.

        The id stays known until the round is finalized, so that a repeated upload does not restore the report.
        Raises Finalized if only the tally is left.
        """

    @abstractmethod
    def blocks(self, round: int, *, on_damage: OnDamage | None = None) -> Iterator[Block]:
        """Every intact block, as of the first iteration; damage goes to `on_damage`, or raises Damaged at the end."""

    @abstractmethod
    def arrivals(self, round: int) -> list[Stored]:
        """Stored reports by hour and source, in that order; empty after finalization."""

    @abstractmethod
    def tally(self, round: int, *, without: Sequence[Quarantine] = ()) -> Tally:
        """The tally of a round: the same bytes as `hdr4me tally` writes for the exported reports.

        Reports in damaged blocks are left out: `damage` lists the blocks. After finalization, `without` is empty or all
        of `quarantines(round)`; anything else raises Finalized.
        """

    @abstractmethod
    def finalize(self, round: int, *, despite_damage: bool = False) -> Round:
        """Delete the blocks and ids of a closed round and keep its tally; Damaged is raised unless `despite_damage`."""

    def maintain(self) -> bool:
        """Do one bounded step of the work that no request should wait for; whether more is left."""
        return False

    def free_space(self) -> int | None:
        """Bytes free for the store; None if unknown, since the database may be on another machine."""
        return None

    def ping(self) -> None:
        """Return if the database answers; raise StoreUnavailable if it does not."""
        self._rows("select 1 from rounds limit 1")

    def damage(self) -> list[Damage]:
        """Damaged blocks found so far, in all rounds."""
        return list(self._damage)

    def _note(self, damage: Damage) -> None:
        """Remember a damage, and log it the first time."""
        if damage not in self._damage:
            self._damage[damage] = None
            log.error("%s is damaged: %s", self.name, damage)

    def _report(self, found: Sequence[Damage], on_damage: OnDamage | None) -> None:
        """Note each damage and pass it to `on_damage`; without it, raise Damaged if there is any."""
        for damage in found:
            self._note(damage)
            if on_damage is not None:
                on_damage(damage)
        if found and on_damage is None:
            raise Damaged(self.name, found)

    def survey(self, fingerprint: str, rows: Callable[..., Rows] | None = None) -> Survey:
        """The survey of a round, read with `rows` the first time; InvalidInput if there is none."""
        if fingerprint not in self._surveys:
            found = (rows or self._rows)("select document from surveys where fingerprint = ?", fingerprint)
            if not found:
                raise InvalidInput.of("fingerprint", fingerprint, "the fingerprint of a round's survey")
            self._surveys[fingerprint] = Survey.from_json(found[0][0])
        return self._surveys[fingerprint]

    def _finalized_tally(self, number: int, survey: Survey, without: Sequence[Quarantine]) -> Tally:
        """One of the two tallies of a finalized round: of all reports, or of those outside quarantine."""
        if without and set(without) != set(self.quarantines(number)):
            raise Finalized(
                f"round {number} is finalized: it has one tally of all reports and one without its quarantine"
            )
        return self._stored_tally(number, survey, "kept" if without else "all", self._rows)

    def _stored_tally(self, number: int, survey: Survey, kind: str, rows: Callable[..., Rows]) -> Tally:
        """The tally of a finalized round ("all" or "kept"), read with `rows`."""
        found = rows("select content from tallies where round = ? and kind = ?", number, kind)
        if not found:
            raise StoreError(f"{self.name}: the tally of round {number} is missing; restore a backup")
        return loads(bytes(found[0][0]), survey)

    def rejected(self, round: int, reason: str, hour: int, count: int = 1) -> None:
        """Count rejected uploads."""
        self.round(round)
        check_numbers(hour=hour, count=count)
        sql = (
            "insert into rejected (round, reason, hour, count) values (?, ?, ?, ?) "
            "on conflict (round, reason, hour) do update set count = rejected.count + excluded.count"
        )
        self._rows(sql, round, reason, hour, count)

    def rejections(self, round: int) -> list[Rejection]:
        """The counts of `rejected`, by reason and hour."""
        sql = "select reason, hour, count from rejected where round = ? order by reason, hour"
        return [Rejection(*row) for row in self._rows(sql, round)]

    def set_quarantine(self, round: int, quarantine: Quarantine, *, on: bool = True) -> None:
        """Put reports into quarantine, or release them. Nothing is deleted. Raises Finalized after finalization."""
        if self.round(round).state == "finalized":
            raise Finalized(f"round {round} is finalized: its quarantine can no longer be changed")
        hour = _ANY if quarantine.hour is None else quarantine.hour
        source = _ANY if quarantine.source is None else quarantine.source
        if on:
            sql = "insert into quarantine (round, hour, source) values (?, ?, ?) on conflict do nothing"
        else:
            sql = "delete from quarantine where round = ? and hour = ? and source = ?"
        self._rows(sql, round, hour, source)

    def quarantines(self, round: int) -> list[Quarantine]:
        """What is in quarantine."""
        sql = "select hour, source from quarantine where round = ? order by hour, source"
        return [
            Quarantine(None if hour == _ANY else hour, None if source == _ANY else source)
            for hour, source in self._rows(sql, round)
        ]


Tables = dict[str, Rows]

# Every table except the blocks, with its columns, as SQLite and backups have them.
TABLES = {
    "surveys": "fingerprint, document",
    "rounds": "number, fingerprint, state, opened, closed",
    "deleted": "round, id",
    "rejected": "round, reason, hour, count",
    "quarantine": "round, hour, source",
    "tokens": "number, sha256, scope, label, expires",
    "acts": "number, minute, act, who",
    "tallies": "round, kind, content",
}
# Beside the tables of a backup: one row with the number of the latest token, which is never used again.
LAST_TOKEN = "last token"

ADD_SURVEY = "insert into surveys values (?, ?) on conflict do nothing"
ADD_ROUND = "insert into rounds (number, fingerprint, state, opened) values (?, ?, 'open', ?)"
CLOSE_ROUND = "update rounds set state = 'closed', closed = ? where number = ?"
FINALIZE_ROUND = "update rounds set state = 'finalized' where number = ?"


def migrate(
    version: int, steps: Sequence[tuple[str, ...]], execute: Callable[[str], object], where: str
) -> int:
    """Execute the migrations after number `version` in the caller's transaction; the number of the last one."""
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
    """Raise Finalized if the reports of a round can no longer be deleted, InvalidInput if the id is not one."""
    if type(id) is not bytes or len(id) != ID_SIZE:
        raise InvalidInput.of("id", id, f"{ID_SIZE} bytes")
    if state == "finalized":
        raise Finalized(
            f"round {number} is finalized: its reports are deleted, and its tally cannot be split"
        )


def check_finalize(round: Round) -> bool:
    """Whether there is something to finalize; InvalidInput if the round is open."""
    if round.state == "open":
        raise InvalidInput(f"round {round.number} is open: close it before it is finalized")
    return round.state == "closed"


def covered(quarantines: Sequence[Quarantine], hour: int, source: int) -> bool:
    """Whether one of the quarantines covers the reports of an hour and a source."""
    return any(q.hour in (None, hour) and q.source in (None, source) for q in quarantines)


class Kept(NamedTuple):
    """The result of `finalize_due`: the rounds that were finalized, and a sentence if dates were corrected."""

    finalized: tuple[int, ...]
    clock: str | None = None


def finalize_due(store: Store, *, now: datetime, grace_days: int) -> Kept:
    """Finalize every round that was closed more than `grace_days` full days ago; the clock is known to be steady.

    Dates after today were written under a wrong clock: they become today, and no round is finalized. A damaged round
    is not finalized, so that a backup can still help: Damaged is raised.
    """
    rounds, day = store.rounds(), day_of(now)
    latest = max((known for r in rounds for known in (r.opened, r.closed) if known is not None), default=day)
    if latest > day:
        store.correct_dates(day)
        return Kept((), f"the clock says {day}, and the store has a round of {latest}")
    last = day - timedelta(days=grace_days + 1)
    due = [r.number for r in rounds if r.state == "closed" and r.closed is not None and r.closed <= last]
    return Kept(tuple(store.finalize(number).number for number in due))
