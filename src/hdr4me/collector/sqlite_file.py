"""An SQLite file of the collector: opened safely, read even where it is damaged, its errors told in plain words."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hdr4me.collector.blocks import Block, read_block
from hdr4me.collector.statements import BLOCK_COLUMNS
from hdr4me.collector.store import (
    Damage,
    OnDamage,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from hdr4me.errors import FormatError

__all__ = ["APPLICATION", "check_structure", "connect", "insert_block", "scan", "shape", "shrink", "told"]

APPLICATION = 0x68447234
"""In the header of the file: it is a store of this program."""

_PRAGMAS = (
    "synchronous = full",  # a commit is on the disk before it returns
    "secure_delete = on",  # what is deleted is overwritten
    "busy_timeout = 10000",
    "journal_size_limit = 67108864",
    "cache_size = -16384",
    "wal_autocheckpoint = 4096",
)
_LARGEST = (1 << 63) - 1
_PAGE = 1024
"""Bytes of a page. A commit writes whole pages, and a batch of 64 small reports is less than half of 4 KiB."""


def connect(path: Path, *, readonly: bool = False) -> sqlite3.Connection:
    """A connection without automatic transactions, for use by any one thread at a time."""
    mode = "ro" if readonly else "rwc"
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    with told(path):
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        for pragma in _PRAGMAS:
            connection.execute(f"pragma {pragma}")
    return connection


def shape(connection: sqlite3.Connection) -> None:
    """The settings that a file has from its beginning."""
    connection.execute(f"pragma page_size = {_PAGE}")


def shrink(connection: sqlite3.Connection) -> None:
    """Give the space of deleted rows back, if it is more than half of the file."""
    (free,), (pages,) = (
        connection.execute(f"pragma {name}").fetchone() for name in ("freelist_count", "page_count")
    )
    if 2 * free > pages:
        connection.execute("vacuum")


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
    connection.execute(f"insert into blocks ({BLOCK_COLUMNS}) values ({', '.join('?' * len(row))})", row)


def scan(connection: sqlite3.Connection, on_damage: OnDamage, round: int | None = None) -> Iterator[Block]:
    """Every whole block (of a round), and what is damaged to `on_damage`.

    Where SQLite cannot read on, the table is read again in parts that are halved until only the damage is left out.
    The parts are counted from the beginning of the table, never searched for: a search would trust row numbers.
    """
    before, connection.text_factory = connection.text_factory, _not_bytes
    try:
        yield from _Scan(connection, on_damage, round).run()
    finally:
        connection.text_factory = before


def _not_bytes(text: bytes) -> str:
    """No column of a block is text: what SQLite takes for text was changed, and its type shows it."""
    return text.decode("latin-1")


class _Scan:
    """One reading of the table of blocks."""

    def __init__(self, connection: sqlite3.Connection, on_damage: OnDamage, round: int | None) -> None:
        self._connection, self._on_damage, self._round = connection, on_damage, round
        self._seen: set[int] = set()
        self._faults: set[Damage] = set()

    def run(self) -> Iterator[Block]:
        where = "" if self._round is None else f"where round = {int(self._round)}"
        if (yield from self._part(where)):
            return
        try:
            (n,) = self._connection.execute("select count(*) from blocks").fetchone()
        except sqlite3.DatabaseError:  # a page is not a page any more: search for the pages after it
            self._fault(Damage(None, None, "SQLite cannot read all of its table of blocks"))
            yield from self._jumps()
            return
        yield from self._halves(0, n)

    def _jumps(self) -> Iterator[Block]:
        """Blocks in the order of their numbers, past every number after which SQLite cannot read."""
        last = -1
        while last < _LARGEST:
            try:
                row = self._after(last)
            except sqlite3.DatabaseError:
                last = self._next_readable(last)
                continue
            if row is None:
                return
            yield from self._read([row])
            last = max(last + 1, row[0]) if type(row[0]) is int else last + 1

    def _after(self, number: int) -> tuple[Any, ...] | None:
        sql = f"select {BLOCK_COLUMNS} from blocks where number > ? order by number limit 1"
        row: tuple[Any, ...] | None = self._connection.execute(sql, (number,)).fetchone()
        return row

    def _next_readable(self, low: int) -> int:
        """The smallest number after which SQLite can read on, found by halving."""
        high = _LARGEST
        while high - low > 1:
            middle = (low + high) // 2
            try:
                self._after(middle)
                high = middle
            except sqlite3.DatabaseError:
                low = middle
        return high

    def _halves(self, start: int, n: int) -> Iterator[Block]:
        if not n or (yield from self._part("order by number limit ? offset ?", n, start)):
            return
        if n == 1:
            self._fault(Damage(None, None, f"SQLite cannot read block number {start + 1} in the table"))
            return
        yield from self._halves(start, n // 2)
        yield from self._halves(start + n // 2, n - n // 2)

    def _part(self, condition: str, *values: int) -> Generator[Block, None, bool]:
        """Blocks that were not seen before; whether SQLite could read all of this part."""
        sql = f"select {BLOCK_COLUMNS} from blocks {condition}"
        try:
            yield from self._read(self._connection.execute(sql, values))
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_CORRUPT:
                raise
            return False
        return True

    def _read(self, rows: Iterable[Sequence[Any]]) -> Iterator[Block]:
        """The whole blocks among some rows that were not seen before."""
        for row in rows:
            try:
                block = read_block(row)
            except FormatError as error:
                number, round_ = (value if type(value) is int else None for value in row[:2])
                reason = str(error) if number is not None else f"a block is damaged: {error}"
                self._fault(Damage(number, round_, reason))
                continue
            if block.number not in self._seen and self._round in (None, block.round):
                self._seen.add(block.number)
                yield block

    def _fault(self, damage: Damage) -> None:
        if damage not in self._faults:
            self._faults.add(damage)
            self._on_damage(damage)


def check_structure(connection: sqlite3.Connection, on_damage: OnDamage) -> None:
    """What SQLite finds wrong with the file's own structure: so a block that vanished is noticed."""
    try:
        found = [line for (line,) in connection.execute("pragma quick_check(10)")]
    except sqlite3.DatabaseError as error:
        found = [str(error)]
    if found != ["ok"]:
        text = "; ".join(str(line) for line in found).replace("\n", " ")
        on_damage(Damage(None, None, f"the file's structure is damaged ({text[:300]})"))
