"""Attacks on a collector and mistakes of its operator: each test failed before the defense was written."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shutil
import sqlite3
import stat
import threading
import time
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from collector_memory import Arrival, memory_store, write
from collector_service import Service, live, serving

from hdr4me.cli import main
from hdr4me.client import Client
from hdr4me.collector import open_registry, open_store
from hdr4me.collector.access import digest
from hdr4me.collector.backup import backup, restore
from hdr4me.collector.batch import FRESH, hour_now
from hdr4me.collector.clock import Clock
from hdr4me.collector.config import Limits
from hdr4me.collector.errors import StoreBusy, StoreFull, StoreUnavailable
from hdr4me.collector.export import write_parquet
from hdr4me.collector.sending import NotAccepted, Spool, send
from hdr4me.collector.stores.protocol import ANYONE, finalize_due
from hdr4me.engines import Local
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.survey import Categorical, Survey

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = int(NOW.timestamp() // 3600)
PATH = "/v1/rounds/1/reports"


def record_of(survey: Survey) -> dict[str, Any]:
    """A value for every dimension."""
    return {one.name: one.categories[0] if isinstance(one, Categorical) else 0.5 for one in survey.schema}


def arrivals(survey: Survey, n: int, hour: int = HOUR, round: int = 1, source: int = 0) -> list[Arrival]:
    """n reports under new ids."""
    client = Client(survey)
    payload = client.report(record_of(survey)).to_bytes(survey)
    return [Arrival(round, secrets.token_bytes(16), payload, hour, source) for _ in range(n)]


def upload(survey: Survey, id: str | None = None) -> tuple[bytes, dict[str, str]]:
    """Body and headers of one report."""
    headers = {"content-type": "application/json", "idempotency-key": id or secrets.token_hex(16)}
    return Client(survey).report(record_of(survey)).to_json().encode(), headers


# -- one writer --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["symbolic", "hard", "folder"])
def test_a_second_name_of_a_store_does_not_open_it_twice(
    tmp_path: Path, opened: Any, small_survey: Survey, kind: str
) -> None:
    (tmp_path / "a").mkdir()
    path = tmp_path / "a" / "reports.db"
    store = opened(path)
    store.open_round(small_survey, now=NOW)
    other = tmp_path / "other.db"
    if kind == "symbolic":
        other.symlink_to(path)
    elif kind == "hard":
        other.hardlink_to(path)
    else:
        (tmp_path / "b").symlink_to(tmp_path / "a")
        other = tmp_path / "b" / "reports.db"
    with pytest.raises((StoreBusy, FormatError), match=r"another process|hard links"):
        open_store(other)


def test_the_lock_is_of_the_file_and_not_of_its_name(
    tmp_path: Path, opened: Any, small_survey: Survey
) -> None:
    """A file that is moved while a collector writes to it cannot be opened under its new name."""
    store = opened(tmp_path / "a.db")
    store.open_round(small_survey, now=NOW)
    (tmp_path / "a.db").rename(tmp_path / "b.db")
    with pytest.raises(StoreBusy):
        open_store(tmp_path / "b.db")
    (tmp_path / "b.db").rename(tmp_path / "a.db")


def test_reports_that_are_stored_twice_are_counted_once(
    tmp_path: Path, opened: Any, small_survey: Survey
) -> None:
    path = tmp_path / "reports.db"
    store = opened(path)
    store.open_round(small_survey, now=NOW)
    batch = arrivals(small_survey, 500)
    write(store, batch)
    store.delete(1, batch[0].id)
    store.close()
    with sqlite3.connect(path) as connection:  # what a second writer leaves
        row = connection.execute("select * from blocks where n > 100").fetchone()
        from hdr4me.collector.batch import block_of, read_block

        first = read_block(row)
        twice = block_of(1, first.hour, 7, zip(first.ids, first.payloads, strict=True))
        connection.execute("insert into blocks values (?, ?, ?, ?, ?, ?, ?, ?, ?)", twice.row())
    connection.close()
    again = opened(path)
    assert (again.round(1).stored, again.tally(1).n_reports) == (499, 499)
    assert sum(len(block) for block in again.blocks(1)) == 499


def test_a_loop_of_links_is_a_plain_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.db").symlink_to(tmp_path / "b.db")
    (tmp_path / "b.db").symlink_to(tmp_path / "a.db")
    with pytest.raises(StoreUnavailable, match=r"loop|links"):
        open_store(tmp_path / "a.db")
    assert main(["token", "list", str(tmp_path / "a.db")]) == 2
    assert "cannot be opened" in capsys.readouterr().err
    loop, output = str(tmp_path / "a.db"), str(tmp_path / "output")
    for command in (["estimate", loop], ["explain", loop], ["tally", loop, loop, "-o", output]):
        assert main(command) == 2
        assert "a.db" in capsys.readouterr().err
    assert main(["backup", loop, "--output", output]) == 2


def test_the_files_of_a_store_are_readable_by_their_owner_only(
    tmp_path: Path, opened: Any, small_survey: Survey
) -> None:
    before = os.umask(0o022)
    try:
        store = opened(tmp_path / "reports.db")
        store.open_round(small_survey, now=NOW)
        write(store, arrivals(small_survey, 5))
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert set(modes) >= {"reports.db", "reports.db-wal", "reports.db-shm", "reports.db.lock"}
    assert set(modes.values()) == {0o600}


# -- restoring ---------------------------------------------------------------------------------------------------


def crashed(folder: Path, survey: Survey, n: int) -> Path:
    """A store whose process was killed: its write-ahead log is left."""
    path = folder / "reports.db"
    store = open_store(path)
    store.open_round(survey, now=NOW)
    write(store, arrivals(survey, n))
    copies = [(file, folder / f"copy-{file.name}") for file in folder.glob("reports.db*") if file.is_file()]
    for file, copy in copies:
        shutil.copyfile(file, copy)
    store.close()
    for file, copy in copies:
        copy.replace(file)
    assert (folder / "reports.db-wal").stat().st_size
    return path


@pytest.mark.parametrize("moved", ["restored", "another store"])
def test_the_log_of_another_store_is_not_applied(
    tmp_path: Path, opened: Any, small_survey: Survey, moved: str
) -> None:
    """A restored file, or another store, is moved over a store whose process was killed."""
    (tmp_path / "old").mkdir()
    path = crashed(tmp_path / "old", small_survey, 900)
    store = opened(tmp_path / "new.db")
    store.open_round(small_survey, now=NOW)
    write(store, arrivals(small_survey, 10))
    backup(tmp_path / "new.db", tmp_path / "saved")
    store.close()
    if moved == "restored":
        restore(tmp_path / "saved", tmp_path / "restored.db")
        (tmp_path / "restored.db").replace(path)
    else:
        (tmp_path / "new.db").replace(path)
    for use in (open_store, open_registry, lambda where: backup(where, tmp_path / "again")):
        with pytest.raises(FormatError, match="belongs to another store"):
            use(path)
    for side in ("-wal", "-shm"):
        Path(f"{path}{side}").unlink(missing_ok=True)
    assert opened(path).tally(1).n_reports == 10


def test_the_journal_of_another_store_is_not_applied(
    tmp_path: Path, opened: Any, small_survey: Survey
) -> None:
    """A process was killed while it changed the mode of a file, which was then replaced by a restored one."""
    for name, n in (("old", 900), ("new", 10)):
        store = opened(tmp_path / f"{name}.db")
        store.open_round(small_survey, now=NOW)
        write(store, arrivals(small_survey, n))
        backup(tmp_path / f"{name}.db", tmp_path / f"{name}.backup")
        store.close()
    path = tmp_path / "old.db"
    restore(tmp_path / "new.backup", tmp_path / "restored.db")
    (tmp_path / "restored.db").replace(path)
    Path(f"{path}-journal").write_bytes(b"pages of the old store")
    for use in (open_store, open_registry, lambda where: backup(where, tmp_path / "again")):
        with pytest.raises(FormatError, match=r"old\.db-journal belongs to another store"):
            use(path)
    Path(f"{path}-journal").unlink()
    assert opened(path).tally(1).n_reports == 10


def test_the_file_of_a_running_collector_is_not_read_without_its_log(
    tmp_path: Path, opened: Any, small_survey: Survey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the collector changes it, such a reader found a damaged file where there was none."""
    store = opened(tmp_path / "reports.db")
    store.open_round(small_survey, now=NOW)
    write(store, arrivals(small_survey, 100))
    assert (tmp_path / "reports.db-wal").stat().st_size
    name = "hdr4me.collector.stores.sqlite.database._is_own"
    monkeypatch.setattr(name, lambda *_: pytest.fail("the file was read"))
    backup(tmp_path / "reports.db", tmp_path / "saved")
    open_registry(tmp_path / "reports.db").close()


