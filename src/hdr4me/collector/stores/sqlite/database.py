"""An SQLite file of the collector: its schema, connections and errors, and its rows even where it is damaged."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from hdr4me.collector.batch import BLOCK_COLUMNS, Block, read_block
from hdr4me.collector.errors import Damage, OnDamage, StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from hdr4me.collector.stores.protocol import LAST_TOKEN, TABLES, Registry, Rows, Tables, migrate
from hdr4me.errors import FormatError

APPLICATION = 0x68447234  # in the header of the file: it is a store of this program

SCHEMA: list[tuple[str, ...]] = [
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
    (
        "create table settings (name text primary key, value text not null) without rowid",
        "insert into settings values ('store', lower(hex(randomblob(16))))",
        "alter table tokens add column expires integer not null default 0",
        """update tokens set expires = strftime('%s', 'now') + 7776000,
           scope = case when scope in ('read', 'admin') then scope else 'send' end""",
        "update rounds set state = 'finalized' where state not in ('open', 'closed')",
        """create table acts (number integer primary key autoincrement, minute text not null, act text not null,
           who text not null)""",
        *(
            f"create trigger acts_{verb} before {verb} on acts "
            "begin select raise(abort, 'the log of acts is append-only'); end"
            for verb in ("update", "delete")
        ),
    ),
]

_PRAGMAS = (
    "synchronous = full",  # a commit is on the disk before it returns
    "secure_delete = on",  # deleted rows are overwritten
    "busy_timeout = 10000",
    "journal_size_limit = 67108864",
    "cache_size = -16384",
    "wal_autocheckpoint = 4096",
)
_PAGE = 1024  # bytes: a commit writes whole pages, and a batch of 64 small reports is less than half of 4 KiB
_LARGEST = (1 << 63) - 1
INSERT_BLOCK = f"insert into blocks ({BLOCK_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?)"


@contextmanager
def store_errors(path: os.PathLike[str] | str) -> Iterator[None]:
    """Raise SQLite's errors as the store's."""
    try:
        yield
    except UnicodeDecodeError as error:  # an error message that quotes damaged text
        raise StoreError(
            f"{path} is damaged: its schema is not readable; restore it from a backup"
        ) from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            raise StoreFull(f"{path}: the disk is full; nothing of this batch was stored") from error
        if code == sqlite3.SQLITE_READONLY:
            raise StoreReadOnly(f"{path} cannot be written: it is read-only") from error
        if code == sqlite3.SQLITE_NOTADB:
            raise FormatError(f"{path} is not a store: it is not an SQLite file") from error
        if code == sqlite3.SQLITE_CORRUPT:
            raise StoreError(f"{path} is damaged: {error}; restore it from a backup") from error
        raise StoreUnavailable(f"{path}: {error}") from error


def create(path: Path) -> None:
    """Create the file if it does not exist, readable by its owner only; SQLite's other files have the same mode."""
    try:
        if not path.exists():
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        elif (mode := path.stat().st_mode) & 0o077:
            path.chmod(mode & 0o700)
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be opened: {error.strerror}") from error


def connect(path: Path, *, readonly: bool = False) -> sqlite3.Connection:
    """A connection without automatic transactions, for use by one thread at a time."""
    uri = f"{path.absolute().as_uri()}?mode={'ro' if readonly else 'rwc'}"
    if not readonly:
        create(path)
    with store_errors(path):
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        for pragma in _PRAGMAS:
            connection.execute(f"pragma {pragma}")
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection, path: Path) -> Iterator[sqlite3.Connection]:
    """All or nothing; on the disk when the block ends."""
    with store_errors(path):
        connection.execute("begin immediate")
        try:
            yield connection
            connection.execute("commit")
        except BaseException:
            if connection.in_transaction:
                connection.execute("rollback")
            raise


def pragma(connection: sqlite3.Connection, name: str) -> int:
    """An integer setting of the file."""
    return int(connection.execute(f"pragma {name}").fetchone()[0])


def prepare(connection: sqlite3.Connection, path: Path) -> int:
    """Create or migrate the tables; the version of the schema."""
    version = pragma(connection, "user_version")
    tables = connection.execute("select count(*) from sqlite_master").fetchone()[0]
    if tables and pragma(connection, "application_id") != APPLICATION:
        raise FormatError(f"{path} is an SQLite file of another program, not a store")
    if not tables:
        connection.execute(f"pragma page_size = {_PAGE}")
    connection.execute("pragma journal_mode = wal")
    with transaction(connection, path):
        last = migrate(version, SCHEMA, connection.execute, str(path))
        if last != version:
            connection.execute(f"pragma application_id = {APPLICATION}")
            connection.execute(f"pragma user_version = {last}")
    if last != version:
        connection.execute("pragma wal_checkpoint(full)")  # the main file contains the store's id
    return last


