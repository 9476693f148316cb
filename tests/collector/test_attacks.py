"""Attacks on a collector and mistakes of its operator: each test failed before the defense was written."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sqlite3
import stat
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from collector_memory import Arrival, memory_store, write
from collector_service import Service, serving

from hdr4me.cli import main
from hdr4me.client import Client
from hdr4me.collector import open_registry, open_store
from hdr4me.collector.access import digest
from hdr4me.collector.backup import backup, restore
from hdr4me.collector.errors import StoreBusy, StoreUnavailable
from hdr4me.collector.stores.protocol import ANYONE
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.survey import Survey

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = int(NOW.timestamp() // 3600)
PATH = "/v1/rounds/1/reports"


def arrivals(survey: Survey, n: int, hour: int = HOUR, round: int = 1, source: int = 0) -> list[Arrival]:
    """n reports under new ids."""
    client = Client(survey)
    payload = client.report({}).to_bytes(survey)
    return [Arrival(round, secrets.token_bytes(16), payload, hour, source) for _ in range(n)]


def upload(survey: Survey, id: str | None = None) -> tuple[bytes, dict[str, str]]:
    """Body and headers of one report."""
    headers = {"content-type": "application/json", "idempotency-key": id or secrets.token_hex(16)}
    return Client(survey).report({}).to_json().encode(), headers


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
    with pytest.raises(FormatError, match="belongs to another store"):
        open_store(path)
    for side in ("-wal", "-shm"):
        Path(f"{path}{side}").unlink(missing_ok=True)
    assert opened(path).tally(1).n_reports == 10


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
    store.record("something", "somebody")
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
    assert "nobody can send reports yet" in said
    assert main([*given, "--link", "--open-uploads"]) == 0
    assert "#key=" in capsys.readouterr().err
    with closing(open_registry(tmp_path / "c.db")) as registry:
        assert [token.sha256 for token in registry.tokens()] == [ANYONE]
    assert main(given) == 0  # opened once, uploads stay open until the token of anyone is revoked
    assert "nobody can send" not in capsys.readouterr().err


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
