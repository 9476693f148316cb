"""An SQLite file of the collector: opened safely, read even where it is damaged, its errors told in plain words."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hdr4me.collector.blocks import COLUMNS, Block, read_block
from hdr4me.collector.store import (
    Damage,
    OnDamage,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from hdr4me.errors import FormatError

__all__ = ["APPLICATION", "check_structure", "connect", "insert_block", "scan", "told"]

APPLICATION = 0x68447234
"""In the header of the file: it is a store of this program."""

_PRAGMAS = (
    "synchronous = full",  # a commit is on the disk before it returns
    "secure_delete = on",  # what is deleted is overwritten
    "busy_timeout = 10000",
    "journal_size_limit = 67108864",
    "cache_size = -16384",
)
_LARGEST = (1 << 63) - 1


def connect(path: Path, *, readonly: bool = False) -> sqlite3.Connection:
    """A connection without automatic transactions, for use by any one thread at a time."""
    mode = "ro" if readonly else "rwc"
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    with told(path):
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        for pragma in _PRAGMAS:
            connection.execute(f"pragma {pragma}")
    return connection


@contextmanager
def told(path: os.PathLike[str] | str) -> Iterator[None]:
    """SQLite's errors as the store's."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            raise StoreFull(f"{path}: the disk is full; nothing of this batch was stored") from error
        if code == sqlite3.SQLITE_READONLY:
            raise StoreReadOnly(f"{path} cannot be written: it is read-only") from error
        if code == sqlite3.SQLITE_NOTADB:
            raise FormatError(f"{path} is not a store: it is no SQLite file") from error
        if code == sqlite3.SQLITE_CORRUPT:
            raise StoreError(f"{path} is damaged: {error}; restore it from a backup") from error
        raise StoreUnavailable(f"{path}: {error}") from error


def insert_block(connection: sqlite3.Connection, block: Block) -> None:
    """One block as one row."""
    row = block.row()
    marks = ", ".join("?" * (1 + len(row)))
    connection.execute(
        f"insert into blocks (rowid, {', '.join(COLUMNS)}) values ({marks})", (block.number, *row)
    )


def scan(connection: sqlite3.Connection, on_damage: OnDamage, round: int | None = None) -> Iterator[Block]:
    """Every whole block (of a round), and what is damaged to `on_damage`.

    Where SQLite itself cannot read on, the range of numbers is halved until only the damage is left out.
    """
    seen: set[int] = set()
    before, connection.text_factory = connection.text_factory, _not_bytes
    try:
        yield from _scan(connection, on_damage, round, (-_LARGEST, _LARGEST), seen)
    finally:
        connection.text_factory = before


def _not_bytes(text: bytes) -> str:
    """No column of a block is text: what SQLite takes for text was changed, and its type shows it."""
    return text.decode("latin-1")


def _scan(
    connection: sqlite3.Connection,
    on_damage: OnDamage,
    round: int | None,
    between: tuple[int, int],
    seen: set[int],
) -> Iterator[Block]:
    low, high = between
    where = "" if round is None else f" and round = {int(round)}"
    sql = f"select rowid, {', '.join(COLUMNS)} from blocks where rowid between ? and ?{where} order by rowid"
    try:
        for rowid, *row in connection.execute(sql, (low, high)):
            if rowid in seen:
                continue
            seen.add(rowid)
            try:
                block = read_block(row)
                if block.number != rowid:
                    raise FormatError("its number was changed")
            except FormatError as error:
                on_damage(Damage(rowid, row[1] if type(row[1]) is int else None, str(error)))
                continue
            yield block
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
        if low == high:
            on_damage(Damage(low, None, "SQLite cannot read it"))
            return
        middle = (low + high) // 2
        yield from _scan(connection, on_damage, round, (low, middle), seen)
        yield from _scan(connection, on_damage, round, (middle + 1, high), seen)


def check_structure(connection: sqlite3.Connection, on_damage: OnDamage) -> None:
    """What SQLite finds wrong with the file's own structure: so a block that vanished is noticed."""
    try:
        found = [line for (line,) in connection.execute("pragma quick_check(10)")]
    except sqlite3.DatabaseError as error:
        found = [str(error)]
    if found != ["ok"]:
        text = "; ".join(str(line) for line in found).replace("\n", " ")
        on_damage(Damage(None, None, f"the file's structure is damaged ({text[:300]})"))