def real_path(path: str | os.PathLike[str]) -> Path:
    """The path of a store without links; refused if the file has a second name, which could be opened beside it."""
    try:
        found = Path(path).resolve()
        if found.is_dir():
            raise FormatError(f"{path} is a directory, expected a store's file")
        if found.exists() and found.stat().st_nlink > 1:
            raise FormatError(
                f"{path} has several hard links: remove the others, so that one process writes it"
            )
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or "its links form a loop"
        raise StoreUnavailable(f"{path} cannot be opened: {reason}") from None
    return found


@contextmanager
def locked_inode(path: Path, wait: float = 0.0) -> Iterator[None]:
    """Hold a lock of the file itself, whatever its name; BlockingIOError if another process holds it after a wait.

    Only on Linux, where this kind of lock does not exclude SQLite's own locks.
    """
    if sys.platform != "linux":
        yield
        return
    import fcntl

    descriptor = os.open(path, os.O_RDONLY)
    last = time.monotonic() + wait
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= last:
                    raise
                time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)


def side_files(path: Path) -> list[Path]:
    """The files that SQLite keeps beside a store and applies to it when it is opened."""
    return [beside for kind in ("-wal", "-shm", "-journal") if (beside := Path(f"{path}{kind}")).exists()]


def lock_file(path: Path) -> Path:
    """The file that a collector locks; it contains the id of the store that was last opened under this name."""
    return Path(f"{path}.lock")


def check_log(path: Path) -> None:
    """Refuse a log or journal that another store left under this name: SQLite would write it into this one.

    A file that a collector has open has its own log, and is not read here, because the collector may change it. Only
    the first opening of a store has a journal, before the lock file contains an id.
    """
    log, journal, lock = Path(f"{path}-wal"), Path(f"{path}-journal"), lock_file(path)
    owner = lock.read_bytes() if lock.exists() else b""
    found = [side for side in (log, journal) if path.exists() and side.exists() and side.stat().st_size]
    try:
        with locked_inode(path) if found else nullcontext():
            if not found or (found == [log] and _is_own(path, owner)) or (found == [journal] and not owner):
                return
    except BlockingIOError:
        return
    raise FormatError(
        f"{found[-1]} belongs to another store, which {path.name} has replaced: opening it would damage {path.name}. "
        f"Remove {found[-1].name} and {path.name}-shm"
    )


def _is_own(path: Path, owner: bytes) -> bool:
    """Whether a file that no process has open is the store that was last opened under its name."""
    with path.open("rb") as file:
        if file.read(20)[18:20] == b"\1\1":
            return False  # a restored file is not in the mode of a log
    if not owner:
        return True
    uri = f"{path.as_uri()}?mode=ro&immutable=1"  # without its log
    with store_errors(path), closing(sqlite3.connect(uri, uri=True)) as connection:
        (stored,) = connection.execute("select value from settings where name = 'store'").fetchone()
        return bool(stored.encode() == owner)


class SqliteRegistry(Registry):
    """The tokens and the log of acts of an SQLite store, also while a collector writes to it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path, self.name = real_path(path), str(path)
        check_log(self.path)
        self._connection = connect(self.path)
        prepare(self._connection, self.path)

    def _rows(self, sql: str, *values: Any) -> Rows:
        with transaction(self._connection, self.path) as connection:
            return connection.execute(sql, values).fetchall()

    def close(self) -> None:
        self._connection.close()


def check_kind(connection: sqlite3.Connection, path: Path) -> None:
    """Raise an error unless the file is a store that this program can read."""
    if pragma(connection, "application_id") != APPLICATION:
        raise FormatError(f"{path} is not a store of this program")
    version = pragma(connection, "user_version")
    if version < len(SCHEMA):
        raise FormatError(f"{path} has schema {version}: start a collector with it once, which migrates it")
    migrate(version, SCHEMA, connection.execute, str(path))


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
    # No column of a block is text: a value that SQLite reads as text was changed, and its type shows it.
    before, connection.text_factory = connection.text_factory, lambda text: text.decode("latin-1")
    try:
        yield from _Scan(connection, on_damage, round).run()
    finally:
        connection.text_factory = before


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
