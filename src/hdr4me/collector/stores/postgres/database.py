"""A PostgreSQL database of the collector: its schema, connections and errors, and its rows."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg import errors
from psycopg_pool import ConnectionPool

from hdr4me.collector.batch import BLOCK_COLUMNS, Block, read_block, split_ids
from hdr4me.collector.errors import Damage, OnDamage, StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from hdr4me.collector.stores.memory import IdSet
from hdr4me.collector.stores.protocol import LAST_TOKEN, TABLES, Tables, migrate
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.tally import Tally
from hdr4me.tally.file import dumps

Connection = psycopg.Connection[tuple[Any, ...]]

SCHEMA: list[tuple[str, ...]] = [
    (
        "create table surveys (fingerprint text primary key, document text not null)",
        """create table rounds (number integer primary key, fingerprint text not null, state text not null,
           opened date not null, closed date)""",
        # A partition for each round: dropping it deletes the reports of the round at once.
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
    (
        "create table settings (name text primary key, value text not null)",
        "insert into settings values ('store', replace(gen_random_uuid()::text, '-', ''))",
        "alter table tokens add column expires bigint not null default 0",
        """update tokens set expires = extract(epoch from now())::bigint + 7776000,
           scope = case when scope in ('read', 'admin') then scope else 'send' end""",
        "update rounds set state = 'finalized' where state not in ('open', 'closed')",
        """create table acts (number bigint generated always as identity primary key, minute text not null,
           act text not null, who text not null)""",
        # Counted reports of a round (with those of `pending` all stored ones), and of a finalized round all.
        "alter table rounds add column stored bigint",
        """update rounds set stored = (select coalesce(sum(n), 0) from blocks b where b.round = rounds.number
           and not exists (select 1 from pending p where p.round = b.round and p.number = b.number))
           where state <> 'finalized'""",
        # The block into which a report was written first, and the blocks into which blocks were merged since.
        "alter table ids add column block bigint",
        "create table moved (round integer, number bigint, target bigint, primary key (round, number))",
        "create rule acts_update as on update to acts do instead nothing",
        "create rule acts_delete as on delete to acts do instead nothing",
    ),
]

_MIGRATING = 0x68447234
_CONNECTIONS = 3  # the writer and two readers of a worker
_WAIT = 2.0  # seconds to wait for a connection while the database is down
_IDLE = 5.0  # seconds after which an idle connection is checked before it is used


def _configure(connection: Connection) -> None:
    connection.execute("set search_path to hdr4me")
    # A commit is on the disk before it returns, whatever the default of the database is.
    connection.execute(
        "select set_config('synchronous_commit', 'on', false) "
        "where current_setting('synchronous_commit') in ('off', 'local', 'remote_write')"
    )
    connection.commit()


class Database:
    """One database; any thread may use it. The tables are created or migrated when it is opened."""

    def __init__(self, url: str) -> None:
        self.name = re.sub(r"//[^/@]*@", "//", url).partition("?")[0]  # without user and password
        self._url, self._options = url, {"connect_timeout": 5, "application_name": "hdr4me"}
        with self._errors(), self._connected() as connection:
            self.schema_version = self._prepare(connection)
        # When a connection last worked.
        self._used: WeakKeyDictionary[Connection, float] = WeakKeyDictionary()
        self._failed = 0.0  # when a transaction last failed
        self._pool = ConnectionPool(
            url,
            kwargs=self._options,
            configure=_configure,
            check=self._check,
            min_size=1,
            max_size=_CONNECTIONS,
            timeout=_WAIT,
            reconnect_timeout=1.0,
            open=True,
        )

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction that is committed when the block ends, and rolled back if it raises."""
        try:
            with self._errors(), self._pool.connection() as connection:
                yield connection
            self._used[connection] = time.monotonic()
        except StoreError:
            self._failed = time.monotonic()
            raise

    def _check(self, connection: Connection) -> None:
        """Check a connection that was idle, or that has not been used since a failure; a check is a round trip."""
        used = self._used.get(connection, 0.0)
        if used <= self._failed or time.monotonic() - used > _IDLE:
            ConnectionPool.check_connection(connection)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A read-only view as of the first statement, not from the pool: a slow download must not block the writer."""
        with self._errors(), self._connected() as connection:
            connection.execute("set transaction isolation level repeatable read, read only")
            # A dropped table is gone for a view from before, too: the locks are held before the view is made.
            connection.execute("lock table only ids, only blocks in access share mode")
            yield connection

    def rewrite(self, name: str) -> bool:
        """Write a table into a new file without its deleted rows, whose bytes would stay until they are overwritten.

        False if the table is in use: writers would wait for the reader.
        """
        with self._errors(), self._connected() as connection:
            connection.autocommit = True
            connection.execute("set lock_timeout = '1s'")
            if connection.execute("select to_regclass(%s)", (name,)).fetchone() != (None,):
                try:
                    connection.execute(f"vacuum full {name}")
                except errors.LockNotAvailable:
                    return False
        return True

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        with psycopg.connect(self._url, **self._options) as connection:  # type: ignore[arg-type]
            _configure(connection)
            yield connection

    def _prepare(self, connection: Connection) -> int:
        """Create or migrate the tables, one process at a time; the version of the schema."""
        connection.execute("select pg_advisory_xact_lock(%s)", (_MIGRATING,))
        if connection.execute("show fsync").fetchone() == ("off",):
            raise InvalidInput(f"{self.name} runs with fsync = off: commits may be lost; set fsync = on")
        connection.execute("create schema if not exists hdr4me")
        connection.execute("create table if not exists schema_version (version integer not null)")
        row = connection.execute("select max(version) from schema_version").fetchone()
        version = (row and row[0]) or 0
        last = migrate(version, SCHEMA, connection.execute, self.name)
        if last != version:
            connection.execute("insert into schema_version values (%s)", (last,))
        return last

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise the driver's errors as the store's."""
        try:
            yield
        except errors.DiskFull as error:
            raise StoreFull(f"{self.name}: the disk is full; nothing of this batch was stored") from error
        except errors.ReadOnlySqlTransaction as error:
            raise StoreReadOnly(f"{self.name} cannot be written: it is read-only") from error
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            raise StoreUnavailable(f"{self.name} does not answer: {_first_line(error)}") from error
        except psycopg.Error as error:
            raise StoreError(f"{self.name}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def make_partitions(connection: Connection, number: int) -> None:
    """Create the tables of the blocks and ids of a round; their contents are random and never compressed.

    A table that is attached does not wait for readers and writers of other rounds, as a new partition would.
    """
    n = int(number)
    for table in ("ids", "blocks"):
        connection.execute(f"create table {table}_{n} (like {table} including all)")
        connection.execute(f"alter table {table} attach partition {table}_{n} for values in ({n})")
    for column in ("ids", "sizes", "data"):
        connection.execute(f"alter table blocks_{n} alter column {column} set storage external")


def insert_ids(
    connection: Connection, round: int, ids: bytes, numbers: list[int] | None = None, places: bytes = b""
) -> set[bytes]:
    """Insert sorted ids; those that are new. `places` has two bytes for each id: its block's index in `numbers`."""
    block = "%s::bigint"
    given: list[Any] = [numbers[0] if numbers else None]
    if numbers and len(numbers) > 1:
        block = "(%s::bigint[])[1 + get_byte(%b, 2 * i) + 256 * get_byte(%b, 2 * i + 1)]"
        given = [numbers, places, places]
    rows = connection.execute(
        f"insert into ids (round, id, block) select %s, encode(substring(%b from 16 * i + 1 for 16), 'hex')::uuid, "
        f"{block} from generate_series(0, %s) i on conflict do nothing returning uuid_send(id)",
        (round, ids, *given, len(ids) // 16 - 1),
        binary=True,
    )
    return {id for (id,) in rows}


def block_of_id(connection: Connection, round: int, id: bytes) -> int | None:
    """The number of the block that contains a report; None if the report is not stored."""
    row = connection.execute(
        """with recursive at (number) as (
             select block from ids where round = %s and id = %s::uuid
             union all select target from moved join at on moved.round = %s and moved.number = at.number)
           select at.number from at where exists (
             select 1 from blocks where blocks.round = %s and blocks.number = at.number)""",
        (round, id.hex(), round, round),
    ).fetchone()
    return None if row is None else int(row[0])


def move_blocks(connection: Connection, round: int, sources: Sequence[int], target: int | None) -> None:
    """Note that the reports of some blocks are in another one."""
    sql = "insert into moved select %s, number, %s from unnest(%s::bigint[]) number"
    connection.execute(sql, (round, target, list(sources)))


def insert_block(connection: Connection, block: Block, *, pending: bool = True) -> None:
    """Insert a block as one row; `pending`: its reports are not in the stored tally yet."""
    insert = f"insert into blocks ({BLOCK_COLUMNS}) values (%s, %s, %s, %s, %s, %b, %b, %b, %b)"
    if pending:
        insert = (
            f"with made as ({insert} returning round, number, n) "
            "insert into pending (round, number, n) select round, number, n from made"
        )
    connection.execute(insert, block.row())


def read_blocks(
    connection: Connection, on_damage: OnDamage, condition: str = "true", *values: Any
) -> Iterator[Block]:
    """Intact blocks for which an SQL condition with values holds; damaged ones are passed to `on_damage`."""
    with connection.cursor(name="blocks", binary=True) as cursor:
        cursor.itersize = 256
        cursor.execute(f"select {BLOCK_COLUMNS} from blocks where {condition} order by number", values)
        for row in cursor:
            try:
                yield read_block(row)
            except FormatError as error:
                on_damage(Damage(row[0], row[1], str(error)))


def put_tally(connection: Connection, round: int, kind: str, tally: Tally) -> None:
    """Store a tally, which replaces the one before."""
    connection.execute(
        "insert into tallies (round, kind, content) values (%s, %s, %b) "
        "on conflict (round, kind) do update set content = excluded.content",
        (round, kind, dumps(tally)),
    )


def read_tables(connection: Connection) -> Tables:
    """Every table except the blocks, as the SQLite store would have them."""
    found: Tables = {}
    for name, columns in TABLES.items():
        if name != "deleted":
            where = " where kind <> 'running'" if name == "tallies" else ""
            rows = connection.execute(f"select {columns} from {name}{where}", binary=True)
            found[name] = [tuple(v.toordinal() if isinstance(v, date) else v for v in row) for row in rows]
    found["deleted"] = [
        (number, id)
        for number, _, state, _, _ in found["rounds"]
        if state != "finalized"
        for id in _deleted(connection, number)
    ]
    row = connection.execute("select last_value, is_called from tokens_number_seq").fetchone()
    found[LAST_TOKEN] = [(row[0],)] if row and row[1] else []
    return found


def _deleted(connection: Connection, round: int) -> Iterator[bytes]:
    """Ids that are known and in no block."""
    row = connection.execute(
        "select (select count(*) from ids where round = %s), "
        "(select coalesce(sum(n), 0)::bigint from blocks where round = %s)",
        (round, round),
    ).fetchone()
    if row is None or row[0] == row[1]:
        return
    stored = IdSet()
    for (ids,) in connection.execute("select ids from blocks where round = %s", (round,), binary=True):
        stored.add(ids)
    with connection.cursor(name="ids", binary=True) as cursor:
        cursor.execute("select uuid_send(id) from ids where round = %s order by id", (round,))
        while some := b"".join([id for (id,) in cursor.fetchmany(10_000)]):
            known = stored.find(some).tolist()
            yield from (id for id, old in zip(split_ids(some), known, strict=True) if not old)


def fill(connection: Connection, tables: Tables, blocks: Iterable[Block]) -> None:
    """Fill an empty store with the contents of a backup."""
    for name, columns in TABLES.items():
        if name == "deleted":
            continue
        marks = ", ".join(["%s"] * len(columns.split(",")))
        over = " overriding system value" if name in ("tokens", "acts") else ""
        for row in tables[name]:
            values: tuple[Any, ...] = row
            if name == "rounds":
                values = (*row[:3], *(day and date.fromordinal(day) for day in row[3:]))
                if row[2] != "finalized":
                    make_partitions(connection, row[0])
            connection.execute(f"insert into {name} ({columns}){over} values ({marks})", values)
    for (last,) in tables[LAST_TOKEN]:
        connection.execute("select setval('tokens_number_seq', %s)", (last,))
    last_act = max((number for number, *_ in tables["acts"]), default=0)
    connection.execute("select setval(pg_get_serial_sequence('acts', 'number'), %s, false)", (last_act + 1,))
    for round_, id in tables["deleted"]:
        insert_ids(connection, round_, id)
    for block in blocks:
        insert_block(connection, block)
        insert_ids(connection, block.round, block.id_bytes, [block.number])
    connection.execute("update rounds set stored = 0 where state <> 'finalized'")
