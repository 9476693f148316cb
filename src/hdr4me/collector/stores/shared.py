"""What both stores have in common: the small tables, migrations, and the rules of a round's life."""

from __future__ import annotations

import logging
import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import Any

from hdr4me.collector.batch import ID_SIZE
from hdr4me.collector.stores.protocol import (
    Damage,
    Damaged,
    OnDamage,
    Quarantine,
    Rejection,
    Round,
    SchemaTooNew,
    Scope,
    Sealed,
    State,
    Store,
    StoreError,
    Token,
)
from hdr4me.errors import InvalidInput
from hdr4me.survey import Survey
from hdr4me.tally import Tally
from hdr4me.tally.file import loads

log = logging.getLogger("hdr4me.collector")

Rows = list[tuple[Any, ...]]
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
_ANY = -1  # in the table of quarantines: every hour, or every source


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


def closing_day(opened: date, now: datetime) -> date:
    """The day of closing; never before the day of opening, even if the clock was set back."""
    return max(opened, day_of(now))


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


class SharedStore(Store):
    """The part of a store that is the same for both databases; `?` marks a value in both dialects."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._surveys: dict[str, Survey] = {}
        self._damage: list[Damage] = []
        self._damage_lock = threading.Lock()

    @abstractmethod
    def _rows(self, sql: str, *values: Any) -> Rows:
        """Execute a statement in its own transaction, commit, and return the rows."""

    def damage(self) -> list[Damage]:
        with self._damage_lock:
            return list(self._damage)

    def _note(self, damage: Damage) -> None:
        """Remember a damage, and write it to the log the first time."""
        with self._damage_lock:
            if damage not in self._damage:
                self._damage.append(damage)
                log.error("%s is damaged: %s", self.name, damage)

    def _report(self, found: Sequence[Damage], on_damage: OnDamage | None) -> None:
        """Pass each damage to `on_damage`; without it, raise Damaged if there is any."""
        if found and on_damage is None:
            raise Damaged(self.name, found)
        if on_damage is not None:
            for damage in found:
                on_damage(damage)

    def survey(self, fingerprint: str) -> Survey:
        return self._survey(fingerprint, self._rows)

    def _survey(self, fingerprint: str, rows: Callable[..., Rows]) -> Survey:
        """The survey, read with `rows` the first time."""
        if fingerprint not in self._surveys:
            found = rows("select document from surveys where fingerprint = ?", fingerprint)
            if not found:
                raise InvalidInput.of("fingerprint", fingerprint, "the fingerprint of a round's survey")
            self._surveys[fingerprint] = Survey.from_json(found[0][0])
        return self._surveys[fingerprint]

    def _sealed_tally(self, number: int, survey: Survey, without: Sequence[Quarantine]) -> Tally:
        """One of the two tallies of a sealed round: of all reports, or of those outside quarantine."""
        if without and set(without) != set(self.quarantines(number)):
            raise Sealed(
                f"round {number} is sealed: it has one tally of all reports and one without its quarantine"
            )
        return self._stored_tally(number, survey, "kept" if without else "all", self._rows)

    def _stored_tally(self, number: int, survey: Survey, kind: str, rows: Callable[..., Rows]) -> Tally:
        """The tally of a sealed round ("all" or "kept"), read with `rows`."""
        found = rows("select content from tallies where round = ? and kind = ?", number, kind)
        if not found:
            raise StoreError(f"{self.name}: the tally of round {number} is missing; restore a backup")
        return loads(bytes(found[0][0]), survey)

    def rejected(self, round: int, reason: str, hour: int, count: int = 1) -> None:
        self.round(round)
        for name, value in (("hour", hour), ("count", count)):
            if type(value) is not int or not 0 <= value < 1 << 31:
                raise InvalidInput.of(name, value, "an integer from 0 to 2^31 - 1")
        sql = (
            "insert into rejected (round, reason, hour, count) values (?, ?, ?, ?) "
            "on conflict (round, reason, hour) do update set count = rejected.count + excluded.count"
        )
        self._rows(sql, round, reason, hour, count)

    def rejections(self, round: int) -> list[Rejection]:
        sql = "select reason, hour, count from rejected where round = ? order by reason, hour"
        return [Rejection(*row) for row in self._rows(sql, round)]

    def set_quarantine(self, round: int, quarantine: Quarantine, *, on: bool = True) -> None:
        if self.round(round).sealed:
            raise Sealed(f"round {round} is sealed: its quarantine can no longer be changed")
        hour = _ANY if quarantine.hour is None else quarantine.hour
        source = _ANY if quarantine.source is None else quarantine.source
        if on:
            sql = "insert into quarantine (round, hour, source) values (?, ?, ?) on conflict do nothing"
        else:
            sql = "delete from quarantine where round = ? and hour = ? and source = ?"
        self._rows(sql, round, hour, source)

    def quarantines(self, round: int) -> list[Quarantine]:
        sql = "select hour, source from quarantine where round = ? order by hour, source"
        return [
            Quarantine(None if hour == _ANY else hour, None if source == _ANY else source)
            for hour, source in self._rows(sql, round)
        ]

    def add_token(self, sha256: bytes, scope: Scope, label: str = "") -> Token:
        if type(sha256) is not bytes or len(sha256) != 32:
            raise InvalidInput("sha256 must be the 32 bytes of a token's SHA-256")
        if scope not in ("upload", "read", "admin"):
            raise InvalidInput.of("scope", scope, "upload, read or admin")
        sql = "insert into tokens (sha256, scope, label) values (?, ?, ?) on conflict do nothing returning number"
        made = self._rows(sql, sha256, scope, label)
        if not made:
            raise InvalidInput(f"this token is known already (label = {label!r}): make another one")
        return Token(made[0][0], sha256, scope, label)

    def remove_token(self, number: int) -> bool:
        return bool(self._rows("delete from tokens where number = ? returning number", number))

    def tokens(self) -> list[Token]:
        rows = self._rows("select number, sha256, scope, label from tokens order by number")
        return [Token(number, bytes(sha256), scope, label) for number, sha256, scope, label in rows]
