"""The stores' tables as numbered steps. A store remembers the last step; a newer store is refused.

A step is never changed once it is released: a new one is appended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hdr4me.collector.store import SchemaTooNew

__all__ = ["POSTGRES", "SQLITE", "migrate"]

SQLITE: list[tuple[str, ...]] = [
    (
        "create table surveys (fingerprint text primary key, document text not null) without rowid",
        """create table rounds (number integer primary key, fingerprint text not null, state text not null,
           opened integer not null, closed integer)""",
        # Without rowid: the number is a part of the row, which the checksum covers, and VACUUM cannot change it.
        """create table blocks (number integer primary key, round integer not null, hour integer not null,
           source integer not null, n integer not null, ids blob not null, sizes blob not null,
           data blob not null, checksum blob not null) without rowid""",
        "create table deleted (round integer, id blob, primary key (round, id)) without rowid",
        """create table rejected (round integer, reason text, hour integer, count integer not null,
           primary key (round, reason, hour)) without rowid""",
        """create table quarantine (round integer, hour integer, source integer,
           primary key (round, hour, source)) without rowid""",
        """create table tokens (number integer primary key autoincrement, sha256 blob not null unique,
           scope text not null, label text not null)""",
        """create table tallies (round integer, kind text, content blob not null,
           primary key (round, kind)) without rowid""",
    ),
]

POSTGRES: list[tuple[str, ...]] = [
    (
        "create table surveys (fingerprint text primary key, document text not null)",
        """create table rounds (number integer primary key, fingerprint text not null, state text not null,
           opened date not null, closed date)""",
        # A partition for each round: dropping it removes the round's raw reports at once.
        """create table blocks (number bigint not null, round integer not null, hour integer not null,
           source integer not null, n integer not null, ids bytea not null, sizes bytea not null,
           data bytea not null, checksum bytea not null, primary key (round, number)) partition by list (round)""",
        """create table ids (round integer not null, id uuid not null, primary key (round, id))
           partition by list (round)""",
        "create table pending (round integer, number bigint, n integer not null, primary key (round, number))",
        """create table rejected (round integer, reason text, hour integer, count bigint not null,
           primary key (round, reason, hour))""",
        "create table quarantine (round integer, hour integer, source integer, primary key (round, hour, source))",
        """create table tokens (number integer generated always as identity primary key,
           sha256 bytea not null unique, scope text not null, label text not null)""",
        "create table tallies (round integer, kind text, content bytea not null, primary key (round, kind))",
    ),
]


def migrate(
    version: int, steps: Sequence[tuple[str, ...]], execute: Callable[[str], object], where: str
) -> int:
    """Take the steps after `version`, and return the number of the last one.

    Parameters
    ----------
    version
        The number of the last step that the store has seen; 0 for a new one.
    steps
        All steps that this program knows.
    execute
        Runs one statement, inside a transaction of the caller's.
    where
        The store, for messages.

    Raises
    ------
    SchemaTooNew
        The store has seen a step that this program does not know.

    Examples
    --------
    >>> done = []
    >>> migrate(1, [("create a",), ("create b", "create c")], done.append, "here"), done
    (2, ['create b', 'create c'])
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