def test_a_store_whose_process_was_killed_is_opened(
    tmp_path: Path, opened: Any, small_survey: Survey
) -> None:
    assert opened(crashed(tmp_path, small_survey, 900)).tally(1).n_reports == 900


def test_restore_refuses_the_side_files_of_an_earlier_store(
    tmp_path: Path, opened: Any, small_survey: Survey
) -> None:
    store = opened(tmp_path / "reports.db")
    store.open_round(small_survey, now=NOW)
    backup(tmp_path / "reports.db", tmp_path / "saved")
    for side in ("-wal", "-shm", "-journal"):
        stale = tmp_path / f"new.db{side}"
        stale.write_bytes(b"x")
        with pytest.raises(InvalidInput, match="belongs to an earlier store"):
            restore(tmp_path / "saved", tmp_path / "new.db")
        stale.unlink()
    restore(tmp_path / "saved", tmp_path / "new.db")
    assert opened(tmp_path / "new.db").id != store.id


# -- access ------------------------------------------------------------------------------------------------------


def test_uploads_are_refused_unless_they_are_opened_explicitly(small_survey: Survey) -> None:
    store = memory_store(small_survey, open_uploads=False)

    async def work(service: Service) -> None:
        assert (await service.call("POST", PATH, *upload(small_survey))).status == 401
        store.add_token(ANYONE, "send")
        service.collector._renew()
        assert (await service.call("POST", PATH, *upload(small_survey))).status == 200
        store.remove_token(store.tokens()[-1].number)
        service.collector._renew()
        assert (await service.call("POST", PATH, *upload(small_survey))).status == 401

    serving(store, work)


def test_a_token_expires_is_revoked_and_weak_tokens_are_refused(small_survey: Survey) -> None:
    store = memory_store(small_survey)
    good, old, weak = "g" * 43, "o" * 43, "1"
    number = store.add_token(digest(good), "admin").number
    store.add_token(digest(old), "admin", expires=int(time.time()) - 1)
    store.add_token(digest(weak), "admin")

    async def work(service: Service) -> None:
        for token, status in ((good, 200), (old, 401), (weak, 401), ("\0" * 32, 401)):
            headers = {"authorization": f"Bearer {token}"}
            assert (await service.call("GET", "/v1/acts", headers=headers)).status == status
        store.remove_token(number)
        service.collector._renew()
        headers = {"authorization": f"Bearer {good}"}
        assert (await service.call("GET", "/v1/acts", headers=headers)).status == 401

    serving(store, work)


