"""The PostgreSQL store: several writers, a database that goes away, damage, the stored tally."""

from __future__ import annotations

import signal
import tempfile
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from collector_memory import Arrival, write

from hdr4me.collector.errors import Damaged, SchemaTooNew, StoreReadOnly, StoreUnavailable
from hdr4me.collector.stores.postgres.database import SCHEMA, read_blocks
from hdr4me.collector.stores.postgres.store import PostgresStore
from hdr4me.collector.stores.protocol import Quarantine
from hdr4me.errors import InvalidInput
from hdr4me.survey import Survey
from hdr4me.tally.file import dumps

psycopg = pytest.importorskip("psycopg")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def batch_of(n: int, start: int = 0, *, hour: int = 100, source: int = 0) -> list[Arrival]:
    return [
        Arrival(1, (start + i).to_bytes(16, "big"), bytes([i % 2, 0, i // 2 % 2]), hour, source)
        for i in range(n)
    ]


@pytest.fixture
def one(database: str, opened: Callable[[Any], Any], small_survey: Survey) -> PostgresStore:
    store = opened(database)
    store.open_round(small_survey, now=NOW)
    return store


def run_sql(database: str, sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(database, autocommit=True) as connection:
        cursor = connection.execute(sql)
        return cursor.fetchall() if cursor.description else []


def test_two_writers_store_each_id_once(
    one: PostgresStore, database: str, opened: Callable[[Any], Any]
) -> None:
    stores = [one, opened(database)]
    stored: list[list[bool]] = [[], []]
    faults: list[BaseException] = []

    def fill(which: int) -> None:
        try:
            for start in range(0, 300, 10):
                # The same ids from both, in other orders: sorted ids cannot deadlock.
                batch = batch_of(40, start)
                stored[which] += write(stores[which], batch if which else batch[::-1]).stored
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=fill, args=(which,)) for which in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert sum(stored[0]) + sum(stored[1]) == 330
    assert one.tally(1).n_reports == one.round(1).stored == 330
    ids = [id for block in one.blocks(1) for id in block.ids]
    assert len(ids) == len(set(ids)) == 330


def test_a_second_worker_sees_what_the_first_did(
    one: PostgresStore, database: str, opened: Callable[[Any], Any]
) -> None:
    other = opened(database)
    write(one, batch_of(10))
    assert write(other, batch_of(12)).n_stored == 2
    other.close_round(1, now=NOW)
    assert write(one, batch_of(5, 100)).refused == (True,) * 5


def test_the_stored_tally_and_what_waits_are_the_tally(
    database: str, small_survey: Survey, one: PostgresStore
) -> None:
    store = PostgresStore(database, fold=50)
    for i in range(9):
        write(store, batch_of(12, 100 * i, hour=100 + i % 2, source=i % 3))
        tally = store.tally(1)
        assert tally.n_reports == 12 * (i + 1)
        store.maintain()
        (waiting,) = run_sql(database, "select coalesce(sum(n), 0) from hdr4me.pending")[0]
        assert waiting < 50 + 12
    kept = [block for block in store.blocks(1) if block.source != 1]
    assert store.tally(1, without=[Quarantine(source=1)]).n_reports == sum(map(len, kept))
    # Deleted from a counted block, and from a waiting one.
    store.fold(1)
    write(store, batch_of(3, 5000))
    before = store.tally(1)
    assert store.delete(1, (3).to_bytes(16, "big"))
    assert store.delete(1, (5001).to_bytes(16, "big"))
    assert store.tally(1).n_reports == before.n_reports - 2
    whole = dumps(store.tally(1))
    run_sql(database, "delete from hdr4me.tallies")  # counted anew from the raw blocks, it is the same
    run_sql(
        database,
        "insert into hdr4me.pending select round, number, n from hdr4me.blocks on conflict do nothing",
    )
    assert dumps(store.tally(1)) == whole
    store.fold(1)
    assert dumps(store.tally(1)) == whole
    store.close()


def test_damaged_batches_are_reported_and_the_others_are_read(one: PostgresStore, database: str) -> None:
    for hour in range(4):
        write(one, batch_of(20, 1000 * hour, hour=hour))
    run_sql(
        database, "update hdr4me.blocks set data = set_byte(data, 5, get_byte(data, 5) # 4) where hour = 2"
    )
    assert one.tally(1).n_reports == 60
    (damage,) = one.damage()
    assert "checksum" in str(damage)
    blocks = one.blocks(1)
    assert sum(len(next(blocks)) for _ in range(3)) == 60
    with pytest.raises(Damaged, match="round 1: its checksum does not match"):
        next(blocks)
    one.fold(1)
    assert one.tally(1).n_reports == 60
    one.close_round(1, now=NOW)
    with pytest.raises(Damaged):
        one.finalize(1)
    assert one.finalize(1, despite_damage=True).stored == 60


def test_finalized_reports_are_gone_from_the_database(one: PostgresStore, database: str) -> None:
    write(one, batch_of(20))
    one.close_round(1, now=NOW)
    one.finalize(1)
    tables = {
        name for (name,) in run_sql(database, "select tablename from pg_tables where schemaname = 'hdr4me'")
    }
    assert not {"blocks_1", "ids_1"} & tables
    for table in ("blocks", "ids", "pending"):
        assert run_sql(database, f"select count(*) from hdr4me.{table}") == [(0,)]


def test_nothing_of_the_sender_is_in_the_database(one: PostgresStore, database: str) -> None:
    columns = run_sql(
        database,
        "select table_name, column_name, data_type from information_schema.columns where table_schema = 'hdr4me'",
    )
    assert not {name for _, name, _ in columns} & {"address", "ip", "agent", "time", "at", "user", "created"}
    assert not {kind for _, _, kind in columns if kind.startswith("time")}


def test_a_database_that_may_not_be_written_is_reported(one: PostgresStore, database: str) -> None:
    write(one, batch_of(5))
    one.close()
    (name,) = run_sql(database, "select current_database()")[0]
    run_sql(database, f"alter database {name} set default_transaction_read_only = on")
    try:
        with pytest.raises(StoreReadOnly, match="read-only"):
            PostgresStore(database)
    finally:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("set default_transaction_read_only = off")
            connection.execute(f"alter database {name} reset default_transaction_read_only")
    store = PostgresStore(database)
    assert store.tally(1).n_reports == 5
    store.close()


def test_a_newer_schema_is_refused(
    one: PostgresStore, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(
            "hdr4me.collector.stores.postgres.database.SCHEMA", [*SCHEMA, ("create table extra (x int)",)]
        )
        newer = PostgresStore(database)
        assert newer.schema_version == 3
        newer.close()
    with pytest.raises(SchemaTooNew, match="has schema 3, and this program knows schemas up to 2"):
        PostgresStore(database)


def test_nobody_at_the_address_is_reported_without_the_password() -> None:
    with pytest.raises(StoreUnavailable, match=r"postgresql://127\.0\.0\.1:1/x does not answer") as caught:
        PostgresStore("postgresql://me:secret@127.0.0.1:1/x")
    assert "secret" not in str(caught.value)


def test_commits_are_synchronous_whatever_the_database_says(one: PostgresStore, database: str) -> None:
    (name,) = run_sql(database, "select current_database()")[0]
    run_sql(database, f"alter database {name} set synchronous_commit = off")
    try:
        store = PostgresStore(database)
        assert store._rows("select current_setting('synchronous_commit')") == [("on",)]
        store.close()
    finally:
        run_sql(database, f"alter database {name} reset synchronous_commit")


def test_a_database_that_goes_and_comes_back_loses_nothing(small_survey: Survey) -> None:
    postgres_server = pytest.importorskip("postgres_server")
    with tempfile.TemporaryDirectory(prefix="pg", ignore_cleanup_errors=True) as folder:
        server = postgres_server.make(Path(folder, "d"))
        try:
            store, idle = PostgresStore(server.get_uri()), PostgresStore(server.get_uri())
            store.open_round(small_survey, now=NOW)
            assert write(store, batch_of(50)).n_stored == 50
            assert idle.tally(1).n_reports == 50
            postgres_server.kill(server)
            for call in (
                lambda: write(store, batch_of(60)),
                store.ping,
                store.rounds,
                lambda: store.tally(1),
            ):
                with pytest.raises(StoreUnavailable, match="does not answer"):
                    call()
            postgres_server.start_again(server)
            store.ping()
            assert write(store, batch_of(60)).n_stored == 10
            # Its connections died while it did nothing: it notices, and connects anew.
            assert write(idle, batch_of(70)).n_stored == 10
            assert store.tally(1).n_reports == 70
            store.close()
            idle.close()
        finally:
            postgres_server.kill(server, signal.SIGQUIT)


def test_a_database_that_does_not_sync_is_refused(
    one: PostgresStore, database: str, monkeypatch: Any
) -> None:
    (fsync,) = run_sql(database, "show fsync")[0]
    assert fsync == "on"
    run_sql(database, "alter system set fsync = off")
    run_sql(database, "select pg_reload_conf()")
    try:
        for _ in range(100):
            if run_sql(database, "show fsync") == [("off",)]:
                break
        with pytest.raises(InvalidInput, match="fsync = off"):
            PostgresStore(database)
    finally:
        run_sql(database, "alter system reset fsync")
        run_sql(database, "select pg_reload_conf()")
    for _ in range(100):
        if run_sql(database, "show fsync") == [("on",)]:
            break


def test_a_reader_sees_a_round_before_or_after_it_is_finalized(one: PostgresStore) -> None:
    write(one, batch_of(10))
    one.close_round(1, now=NOW)
    with one._database.reading() as connection:
        assert one._round(connection, 1).state == "closed"
        thread = threading.Thread(target=one.finalize, args=(1,))
        thread.start()
        thread.join(0.3)
        assert [len(block) for block in read_blocks(connection, pytest.fail, "round = %s", 1)] == [10]
    thread.join()
    assert one.round(1).state == "finalized"
    assert one.tally(1).n_reports == 10


def test_a_new_round_does_not_wait_for_readers_and_writers(one: PostgresStore, small_survey: Survey) -> None:
    write(one, batch_of(10))
    export = one.blocks(1)
    next(export)
    with one._database.transaction() as connection:
        connection.execute("select * from ids")
        connection.execute("delete from blocks where round = 9")
        thread = threading.Thread(target=one.open_round, args=(small_survey,), kwargs={"now": NOW})
        thread.start()
        thread.join(5)
        assert not thread.is_alive()
    assert len(one.rounds()) == 2
