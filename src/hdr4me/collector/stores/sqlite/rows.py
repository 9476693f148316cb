"""Blocks and tables as rows of an SQLite file, readable even where the file is damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from hdr4me.collector.batch import BLOCK_COLUMNS, Block, read_block
from hdr4me.collector.errors import Damage, OnDamage
from hdr4me.collector.stores.protocol import LAST_TOKEN, TABLES, Tables
from hdr4me.collector.stores.sqlite.connection import connect, prepare, transaction
from hdr4me.errors import FormatError

INSERT_BLOCK = f"insert into blocks ({BLOCK_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_LARGEST = (1 << 63) - 1


def read_numbers(connection: sqlite3.Connection, numbers: Iterable[int], on_damage: OnDamage) -> list[Block]:
    """Blocks by number; damaged ones are passed to `on_damage` and stay in the file."""
    found = []
    sql = f"select {BLOCK_COLUMNS} from blocks where number = ?"
    for number in numbers:
        try:
            row = connection.execute(sql, (number,)).fetchone()
            if row is None:
                raise FormatError("it is missing from the file")
            found.append(read_block(row))
        except (FormatError, sqlite3.DatabaseError) as error:
            on_damage(Damage(number, None, str(error)))
    return found


def scan(connection: sqlite3.Connection, on_damage: OnDamage, round: int | None = None) -> Iterator[Block]:
    """Every intact block (of a round); damage is passed to `on_damage`.

    Where SQLite cannot continue, the table is read again in parts that are halved until only the damage is left out.
    The parts are counted from the beginning of the table, never searched for: a search would trust row numbers.
    """
    before, connection.text_factory = connection.text_factory, _not_bytes
    try:
        yield from _Scan(connection, on_damage, round).run()
    finally:
        connection.text_factory = before


def _not_bytes(text: bytes) -> str:
    """No column of a block is text: a value that SQLite reads as text was changed, and its type shows it."""
    return text.decode("latin-1")


class _Scan:
    """One pass over the table of blocks."""

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
        except sqlite3.DatabaseError:  # a page is destroyed: search for the pages after it
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
        """The smallest number after which SQLite can read on, found by bisection."""
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
        """Blocks that were not seen before; returns whether SQLite could read all of this part."""
        try:
            rows = self._connection.execute(f"select {BLOCK_COLUMNS} from blocks {condition}", values)
            yield from self._read(rows)
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_CORRUPT:
                raise
            return False
        return True

    def _read(self, rows: Iterable[Sequence[Any]]) -> Iterator[Block]:
        """The intact blocks among some rows that were not seen before."""
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
    """Check the structure of the file itself, so that a block that vanished is noticed."""
    try:
        found = [line for (line,) in connection.execute("pragma quick_check(10)")]
    except sqlite3.DatabaseError as error:
        found = [str(error)]
    if found != ["ok"]:
        text = "; ".join(str(line) for line in found).replace("\n", " ")
        on_damage(Damage(None, None, f"the file's structure is damaged ({text[:300]})"))


def read_tables(connection: sqlite3.Connection) -> Tables:
    """Every table except the blocks."""
    found = {
        name: connection.execute(f"select {columns} from {name}").fetchall()
        for name, columns in TABLES.items()
    }
    last = "select seq from sqlite_sequence where name = 'tokens'"
    return found | {LAST_TOKEN: connection.execute(last).fetchall()}


def fill(path: Path, tables: Tables, blocks: Iterable[Block]) -> None:
    """Make a new SQLite store with these contents."""
    connection = connect(path)
    try:
        prepare(connection, path)
        with transaction(connection, path):
            for name, columns in TABLES.items():
                marks = ", ".join("?" * len(columns.split(",")))
                connection.executemany(f"insert into {name} ({columns}) values ({marks})", tables[name])
            for (last,) in tables[LAST_TOKEN]:
                connection.execute("delete from sqlite_sequence where name = 'tokens'")
                connection.execute("insert into sqlite_sequence values ('tokens', ?)", (last,))
            connection.executemany(INSERT_BLOCK, (block.row() for block in blocks))
        connection.execute("pragma journal_mode = delete")
    finally:
        connection.close()
