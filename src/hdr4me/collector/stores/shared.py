"""What both stores have in common: the tables, migrations, and the rules of a round's life."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime

from hdr4me.collector.batch import ID_SIZE
from hdr4me.collector.stores.protocol import Quarantine, Round, Rows, SchemaTooNew, Sealed, State
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