def test_tokens_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], opened: Any, small_survey: Survey
) -> None:
    """Tokens are added and revoked while a collector has the store open; only hashes are stored."""
    path = str(tmp_path / "reports.db")
    store = opened(path)
    assert main(["token", "add", path, "--scope", "read", "--label", "phones", "--days", "3"]) == 0
    token = capsys.readouterr().out.strip()
    assert len(token) >= 43
    (stored,) = store.tokens()
    assert (stored.sha256, stored.scope, stored.label) == (digest(token), "read", "phones")
    assert 2.9 < (stored.expires - time.time()) / 86_400 < 3.1
    assert main(["token", "list", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["label"] == "phones"
    assert main(["token", "revoke", path, "1"]) == 0
    assert store.tokens() == []
    assert main(["token", "revoke", path, "1"]) == 2
    assert main(["token", "add", path, "--scope", "owner"]) == 2
    assert main(["token", "add", path, "--scope", "read", "--days", "0"]) == 2
    capsys.readouterr()
    assert main(["token", "log", path, "--json"]) == 0
    acts = [act["act"] for act in json.loads(capsys.readouterr().out)]
    assert acts == ["token 1 added (read, phones)", "token 1 revoked"]
    assert token.encode() not in Path(path).read_bytes() + Path(path + "-wal").read_bytes()


def test_the_log_of_acts_is_append_only(store: Any, small_survey: Survey) -> None:
    store.record("something", "someone")
    for sql in ("update acts set act = 'nothing'", "delete from acts"):
        try:
            store._rows(sql)
        except StoreUnavailable as error:
            assert "append-only" in str(error)  # noqa: PT017 - PostgreSQL ignores the statement
    assert [act.act for act in store.acts()] == ["something"]


def test_administrative_acts_are_logged(small_survey: Survey) -> None:
    store = memory_store(small_survey)
    store.add_token(digest("a" * 43), "admin")
    headers = {"authorization": f"Bearer {'a' * 43}"}

    async def work(service: Service) -> None:
        await service.call("POST", "/v1/rounds", small_survey.to_json().encode(), headers)
        await service.call("POST", "/v1/rounds/1/quarantine", b'{"hour": 5}', headers)
        await service.call("GET", "/v1/rounds/1/reports.parquet", headers=headers)
        await service.call("POST", "/v1/rounds/2/close", b"", headers)
        acts = (await service.call("GET", "/v1/acts", headers=headers)).json()["acts"]
        assert [act["act"] for act in acts] == [
            "round 2 opened", "round 1: hour 5, source None quarantined", "round 1 exported", "round 2 closed",
        ]  # fmt: skip
        assert {act["who"] for act in acts} == {"token 1"}

    serving(store, work)


def test_a_restored_store_has_no_tokens(
    where: Any, store: Any, tmp_path: Path, opened: Any, small_survey: Survey
) -> None:
    """A token that was revoked after the backup must not work again."""
    store.open_round(small_survey, now=NOW)
    store.add_token(b"a" * 32, "admin")
    backup(where, tmp_path / "saved")
    restore(tmp_path / "saved", tmp_path / "new.db")
    restore(tmp_path / "saved", tmp_path / "kept.db", keep_tokens=True)
    assert opened(tmp_path / "new.db").tokens() == []
    assert [token.sha256 for token in opened(tmp_path / "kept.db").tokens()] == [b"a" * 32]
    assert opened(tmp_path / "new.db.other").tokens() == []


def test_no_link_is_printed_into_a_journal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, small_survey: Survey
) -> None:
    def run(settings: Any, sock: Any, *, started: Any) -> None:
        started()

    monkeypatch.setattr("hdr4me.collector.serve.run", run)
    small_survey.save(tmp_path / "survey.json")
    given = ["serve", str(tmp_path / "survey.json"), "--database", str(tmp_path / "c.db"), "--port", "0"]
    assert main(given) == 0
    said = capsys.readouterr().err
    assert "#key=" not in said
    assert "no upload token exists" in said
    assert main([*given, "--link", "--open-uploads"]) == 0
    assert "#key=" in capsys.readouterr().err
    with closing(open_registry(tmp_path / "c.db")) as registry:
        assert [token.sha256 for token in registry.tokens()] == [ANYONE]
    assert main(given) == 0  # opened once, uploads stay open until the token of anyone is revoked
    assert "no upload token" not in capsys.readouterr().err


# -- rounds ------------------------------------------------------------------------------------------------------


def test_a_closed_collection_stays_closed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, small_survey: Survey
) -> None:
    monkeypatch.setattr("hdr4me.collector.serve.run", lambda *_, **__: None)
    small_survey.save(tmp_path / "survey.json")
    given = ["serve", str(tmp_path / "survey.json"), "--database", str(tmp_path / "c.db"), "--port", "0"]
    assert main(given) == 0
    store = open_store(tmp_path / "c.db")
    store.close_round(1, now=NOW + timedelta(days=1))
    store.close()
    assert main(given) == 0
    assert "--new-round" in capsys.readouterr().err
    store = open_store(tmp_path / "c.db")
    assert [round.state for round in store.rounds()] == ["closed"]
    store.close()
    assert main([*given, "--new-round"]) == 0
    store = open_store(tmp_path / "c.db")
    assert [round.state for round in store.rounds()] == ["closed", "open"]
    store.close()


# -- a busy hour, and deletion -----------------------------------------------------------------------------------


