"""The SQLite store when things go wrong: damage, a full disk, a second process, another program's file."""

from __future__ import annotations

import logging
import re
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from collector_memory import Arrival, write

from hdr4me.collector.batch import FRESH, Batch
from hdr4me.collector.errors import (
    Damaged,
    SchemaTooNew,
    StoreBusy,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from hdr4me.collector.export import write_parquet
from hdr4me.collector.stores.sqlite.database import SCHEMA
from hdr4me.collector.stores.sqlite.store import SqliteStore
from hdr4me.errors import FormatError
from hdr4me.survey import Survey

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def batch_of(n: int, start: int = 0, *, round: int = 1, hour: int = 100) -> list[Arrival]:
    return [Arrival(round, (start + i).to_bytes(16, "big"), b"\0\0\1", hour) for i in range(n)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "reports.db"


@pytest.fixture
def one(path: Path, opened: Callable[[Any], Any], small_survey: Survey) -> SqliteStore:
    store = opened(path)
    store.open_round(small_survey, now=NOW)
    return store


# -- settings --------------------------------------------------------------------------------------------------


def test_a_commit_is_on_the_disk_before_it_returns(one: SqliteStore) -> None:
    connection = one._connection
    assert connection is not None
    assert connection.execute("pragma journal_mode").fetchone() == ("wal",)
    assert connection.execute("pragma synchronous").fetchone() == (2,)  # full
    assert connection.execute("pragma secure_delete").fetchone() == (1,)


CHILD = """
import sys
from datetime import UTC, datetime
from hdr4me.collector import open_store
from hdr4me.collector.batch import Batch
from hdr4me.survey import Numeric, Schema, Survey
store = open_store(sys.argv[1])
store.open_round(Survey(Schema([Numeric("a", 0, 1)]), mechanism="duchi"), now=datetime.now(UTC))
for i in range(3):
    store.write([Batch(1, 0, bytes([i]) * 16, bytes([0, 0, 1]))])
    sys.stdout.write("acknowledged\\n")
    sys.stdout.flush()
"""


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_the_system_is_asked_to_sync_between_the_write_and_the_acknowledgement(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    options = ["-f", "--seccomp-bpf", "-y", "-o", str(trace), "-e", "trace=pwrite64,write,fsync,fdatasync"]
    run = subprocess.run(
        ["strace", *options, sys.executable, "-c", CHILD, str(tmp_path / "reports.db")],
        capture_output=True,
        text=True,
    )
    if run.returncode and "ptrace" in run.stderr.lower():
        pytest.skip("strace is not allowed here")
    assert run.stdout == "acknowledged\n" * 3, run.stderr
    calls = []
    for line in trace.read_text(errors="replace").splitlines():
        if re.search(r"pwrite64\(\d+<[^>]*-wal>", line):
            calls.append("log")
        elif re.search(r"f(data)?sync\(\d+<[^>]*-wal>\)\s+= 0", line):
            calls.append("sync")
        elif re.search(r'write\(1<.*"acknowledged', line):
            calls.append("answer")
    assert calls.count("answer") == 3
    last = 0
    for index in [i for i, call in enumerate(calls) if call == "answer"]:
        since = calls[last:index]
        assert "log" in since
        assert since[-1] == "sync"  # nothing is written to the log after the last sync and before the answer
        last = index + 1


def test_small_blocks_are_merged(one: SqliteStore) -> None:
    for i in range(140):
        write(one, batch_of(3, 3 * i))
    sizes = [len(block) for block in one.blocks(1)]
    assert sum(sizes) == 420
    assert len(sizes) < 64 + 3
    assert one.tally(1).n_reports == 420


def test_nothing_of_the_sender_and_no_order_is_in_the_file(one: SqliteStore) -> None:
    connection = one._connection
    assert connection is not None
    columns = {
        name: {row[1] for row in connection.execute(f"pragma table_info({name})")}
        for (name,) in connection.execute("select name from sqlite_master where type = 'table'")
    }
    assert columns["blocks"] == {"number", "round", "hour", "source", "n", "ids", "sizes", "data", "checksum"}
    assert columns["rejected"] == {"round", "reason", "hour", "count"}
    assert columns["deleted"] == {"round", "id"}
    every = set().union(*columns.values())
    assert not every & {"address", "ip", "agent", "time", "at", "user", "created"}


def test_the_order_of_arrival_is_removed_at_the_end_of_the_hour(one: SqliteStore) -> None:
    def numbers() -> list[int]:
        return [block.number for block in one.blocks(1) if block.hour == 100]

    for i in range(30):
        write(one, batch_of(1, i, hour=100))
    assert len(numbers()) == 30
    write(one, batch_of(1, 100, hour=101))
    while one.maintain():
        pass
    (block,) = (block for block in one.blocks(1) if block.hour == 100)
    assert len(block) == 30
    assert block.number < FRESH  # random
    write(one, batch_of(3, 200, hour=101))
    write(one, batch_of(3, 300, hour=100))  # a clock that was set back
    one.close_round(1, now=NOW)
    while one.maintain():
        pass
    assert all(block.number < FRESH for block in one.blocks(1))
    assert one.tally(1).n_reports == 37
    one.close()


def test_the_number_of_a_large_block_is_random_and_shows_no_order(one: SqliteStore) -> None:
    for i in range(40):  # a block in two had a number of the other kind
        one.write([Batch(1, 0, b"".join(a.id for a in batch_of(64, 64 * i)), b"\0\0\1" * 64, hour=100)])
    numbers = [block.number for block in one.blocks(1)]
    assert len(numbers) == 40
    assert max(numbers) < FRESH
    assert one._live[1].fresh == {}


def test_deleted_and_finalized_reports_leave_no_bytes_behind(one: SqliteStore, path: Path) -> None:
    batch = [Arrival(1, bytes([i]) * 16, b"\0\0\1", 100) for i in range(1, 40)]
    write(one, batch)
    one.delete(1, batch[7].id)
    while one.maintain():
        pass
    for name in ("reports.db", "reports.db-wal"):
        content = path.with_name(name).read_bytes()
        assert content.count(batch[7].id) == (
            1 if name == "reports.db" else 0
        )  # the mark that it was deleted
    one.close_round(1, now=NOW)
    one.finalize(1)
    for file in path.parent.iterdir():
        content = file.read_bytes()
        assert not any(arrival.id in content for arrival in batch)


def test_sqlite_may_vacuum_the_file(one: SqliteStore, path: Path, opened: Callable[[Any], Any]) -> None:
    for i in range(50):
        write(one, batch_of(70, 100 * i))
    tally = one.tally(1)
    one.close()
    with sqlite3.connect(path) as connection:
        connection.execute("delete from blocks where number = (select max(number) from blocks)")
        connection.commit()
        connection.execute("vacuum")
    connection.close()
    store = opened(path)
    assert store.damage() == []
    assert store.tally(1).n_reports == tally.n_reports - 70


# -- damage ----------------------------------------------------------------------------------------------------


def damaged(path: Path, needle: bytes, bit: int) -> None:
    """Flip a bit of the file, `bit` bits after the beginning of `needle`."""
    data = bytearray(path.read_bytes())
    at = data.index(needle) + bit // 8
    data[at] ^= 1 << bit % 8
    path.write_bytes(data)


@pytest.mark.parametrize("bit", [0, 77, 127])
def test_a_damaged_block_is_reported_and_the_others_are_read(
    one: SqliteStore,
    path: Path,
    opened: Callable[[Any], Any],
    bit: int,
    caplog: pytest.LogCaptureFixture,
    small_survey: Survey,
) -> None:
    for hour in range(5):
        write(one, batch_of(20, 1000 * (hour + 1), hour=hour))
    one.close()
    damaged(path, (2007).to_bytes(16, "big"), bit)
    with caplog.at_level(logging.ERROR, "hdr4me.collector"):
        store = opened(path)
    assert "checksum does not match" in caplog.text
    (damage,) = store.damage()
    assert damage.round == 1
    assert "checksum" in damage.reason
    assert store.round(1).stored == 80
    assert store.tally(1).n_reports == 80
    found: list = []
    assert sum(len(block) for block in store.blocks(1, on_damage=found.append)) == 80
    assert found == [damage]
    blocks = store.blocks(1)
    assert sum(len(next(blocks)) for _ in range(4)) == 80
    with pytest.raises(Damaged, match=f"block {damage.block} of round 1: its checksum"):
        next(blocks)
    with pytest.raises(Damaged):
        list(write_parquet(store, 1, small_survey))
    # What was lost can be sent again.
    assert write(store, batch_of(20, 2000, hour=1)).n_stored == 20
    store.close_round(1, now=NOW)
    with pytest.raises(Damaged):
        store.finalize(1)
    assert store.finalize(1, despite_damage=True).stored == 100


def test_damage_while_the_store_is_open_is_reported(one: SqliteStore, path: Path) -> None:
    for hour in range(3):
        write(one, batch_of(20, 1000 * (hour + 1), hour=hour))
    with sqlite3.connect(path) as other:
        other.execute("update blocks set hour = 7 where hour = 1")
        other.execute("update blocks set round = 9 where hour = 2")
    other.close()
    with pytest.raises(Damaged, match="no longer readable"):
        list(one.blocks(1))
    assert len(one.damage()) == 2


def test_a_merge_leaves_damaged_blocks_where_they_are(one: SqliteStore, path: Path) -> None:
    for i in range(30):
        write(one, batch_of(1, i))
    with sqlite3.connect(path) as other:
        other.execute("update blocks set source = 1 where number = (select min(number) from blocks)")
    other.close()
    for i in range(30, 100):
        write(one, batch_of(1, i))
    assert len(one.damage()) == 1
    found: list = []
    assert sum(len(block) for block in one.blocks(1, on_damage=found.append)) == 99


def test_pages_of_rubbish_are_reported_and_the_others_are_read(
    one: SqliteStore, path: Path, opened: Callable[[Any], Any]
) -> None:
    for i in range(60):
        write(one, batch_of(70, 100 * i, hour=i))
    one.close()
    data = bytearray(path.read_bytes())
    # Leaves of the table: pages with the type of an index leaf on which rows of blocks begin.
    leaves = [
        at for at in range(0, len(data), 1024) if data[at] == 10 and data[at + 3 : at + 5] >= bytes([0, 3])
    ]
    assert len(leaves) >= 3
    for at in leaves[-2:]:
        data[at : at + 1024] = b"\xa5" * 1024
    path.write_bytes(data)
    store = opened(path)
    assert store.damage()
    n = sum(len(block) for block in store.blocks(1, on_damage=lambda damage: None))
    assert 60 * 70 // 4 < n < 60 * 70
    assert n == store.tally(1).n_reports


# -- disk, permissions, processes ----------------------------------------------------------------------------------


def test_a_full_disk_is_reported_and_nothing_is_lost(
    one: SqliteStore, path: Path, opened: Callable[[Any], Any]
) -> None:
    assert write(one, batch_of(100)).n_stored == 100
    connection = one._connection
    assert connection is not None
    (pages,) = connection.execute("pragma page_count").fetchone()
    connection.execute(f"pragma max_page_count = {pages + 2}")
    with pytest.raises(StoreFull, match="the disk is full; nothing of this batch was stored"):
        write(one, batch_of(5000, 1000))
    assert one.round(1).stored == one.tally(1).n_reports == 100
    assert write(one, batch_of(100)).n_stored == 0
    connection.execute("pragma max_page_count = 1000000")
    assert write(one, batch_of(5000, 1000)).n_stored == 5000
    one.close()
    assert opened(path).tally(1).n_reports == 5100


FULL = """
import resource, signal, sys
from datetime import UTC, datetime
from hdr4me.collector import open_store
from hdr4me.collector.batch import Batch
from hdr4me.collector.errors import StoreUnavailable
from hdr4me.survey import Numeric, Schema, Survey
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = open_store(sys.argv[1])
store.open_round(Survey(Schema([Numeric("a", 0, 1)]), mechanism="duchi"), now=datetime.now(UTC))
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
stored = 0
try:
    for i in range(1000):
        ids = b"".join((400 * i + j).to_bytes(16, "big") for j in range(400))
        store.write([Batch(1, 0, ids, bytes([0, 0, 1]) * 400)])
        stored += 400
except StoreUnavailable as error:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    last = Batch(1, 0, bytes([9]) * 16, bytes([0, 0, 1]))
    store.write([last])
    print(stored, store.tally(1).n_reports - last.stored, last.stored)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_a_file_that_cannot_grow_is_reported_and_nothing_is_lost(
    tmp_path: Path, opened: Callable[[Any], Any]
) -> None:
    path = tmp_path / "reports.db"
    run = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True)
    stored, counted, after = map(int, run.stdout.split())
    assert stored > 0
    assert (counted, after) == (stored, 1)
    assert opened(path).tally(1).n_reports == stored + 1


def test_a_file_that_may_not_be_written_is_reported(one: SqliteStore) -> None:
    write(one, batch_of(10))
    connection = one._connection
    assert connection is not None
    connection.execute("pragma query_only = on")
    with pytest.raises(StoreReadOnly, match="read-only"):
        write(one, batch_of(10, 50))
    assert one.tally(1).n_reports == 10
    connection.execute("pragma query_only = off")
    assert write(one, batch_of(10, 50)).n_stored == 10


def test_a_second_process_is_refused(one: SqliteStore, path: Path) -> None:
    code = textwrap.dedent("""
        import sys
        from hdr4me.collector import open_store
        from hdr4me.collector.errors import StoreBusy
        try:
            open_store(sys.argv[1])
        except StoreBusy as error:
            print(error)
    """)
    run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert "is open in another process" in run.stdout
    with pytest.raises(StoreBusy):
        SqliteStore(path)
    one.close()
    SqliteStore(path).close()


def test_memory_is_read_anew_if_it_could_not_follow_the_file(
    one: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hdr4me.collector.stores.memory import IdSet

    def no_memory(self: IdSet, ids: object, owner: object = 0) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(IdSet, "add", no_memory)
        with pytest.raises(MemoryError):
            write(one, batch_of(10))
    # The batch is in the file, though no acknowledgment was sent: the same batch again is a duplicate.
    assert write(one, batch_of(10)).n_stored == 0
    assert one.tally(1).n_reports == 10


# -- other files -----------------------------------------------------------------------------------------------


def test_other_files_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("this is not a database, it is a text of some length" * 20)
    with pytest.raises(FormatError, match="not an SQLite file"):
        SqliteStore(text)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("create table a (x)")
    connection.close()
    with pytest.raises(FormatError, match="another program"):
        SqliteStore(other)
    with pytest.raises(FormatError, match="directory"):
        SqliteStore(tmp_path)
    with pytest.raises(StoreUnavailable):
        SqliteStore(tmp_path / "nowhere" / "reports.db")


def test_a_newer_schema_is_refused_and_an_older_one_is_migrated(
    one: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch, opened: Callable[[Any], Any]
) -> None:
    write(one, batch_of(10))
    one.close()
    steps = [*SCHEMA, ("create table extra (x)",)]
    with monkeypatch.context() as patch:
        patch.setattr("hdr4me.collector.stores.sqlite.database.SCHEMA", steps)
        newer = SqliteStore(path)
        assert newer.schema_version == len(SCHEMA) + 1
        assert newer.tally(1).n_reports == 10
        newer.close()
    with pytest.raises(
        SchemaTooNew, match=r"has schema \d, and this program knows schemas up to \d: use the version"
    ):
        SqliteStore(path)


def test_a_migration_that_fails_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [*SCHEMA, ("create table extra (x)", "this is no statement")]
    with monkeypatch.context() as patch:
        patch.setattr("hdr4me.collector.stores.sqlite.database.SCHEMA", steps)
        with pytest.raises(StoreUnavailable, match="syntax error"):
            SqliteStore(path)
    store = SqliteStore(path)
    assert store.schema_version == len(SCHEMA)
    store.close()


def test_the_library_and_the_client_never_import_the_collector() -> None:
    code = (
        "import sys, hdr4me, hdr4me.client, hdr4me.cli.app; "
        "print([n for n in sys.modules if n.startswith('hdr4me.collector') or n in ('psycopg', 'sqlite3')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
