"""The small tables that both stores have alike: rejected uploads, quarantine, tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from hdr4me.collector.store import Quarantine, Rejection, Round, Scope, Sealed, Token
from hdr4me.errors import InvalidInput

__all__ = ["Tables"]

_ANY = -1
"""In the table of quarantines: every hour, or every source."""


class Tables(ABC):
    """The part of a store that is plain rows; `?` stands for a value in both dialects."""

    @abstractmethod
    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement in a transaction of its own, commit it, and return its rows."""

    @abstractmethod
    def round(self, number: int) -> Round:
        """One round."""

    def rejected(self, round: int, reason: str, hour: int, count: int = 1) -> None:
        """Count uploads that were no reports."""
        self.round(round)
        for name, value in (("hour", hour), ("count", count)):
            if type(value) is not int or not 0 <= value < 1 << 31:
                raise InvalidInput.of(name, value, "a whole number from 0 to 2^31 - 1")
        self._rows(
            "insert into rejected (round, reason, hour, count) values (?, ?, ?, ?) "
            "on conflict (round, reason, hour) do update set count = rejected.count + excluded.count",
            round,
            reason,
            hour,
            count,
        )

    def rejections(self, round: int) -> list[Rejection]:
        """The counts of `rejected`, by reason and hour."""
        sql = "select reason, hour, count from rejected where round = ? order by reason, hour"
        return [Rejection(*row) for row in self._rows(sql, round)]

    def set_quarantine(self, round: int, quarantine: Quarantine, *, on: bool = True) -> None:
        """Put reports into quarantine, or take them out; nothing is deleted."""
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
        """What is in quarantine."""
        sql = "select hour, source from quarantine where round = ? order by hour, source"
        return [
            Quarantine(None if hour == _ANY else hour, None if source == _ANY else source)
            for hour, source in self._rows(sql, round)
        ]

    def add_token(self, sha256: bytes, scope: Scope, label: str = "") -> Token:
        """Remember a token by its SHA-256 (32 bytes)."""
        if type(sha256) is not bytes or len(sha256) != 32:
            raise InvalidInput("sha256 must be the 32 bytes of a token's SHA-256")
        if scope not in ("upload", "read", "admin"):
            raise InvalidInput.of("scope", scope, "upload, read or admin")
        made = self._rows(
            "insert into tokens (sha256, scope, label) values (?, ?, ?) on conflict do nothing returning number",
            sha256,
            scope,
            label,
        )
        if not made:
            raise InvalidInput(f"this token is known already (label = {label!r}): make another one")
        return Token(made[0][0], sha256, scope, label)

    def remove_token(self, number: int) -> bool:
        """Forget a token."""
        return bool(self._rows("delete from tokens where number = ? returning number", number))

    def tokens(self) -> list[Token]:
        """Every token, by number."""
        rows = self._rows("select number, sha256, scope, label from tokens order by number")
        return [Token(number, bytes(sha256), scope, label) for number, sha256, scope, label in rows]