def test_an_hour_that_is_over_is_merged_in_bounded_steps_and_not_by_a_request(
    tmp_path: Path, opened: Any, small_survey: Survey, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hdr4me.collector.stores.sqlite import store as module

    store = opened(tmp_path / "reports.db")
    store.open_round(small_survey, now=NOW)
    for source in range(5):
        for _ in range(40):
            write(store, arrivals(small_survey, 1, HOUR, source=source))
    sizes: list[int] = []
    from hdr4me.collector.batch import joined

    def counted(blocks: Any) -> Any:
        sizes.append(len(blocks))
        return joined(blocks)

    monkeypatch.setattr(module, "joined", counted)
    write(store, arrivals(small_survey, 1, HOUR + 1))
    assert sizes == []  # no request waits for a merge of an earlier hour
    steps = 0
    while store.maintain():
        steps += 1
    assert steps == 6
    assert max(sizes) <= 64
    assert sum(sizes) == 201
    assert store.tally(1).n_reports == 201


def test_blocks_with_many_bytes_are_never_merged(tmp_path: Path, opened: Any) -> None:
    from hdr4me.collector.stores.memory import SMALL_BYTES
    from hdr4me.survey import Numeric, Schema

    schema = Schema([Numeric(f"x{j}", 0, 1) for j in range(400)])
    wide = Survey(schema, epsilon=400.0, mechanism="duchi", sampled=400)
    store = opened(tmp_path / "reports.db")
    store.open_round(wide, now=NOW)
    per_block = SMALL_BYTES // wide.report_size + 1
    assert per_block < 64
    for _ in range(70):
        write(store, arrivals(wide, per_block))
    assert len(list(store.blocks(1))) == 70
    assert store._live[1].fresh == {}


def test_a_transaction_and_the_queue_are_limited_by_bytes() -> None:
    from hdr4me.collector.batch import Batch
    from hdr4me.collector.config import Limits
    from hdr4me.collector.errors import Log, Refusal
    from hdr4me.collector.state import MOST_BYTES, Writer

    async def work() -> None:
        store: Any = None
        writer = Writer(store, Limits(waiting_bytes=6 * MOST_BYTES), Log())
        batches = [Batch(1, 0, bytes(16), bytes(MOST_BYTES - 16), hour=1) for _ in range(6)]
        for batch in batches[:3]:
            writer.submit(batch)
        with pytest.raises(Refusal, match="too many reports are waiting"):
            writer.submit(batches[3])
        batches[4].sender = "another"
        writer.submit(batches[4])
        with pytest.raises(Refusal, match="too many reports are waiting"):
            writer.submit(batches[5])
        assert (writer.waiting.held, writer.waiting_bytes.held) == (4, 4 * MOST_BYTES)
        assert len(writer._take()) == 2

    asyncio.run(work())


def test_merges_in_postgres_are_limited_by_bytes(
    database: str, opened: Any, small_survey: Survey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hdr4me.collector.stores.postgres.store._MOST_BYTES", 16 * 30)
    store = opened(database)
    store._fold_at = 1
    store.open_round(small_survey, now=NOW)
    for _ in range(6):
        write(store, arrivals(small_survey, 20))
    assert store.maintain()
    assert 2 <= store._rows("select count(*) from pending")[0][0] <= 5
    while store.maintain():
        pass
    assert (store.round(1).stored, store.tally(1).n_reports) == (120, 120)


def test_a_report_is_found_for_deletion_without_a_search_in_all_blocks(
    store: Any, small_survey: Survey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after its block was merged, and after another report of its block was deleted."""
    store.open_round(small_survey, now=NOW)
    store._fold_at = 1
    batch = [one for _ in range(80) for one in arrivals(small_survey, 3, source=secrets.randbelow(2))]
    for start in range(0, 240, 3):
        write(store, batch[start : start + 3])
    write(store, large := arrivals(small_survey, 500))
    deleted = [batch[0], batch[1], large[7], large[8]]
    assert store.delete(1, deleted[0].id)
    while store.maintain():
        pass
    read: list[int] = []
    for name in ("sqlite", "postgres"):
        module = f"hdr4me.collector.stores.{name}.database.read_block"

        def counted(row: Any) -> Any:
            from hdr4me.collector.batch import read_block

            read.append(row[0])
            return read_block(row)

        monkeypatch.setattr(module, counted)
    for one in deleted[1:]:
        assert store.delete(1, one.id)
        assert not store.delete(1, one.id)
    assert len(read) <= 6  # at most one block for each call
    assert not store.delete(1, secrets.token_bytes(16))
    assert store.tally(1).n_reports == store.round(1).stored == 736
    assert {a.id for a in deleted}.isdisjoint(id for block in store.blocks(1) for id in block.ids)


def test_a_deletion_writes_a_small_block_again(store: Any, small_survey: Survey) -> None:
    """Also where one transaction stores 30,000 reports: no block has more than 4,096, or is made of others to have."""
    from hdr4me.collector.batch import MOST_REPORTS, Batch

    store.open_round(small_survey, now=NOW)
    store._fold_at = 1
    payload = arrivals(small_survey, 1)[0].payload
    ids = [secrets.token_bytes(16 * 10_000) for _ in range(3)]
    store.write([Batch(1, i // 2, one, payload * 10_000, hour=HOUR) for i, one in enumerate(ids)])
    while store.maintain():
        pass
    for at in (0, 9_999):
        assert store.delete(1, ids[0][16 * at : 16 * (at + 1)])
        assert not store.delete(1, ids[0][16 * at : 16 * (at + 1)])
    found = list(store.blocks(1))
    assert max(map(len, found)) <= MOST_REPORTS
    stored = [id for block in found for id in block.ids]
    assert len(stored) == len(set(stored)) == store.tally(1).n_reports == 29_998
    assert Counter(block.source for block in found for _ in block.ids) == {0: 19_998, 1: 10_000}


def test_blocks_of_long_reports_are_bounded_in_bytes(tmp_path: Path, opened: Any) -> None:
    from hdr4me.collector.batch import MOST_BYTES, Batch, together
    from hdr4me.survey import Numeric, Schema

    schema = Schema([Numeric(f"x{j}", 0, 1) for j in range(400)])
    wide = Survey(schema, epsilon=400.0, mechanism="duchi", sampled=400)
    store = opened(tmp_path / "reports.db")
    store.open_round(wide, now=NOW)
    payload = arrivals(wide, 1)[0].payload
    n = 3 * MOST_BYTES // len(payload)
    store.write([Batch(1, 0, secrets.token_bytes(16 * n), payload * n, hour=HOUR)])
    found = list(store.blocks(1))
    assert sum(map(len, found)) == n
    assert max(len(block.data) for block in found) <= MOST_BYTES
    assert [len(group) for group in together(found)] == [1] * len(found)


def test_deletion_does_not_wait_for_an_export(tmp_path: Path, opened: Any, small_survey: Survey) -> None:
    store = opened(tmp_path / "reports.db")
    store.open_round(small_survey, now=NOW)
    for _ in range(3):
        write(store, batch := arrivals(small_survey, 100))
    export = store.blocks(1)
    next(export)
    assert store.delete(1, batch[0].id)
    assert not store._emptied_log()  # at once, because the export reads it
    export.close()
    store.maintain()
    assert Path(f"{store.path}-wal").stat().st_size == 0


def test_finalized_tallies_are_not_parsed_for_a_list_of_rounds(
    store: Any, small_survey: Survey, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.open_round(small_survey, now=NOW)
    write(store, arrivals(small_survey, 30))
    store.close_round(1, now=NOW)
    store.finalize(1)
    monkeypatch.setattr(type(store), "_stored_tally", None)
    assert [round.stored for round in store.rounds()] == [30]


# -- the clock, and spools ---------------------------------------------------------------------------------------


class Times:
    """A system's clock that tests set, and the time that passes."""

    def __init__(self) -> None:
        self.wall, self.passed = NOW.timestamp(), 0.0

    def clock(self) -> Clock:
        return Clock(lambda: self.wall, lambda: self.passed)

    def go(self, seconds: float, jump: float = 0.0) -> None:
        self.wall += seconds + jump
        self.passed += seconds


def test_a_short_jump_of_the_clock_is_not_followed() -> None:
    times = Times()
    clock = times.clock()
    times.go(7200)
    assert clock.steady
    before = clock.now()
    times.go(3, jump=1000 * 86_400)
    assert clock.now() == before + 3
    assert clock.jump == 1000 * 86_400
    assert not clock.steady
    times.go(3, jump=-1000 * 86_400)
    assert (clock.now(), clock.jump, clock.steady) == (before + 6, 0.0, True)


def test_a_jump_that_lasts_is_followed_and_then_the_clock_must_be_steady_again() -> None:
    times = Times()
    clock = times.clock()
    times.go(7200)
    times.go(1, jump=-5 * 86_400)
    assert clock.now() > times.wall
    for _ in range(70):
        times.go(60)
        clock.now()
    assert (clock.now(), clock.jump, clock.steady) == (times.wall, 0.0, False)
    times.go(3600)
    assert clock.steady


def test_one_wrong_reading_finalizes_nothing_and_retention_goes_on_afterwards(
    tmp_path: Path, opened: Any, small_survey: Survey
) -> None:
    store = opened(tmp_path / "reports.db")
    store.open_round(small_survey, now=NOW)
    write(store, arrivals(small_survey, 5, HOUR + 24_000))  # under a clock that was 1,000 days ahead
    store.close_round(1, now=NOW + timedelta(days=1000))
    today = NOW + timedelta(days=1)
    kept = finalize_due(store, now=today, grace_days=7)
    assert (kept.finalized, store.round(1).closed) == ((), today.date())
    assert finalize_due(store, now=today + timedelta(days=7), grace_days=7).finalized == ()
    assert finalize_due(store, now=today + timedelta(days=8), grace_days=7).finalized == (1,)


def test_a_jump_is_shown_and_nothing_is_finalized(small_survey: Survey) -> None:
    times = Times()

    async def work(service: Service) -> None:
        service.collector.clock = times.clock()
        assert (await service.call("GET", "/readyz")).json() == {"status": "ready"}
        times.go(3, jump=86_400)
        shown = (await service.call("GET", "/readyz")).json()
        assert "jumped by 86400 seconds" in shown["clock"]

    serving(memory_store(small_survey), work)


def test_tokens_do_not_follow_a_short_jump_of_the_clock(
    small_survey: Survey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that is set back makes no expired token valid; one that jumps ahead locks nobody out."""
    times, store = Times(), memory_store(small_survey)
    monkeypatch.setattr("hdr4me.collector.access.CLOCK", clock := times.clock())
    good, old = "g" * 43, "o" * 43
    store.add_token(digest(good), "admin", expires=int(clock.now()) + 100)
    store.add_token(digest(old), "admin", expires=int(clock.now()) - 100)

    async def work(service: Service) -> None:
        for jump in (86_400, -2 * 86_400):
            times.go(3, jump=jump)
            for token, status in ((good, 200), (old, 401)):
                headers = {"authorization": f"Bearer {token}"}
                assert (await service.call("GET", "/v1/acts", headers=headers)).status == status

    serving(store, work)


def test_a_spool_is_sent_to_one_round_only(tmp_path: Path, small_survey: Survey) -> None:
    """The round is closed and another one is opened: sending again must not count the reports in both."""
    Local(threads=1).perturb(np.zeros((50, 2)), small_survey, tmp_path / "reports.arrow")
    spool = Spool(tmp_path, small_survey)
    spool.assign_ids(50)
    store = memory_store(small_survey)
    with live(store) as (url, _):
        assert send(spool, url).stored == 50
        assert send(spool, url).duplicates == 50
        store.close_round(1, now=NOW)
        store.open_round(small_survey, now=NOW)
        time.sleep(1.5)  # until the collector has noticed
        with pytest.raises(NotAccepted, match="round 1 is closed"):
            send(spool, url)
        with pytest.raises(InvalidInput, match="was sent to round 1"):
            send(spool, url, round_number=2)
    assert [len(reports) for reports in store.reports.values()] == [50, 0]


# -- what is stored, and what is shown ---------------------------------------------------------------------------


def order_of_export(store: Any, survey: Survey) -> list[Any]:
    import io

    import pyarrow.parquet as pq

    content = b"".join(write_parquet(store, 1, survey))
    return pq.read_table(io.BytesIO(content)).column("id").to_pylist()


def test_an_export_is_not_in_the_order_of_arrival(store: Any, small_survey: Survey) -> None:
    store.open_round(small_survey, now=NOW)
    batch = arrivals(small_survey, 50, hour_now())
    for one in batch:
        write(store, [one])
    ids = order_of_export(store, small_survey)
    assert ids == sorted(one.id for one in batch)
    assert ids != [one.id for one in batch]


def test_the_file_after_a_clean_stop_is_not_in_the_order_of_arrival(
    tmp_path: Path, opened: Any, small_survey: Survey
) -> None:
    store = opened(tmp_path / "reports.db")
    store.open_round(small_survey, now=NOW)
    for one in (batch := arrivals(small_survey, 50, hour_now())):
        write(store, [one])
    store.close()
    with sqlite3.connect(tmp_path / "reports.db") as connection:
        rows = connection.execute("select number, ids from blocks").fetchall()
    connection.close()
    assert len(rows) == 1
    assert rows[0][0] < FRESH
    assert rows[0][1] == b"".join(sorted(one.id for one in batch))


def test_blocks_in_the_file_after_a_clean_stop_are_not_in_the_order_of_arrival(
    tmp_path: Path, opened: Any, small_survey: Survey
) -> None:
    """The correlation of order and position; for 40 blocks in random order it exceeds 0.65 with probability 1e-5."""
    store = opened(tmp_path / "reports.db")
    store.open_round(small_survey, now=NOW)
    batches = [arrivals(small_survey, 64) for _ in range(40)]
    for batch in batches:
        write(store, batch)
    store.close()
    content = (tmp_path / "reports.db").read_bytes()
    positions = [np.median([content.find(one.id) for one in batch]) for batch in batches]
    assert abs(np.corrcoef(positions, range(40))[0, 1]) < 0.65


def test_a_damaged_block_is_reported_with_every_answer(
    tmp_path: Path, opened: Any, small_survey: Survey
) -> None:
    path = tmp_path / "reports.db"
    store = opened(path)
    store.open_round(small_survey, now=NOW)
    for _ in range(6):
        write(store, arrivals(small_survey, 100))
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("update blocks set n = 1 where number = (select min(number) from blocks)")
    connection.close()
    store = opened(path)
    store.add_token(digest("r" * 43), "read")
    headers = {"authorization": f"Bearer {'r' * 43}"}

    async def work(service: Service) -> None:
        answer = (await service.call("GET", "/v1/rounds/1/estimate", headers=headers)).json()
        assert (answer["reports"], answer["damaged_blocks"]) == (500, 1)
        tally = await service.call("GET", "/v1/rounds/1/tally", headers=headers)
        assert tally.headers["x-damaged-blocks"] == "1"
        table = await service.call("GET", "/v1/rounds/1/estimate.csv", headers=headers)
        assert table.headers["x-damaged-blocks"] == "1"

    serving(store, work)


def test_a_deletion_on_a_full_disk_says_what_happened(small_survey: Survey) -> None:
    store = memory_store(small_survey)

    def full(round: int, id: bytes) -> bool:
        raise StoreFull("the disk is full")

    store.delete = full  # type: ignore[method-assign]

    async def work(service: Service) -> None:
        answer = await service.call("DELETE", PATH, json.dumps({"id": "0" * 32}).encode())
        assert answer.status == 507
        assert "nothing was changed" in answer.json()["error"]

    serving(store, work)


def test_deletions_are_limited(small_survey: Survey) -> None:
    async def work(service: Service) -> None:
        body = json.dumps({"id": "0" * 32}).encode()
        statuses = [(await service.call("DELETE", PATH, body)).status for _ in range(70)]
        assert statuses.count(404) >= 60
        assert statuses[-1] == 429
        assert service.collector.deletions.take("another address", 1) == 0

    serving(memory_store(small_survey), work, limits=Limits(deletions=1.0))


def test_the_memory_of_rates_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    from hdr4me.collector import access

    monkeypatch.setattr(access, "_MOST_SENDERS", 5)
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    rates = access.Rates(1.0)
    assert [rates.take(sender, 60) for sender in (0, 1, 2, 3, 4, 0, 5)] == [0.0] * 5 + [60.0, 0.0]
    assert list(rates._buckets) == [2, 3, 4, 0, 5]


def test_no_id_is_part_of_an_address(small_survey: Survey) -> None:
    async def work(service: Service) -> None:
        body, headers = upload(small_survey, "ab" * 16)
        assert (await service.call("POST", PATH, body, headers)).status == 200
        assert (await service.call("DELETE", f"{PATH}/{'ab' * 16}")).status == 404
        assert (await service.call("DELETE", PATH, b'{"id": "%s"}' % (b"ab" * 16))).status == 204

    serving(memory_store(small_survey), work)


def test_cells_that_begin_like_a_formula_are_text() -> None:
    from hdr4me.pages.answer import as_csv

    rows = [
        {"dimension": "=cmd()", "category": "-1+2", "estimate": -1.5},
        {"dimension": "@x", "category": "a"},
    ]
    text = as_csv(rows, ["dimension", "category", "estimate"], {})
    assert text.splitlines()[1:] == ["'=cmd(),'-1+2,-1.5", "'@x,a,"]


# -- cost --------------------------------------------------------------------------------------------------------


def test_empty_batches_are_limited(small_survey: Survey) -> None:
    import pyarrow as pa

    from hdr4me.io.arrow import ID, schema_of

    schema = schema_of(small_survey)
    schema = schema.insert(0, pa.field(ID, pa.binary(16), nullable=False))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        empty = pa.record_batch([pa.array([], field.type) for field in schema], schema=schema)
        for _ in range(2000):
            writer.write_batch(empty)
    body = sink.getvalue().to_pybytes()

    async def work(service: Service) -> None:
        headers = {"content-type": "application/vnd.apache.arrow.stream"}
        answer = await service.call("POST", PATH, body, headers)
        assert answer.status == 413
        assert "batches" in answer.json()["error"]

    serving(memory_store(small_survey), work)


def test_an_answer_does_not_grow_with_rejected_lines(small_survey: Survey) -> None:
    async def work(service: Service) -> None:
        headers = {"content-type": "application/x-ndjson"}
        answer = await service.call("POST", PATH, b"x\n" * 9999, headers)
        assert len(answer.body) < 10_000
        assert len(answer.json()["rejected"]) + answer.json()["more_rejected"] == 9999

    serving(memory_store(small_survey), work)


def test_one_sender_does_not_occupy_the_parser(small_survey: Survey) -> None:
    """Eight slow requests of one sender wait for each other; the request of another sender is second."""
    order: list[str] = []

    async def work(service: Service) -> None:
        def slow(name: str) -> None:
            time.sleep(0.02)
            order.append(name)

        calls = [service.collector.parse(slow, "many", sender=1) for _ in range(8)]
        tasks = [asyncio.ensure_future(call) for call in calls]
        await asyncio.sleep(0)
        await asyncio.gather(*tasks, service.collector.parse(slow, "one", sender=2))

    serving(memory_store(small_survey), work)
    assert order.index("one") <= 1


def test_a_sender_holds_as_much_as_is_free() -> None:
    """One sender has half of the bytes at most, two have a third each; IPv6 senders of one network are one."""
    from hdr4me.collector.access import Shares, sender_of

    shares = Shares(120)
    for most, name in ((60, "one"), (30, "two"), (15, "three")):
        assert sum(shares.take(name, 1) for _ in range(120)) == most
    assert shares.held == 105
    shares.give_back("two", 30)
    shares.give_back("three", 15)
    assert not shares.take("one", 1)
    assert sum(shares.take("four", 1) for _ in range(120)) == 30
    addresses = [
        "2001:db8::1",
        "2001:db8::2",
        "2001:db8:0:1::1",
        "::ffff:192.0.2.1",
        "::ffff:192.0.2.2",
        "192.0.2.1",
    ]
    assert len({sender_of(0, (address, 1)) for address in addresses}) == 5
    assert sender_of(3, ("192.0.2.1", 1)) == 3


def test_open_requests_of_one_sender_leave_memory_for_others(small_survey: Survey) -> None:
    """A sender holds its uploads open one byte before their end; the upload of another address is stored."""
    import socket

    body, headers = upload(small_survey)
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())

    def begun(port: int, address: str, length: int, sent: bytes) -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", port), 10, (address, 0))
        sock.sendall(f"{head}Content-Length: {length}\r\n\r\n".encode() + sent)
        return sock

    with live(memory_store(small_survey), limits=Limits(waiting_bytes=1 << 16)) as (url, _):
        port = int(url.rpartition(":")[2])
        open = [begun(port, "127.0.0.2", 8192, bytes(8191)) for _ in range(8)]
        time.sleep(0.3)
        with begun(port, "127.0.0.3", len(body), body) as sock:
            assert sock.recv(100).split()[1] == b"200"
        for sock in open:
            sock.close()


def test_open_connections_of_one_sender_leave_some_for_others(small_survey: Survey) -> None:
    import socket

    with live(memory_store(small_survey), limits=Limits(connections=20)) as (url, _):
        port = int(url.rpartition(":")[2])
        open = [socket.create_connection(("127.0.0.1", port), 10, ("127.0.0.2", 0)) for _ in range(25)]
        time.sleep(0.3)
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", port), 10, ("127.0.0.3", 0)) as sock:
                sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                assert sock.recv(100).split()[1] == b"200"
        for sock in open:
            sock.close()


def test_many_bad_lines_are_not_parsed_where_all_requests_wait(
    small_survey: Survey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight thousand lines have 16 KiB and take a tenth of a second."""
    from hdr4me.collector.forms import Forms

    parse, threads = Forms.lines, []

    def lines(self: Forms, body: bytes, source: int) -> Any:
        threads.append(threading.current_thread().name)
        return parse(self, body, source)

    monkeypatch.setattr(Forms, "lines", lines)

    async def work(service: Service) -> None:
        threads.clear()
        headers = {"content-type": "application/x-ndjson"}
        answer = await service.call("POST", PATH, b"x\n" * 8000, headers)
        assert answer.json()["more_rejected"] == 7900

    store = memory_store(small_survey)
    serving(store, work)
    assert [name.startswith("hdr4me-parser") for name in threads] == [True]
    assert sum(one.count for one in store.rejections(1)) == 8000


def test_a_survey_is_written_once_for_all_who_ask_for_it(
    small_survey: Survey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The JSON of a survey with 100,000 categories takes a quarter of a second, and anyone may ask for it."""
    from hdr4me.collector.app import document_of

    document_of.cache_clear()
    found = small_survey.to_json()
    calls: list[str] = []
    monkeypatch.setattr(Survey, "to_json", lambda _: calls.append(found) or found)

    async def work(service: Service) -> None:
        for _ in range(3):
            answer = await service.call("GET", f"/v1/surveys/{small_survey.fingerprint}")
            assert answer.body.decode() == found

    serving(memory_store(small_survey), work)
    assert len(calls) == 1


def test_headers_are_limited_also_in_one_segment(small_survey: Survey) -> None:
    import socket

    with live(memory_store(small_survey)) as (url, _):
        host, port = url.removeprefix("http://").split(":")
        for size, status in ((15_000, b"200"), (17_000, b"431"), (120_000, b"431")):
            with socket.create_connection((host, int(port)), 10) as sock:
                sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * size + b"\r\n\r\n")
                assert sock.recv(100).split()[1] == status
        # The long headers begin in the segment of the request before.
        with socket.create_connection((host, int(port)), 10) as sock:
            short = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
            sock.sendall(short + b"\r\n" + short + b"X-Long: " + b"x" * 17_000)
            time.sleep(0.1)
            sock.sendall(b"\r\n\r\n")
            answers = b""
            while part := sock.recv(4096):
                answers += part
            assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"200", b"431"]


# -- what an operator sees ---------------------------------------------------------------------------------------


def test_unknown_parameters_are_refused(small_survey: Survey) -> None:
    store = memory_store(small_survey)
    store.add_token(digest("r" * 43), "read")
    headers = {"authorization": f"Bearer {'r' * 43}"}

    async def work(service: Service) -> None:
        wrong = ("/v1/rounds?x=1", "/v1/rounds/1/estimate?recalibrat=auto", "/v1/rounds/1/tally?b=1")
        for path in wrong:
            answer = await service.call("GET", path, headers=headers)
            assert answer.status == 400
            assert "is unknown; allowed here" in answer.json()["error"]
        body, report = upload(small_survey)
        assert (await service.call("POST", PATH + "?round=2", body, report)).status == 400

    serving(store, work)


def test_metrics_show_requests_queue_clock_and_alarms(small_survey: Survey) -> None:
    store = memory_store(small_survey)
    store.free = 1 << 40
    store.add_token(digest("r" * 43), "read")
    headers = {"authorization": f"Bearer {'r' * 43}"}

    async def work(service: Service) -> None:
        body, report = upload(small_survey)
        for _ in range(150):
            report["idempotency-key"] = secrets.token_hex(16)
            await service.call("POST", PATH, body, report)
        store.rejected(1, "not a report", HOUR)
        await service.call("GET", "/v1/rounds/1/status", headers=headers)
        await service.call("GET", "/nowhere")
        text = (await service.call("GET", "/metrics", headers=headers)).body.decode()
        route = 'method="POST",route="/v1/rounds/{round}/reports",status="200"'
        assert re.search(f"hdr4me_request_seconds_count{{.*{re.escape(route)}.*}} 150.0", text)
        assert 'route="other",status="404"' in text
        for name in ("alarms{round", "body_bytes", "bytes_waiting", "clock_jump_seconds", "commit_seconds", "commits",
                     "damaged_blocks", "free_bytes", "reports_stored{round", "reports_waiting",
                     'uploads_rejected_total{reason="not a report"'):  # fmt: skip
            assert f"hdr4me_{name}" in text

    serving(store, work)


def test_the_list_of_rounds_asks_no_database(small_survey: Survey) -> None:
    store = memory_store(small_survey)

    async def work(service: Service) -> None:
        store.rounds = None  # type: ignore[assignment]
        assert (await service.call("GET", "/v1/rounds")).json()["rounds"][0]["round"] == 1
        del store.rounds

    serving(store, work)


def spool_of(folder: Path, survey: Survey) -> Spool:
    """A spool of five reports."""
    Local(threads=1).perturb(np.zeros((5, 2)), survey, folder / "reports.arrow")
    spool = Spool(folder, survey)
    spool.assign_ids(5)
    return spool


def test_the_cause_of_a_tls_failure_is_named(tmp_path: Path, small_survey: Survey) -> None:
    with live(memory_store(small_survey)) as (url, _), pytest.raises(NotAccepted, match="TLS"):
        send(spool_of(tmp_path, small_survey), url.replace("http://", "https://"), wait=lambda _: None)


@pytest.mark.parametrize(
    ("name", "days", "trusted", "cause"),
    [
        ("DNS:localhost", "2", False, "self-signed certificate"),
        ("DNS:other.example", "2", True, "not valid for 'localhost'"),
        ("DNS:localhost", "-1", True, "certificate has expired"),
    ],
)
def test_what_is_wrong_with_a_certificate_is_named(
    name: str, days: str, trusted: bool, cause: str, tmp_path: Path, small_survey: Survey
) -> None:
    import ssl
    import subprocess
    from http.server import BaseHTTPRequestHandler, HTTPServer

    import httpx

    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=tmp_path, check=True, capture_output=True)

    request = (
        "req",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-keyout",
        "key.pem",
    )
    openssl(*request, "-subj", "/CN=x", "-addext", f"subjectAltName={name}", "-out", "request.pem")
    signed = ("-signkey", "key.pem", "-copy_extensions", "copy", "-days", days, "-out", "certificate.pem")
    openssl("x509", "-req", "-in", "request.pem", *signed)
    server_side, own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), tmp_path / "certificate.pem"
    server_side.load_cert_chain(own, tmp_path / "key.pem")
    trust = ssl.create_default_context(cafile=own) if trusted else ssl.create_default_context()
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.socket = server_side.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    spool, url = spool_of(tmp_path, small_survey), f"https://localhost:{server.server_port}"
    try:
        with httpx.Client(base_url=url, verify=trust) as client, pytest.raises(NotAccepted, match=cause):
            send(spool, url, client=client, wait=lambda _: None)
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def test_options_in_a_file_in_the_environment_and_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, small_survey: Survey
) -> None:
    found: list[Any] = []
    monkeypatch.setattr("hdr4me.collector.serve.run", lambda settings, *_, **__: found.append(settings))
    small_survey.save(tmp_path / "survey.json")
    config = tmp_path / "collector.toml"
    config.write_text(f'''survey = "{tmp_path}/survey.json"\ndatabase = "{tmp_path}/c.db"
        port = 0\nmin-reports = 300\nretain-days = 3\nallow-origin = ["https://a.example"]\nopen-uploads = true''')
    monkeypatch.setenv("HDR4ME_SERVE_RETAIN_DAYS", "5")
    assert main(["serve", "--config", str(config), "--min-reports", "200"]) == 0
    (settings,) = found
    assert (settings.min_reports, settings.retain_days) == (200, 5)
    assert settings.allow_origins == ("https://a.example",)
    assert settings.database == f"{tmp_path}/c.db"
    config.write_text("prot = 1")
    assert main(["serve", "--config", str(config)]) == 2
    assert "'prot' is not an option" in capsys.readouterr().err
    config.write_text("port = ")
    assert main(["serve", "--config", str(config)]) == 2
    for text in ('min-reports = "many"', "min-reports = 0", 'allow-origin = ["nowhere"]'):
        config.write_text(text)
        capsys.readouterr()
        assert main(["serve", "--config", str(config)]) == 2
        assert f"{config}: " in capsys.readouterr().err
    monkeypatch.setenv("HDR4ME_SERVE_RETAIN_DAYS", "-1")
    assert main(["serve"]) == 2
    assert "HDR4ME_SERVE_RETAIN_DAYS: --retain-days -1" in capsys.readouterr().err
    assert main(["serve", "--retain-days", "-2"]) == 2
    assert "hdr4me: --retain-days -2" in capsys.readouterr().err
    monkeypatch.setenv("HDR4ME_SERVE_RETAIN_DAYS", "7")
    monkeypatch.setenv("HDR4ME_SERVE_CONFIG", str(config))
    assert main(["serve"]) == 2
    assert f"{config}: --allow-origin" in capsys.readouterr().err
    monkeypatch.setenv("HDR4ME_SERVE_RETAIN_DAY", "7")
    assert main(["serve"]) == 2
    assert "HDR4ME_SERVE_RETAIN_DAY is not an option" in capsys.readouterr().err


def test_deleted_reports_are_gone_from_the_files_of_postgres(
    database: str, opened: Any, small_survey: Survey, postgres: Any
) -> None:
    store = opened(database)
    store.open_round(small_survey, now=NOW)
    write(store, batch := arrivals(small_survey, 300))
    store._fold_at = 10**9
    assert store.delete(1, batch[0].id)
    assert batch[0].id in blocks_file(database, postgres)
    store.maintain()
    found = blocks_file(database, postgres)
    assert batch[0].id not in found
    assert batch[1].id in found


def blocks_file(database: str, postgres: Any) -> bytes:
    """The bytes of the table of round 1, and of its long values."""
    sql = """select pg_relation_filepath(oid), pg_relation_filepath(reltoastrelid)
      from pg_class where oid = 'hdr4me.blocks_1'::regclass"""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("checkpoint")
        (names,) = connection.execute(sql).fetchall()
    return b"".join(Path(postgres.pgdata, name).read_bytes() for name in names)


def test_deleted_reports_are_gone_from_postgres_also_after_a_restart(
    database: str, opened: Any, small_survey: Survey, postgres: Any
) -> None:
    """The process ends before the table is rewritten; and a deletion during the rewriting is not forgotten."""
    store = opened(database)
    store.open_round(small_survey, now=NOW)
    write(store, batch := arrivals(small_survey, 300))
    store.maintain()
    assert store.delete(1, batch[0].id)
    store.maintain()
    assert batch[0].id in blocks_file(database, postgres)  # the next rewriting is within the hour
    store.close()
    store = opened(database)
    rewrite = store._database.rewrite

    def rewrite_and_delete(name: str) -> bool:
        done = rewrite(name)
        assert store.delete(1, batch[1].id)
        return bool(done)

    store._database.rewrite = rewrite_and_delete
    store.maintain()
    assert batch[0].id not in blocks_file(database, postgres)
    assert batch[1].id in blocks_file(database, postgres)
    store.close()
    store = opened(database)
    store.maintain()
    found = blocks_file(database, postgres)
    assert batch[1].id not in found
    assert batch[2].id in found


def test_rewriting_in_postgres_waits_for_an_export_and_no_writer_waits_for_it(
    database: str, opened: Any, small_survey: Survey, postgres: Any
) -> None:
    """The reader of another round has a view from before the deletion, too: PostgreSQL keeps the row for it."""
    store = opened(database)
    for _ in range(2):
        store.open_round(small_survey, now=NOW)
    write(store, batch := arrivals(small_survey, 300))
    for number in (1, 2):
        with store._database.reading() as connection:
            connection.execute(f"select count(*) from blocks_{number}")
            assert store.delete(1, batch[number].id)
            threads = [threading.Thread(target=store._remove_deleted) for _ in range(2)]
            for thread in threads:
                thread.start()
            began = time.monotonic()
            write(store, arrivals(small_survey, 10))
            assert time.monotonic() - began < 10
            for thread in threads:
                thread.join(20)
            assert not store._remove_deleted()
            assert batch[number].id in blocks_file(database, postgres)
        assert store._remove_deleted()
        assert batch[number].id not in blocks_file(database, postgres)


DEPLOY = Path(__file__).parents[2] / "docs" / "deploy"


def test_the_files_for_production(tmp_path: Path) -> None:
    """Every server of the proxies logs nothing; the directive that Debian's nginx does not know is not used."""
    import tomllib

    nginx = (DEPLOY / "nginx.conf").read_text()
    servers = nginx.split("\nserver {")[1:]
    assert len(servers) == 2
    for server in servers:
        assert "access_log off;" in server
        assert "error_log /dev/null crit;" in server
    assert "http2 on" not in nginx
    assert "log_format" not in nginx
    caddy = (DEPLOY / "Caddyfile").read_text()
    assert "include tls" in caddy
    options = tomllib.loads((DEPLOY / "collector.toml").read_text())
    (tmp_path / "collector.toml").write_text((DEPLOY / "collector.toml").read_text())
    assert options["database"] in (DEPLOY / "hdr4me-collector.service").read_text()
    assert main(["serve", "--config", str(tmp_path / "collector.toml")]) == 2  # there is no such survey


def test_each_promise_of_the_documentation_names_an_existing_test() -> None:
    tests = Path(__file__).parents[1]
    text = (tests.parent / "docs" / "security.md").read_text().partition("\n## Promises\n")[2]
    general, _, collector = text.partition("\n## Promises of the collector\n")
    for part, folder in ((general, tests), (collector, tests / "collector")):
        rows = [row for row in part.partition("\n## ")[0].splitlines() if row.startswith("| ")][1:]
        assert len(rows) > 10
        for row in rows:
            named = re.findall(r"`(?:([\w/.]*test_\w+\.py)(?:::)?)?(test_\w+)?`", row.split(" | ")[-1])
            assert named, row
            for file, test in named:
                source = (folder / (file or "test_attacks.py")).read_text()
                assert not test or f"def {test}(" in source, test


def test_input_that_is_nested_deeply_is_a_plain_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "deep.json").write_text("[" * 200_000)
    for command in (["survey"], ["explain"], ["estimate"]):
        assert main([*command, str(tmp_path / "deep.json")]) == 2
    assert "bug in hdr4me" not in capsys.readouterr().err


def test_a_race_of_all_operations_loses_nothing(
    store: Any, where: Any, tmp_path: Path, small_survey: Survey
) -> None:
    """Writers, deletion, export, backup, readers, maintenance, closing and finalization at once."""
    store._fold_at = 50
    for _ in range(2):
        store.open_round(small_survey, now=NOW)
    batches = [arrivals(small_survey, 10, HOUR + i % 3) for i in range(60)]
    failed: list[BaseException] = []
    stored: set[bytes] = set()

    def guarded(work: Any) -> Any:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                failed.append(error)

        return run

    def writer() -> None:
        for batch in batches:
            write(store, batch)
            stored.update(one.id for one in batch)

    def deleter() -> None:
        for batch in batches[::3]:
            for _ in range(500):
                if store.delete(1, batch[0].id):
                    stored_deleted.add(batch[0].id)
                    break
                time.sleep(0.01)

    stored_deleted: set[bytes] = set()

    def reader() -> None:
        for _ in range(10):
            assert store.tally(1).n_reports <= 600
            sum(len(block) for block in store.blocks(1, on_damage=lambda _: None))

    def other() -> None:
        backup(where, tmp_path / "saved")
        store.close_round(2, now=NOW)
        store.finalize(2)
        for _ in range(50):
            store.maintain()

    threads = [threading.Thread(target=guarded(work)) for work in (writer, deleter, reader, reader, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    ids = {id for block in store.blocks(1) for id in block.ids}
    assert ids == stored - stored_deleted
    assert len(stored_deleted) == 20
    assert store.tally(1).n_reports == len(ids) == store.round(1).stored
