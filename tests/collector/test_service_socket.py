"""The service over real sockets: deadlines, hostile connections, SIGTERM, and the commands that serve and send."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from collector_memory import memory_store
from collector_service import live

from hdr4me.cli import main
from hdr4me.client import Client
from hdr4me.collector import open_store
from hdr4me.collector.access import digest
from hdr4me.collector.config import Limits
from hdr4me.collector.stores.protocol import ANYONE
from hdr4me.engines import Local
from hdr4me.survey import Categorical, Numeric, Schema, Survey
from hdr4me.tally import Tally
from hdr4me.tally.file import dumps as tally_bytes

SCHEMA = Schema([Numeric("age", 0, 120), Categorical("smoker", ["no", "yes", "never"])])
SURVEY = Survey(SCHEMA, epsilon=2.0, mechanism="duchi")
KIND = {"content-type": "application/json"}


def a_request(id: str | None = None) -> bytes:
    body = Client(SURVEY).report({"age": 31, "smoker": "no"}).to_json().encode()
    head = (
        f"POST /v1/rounds/1/reports HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Idempotency-Key: {id or secrets.token_hex(16)}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def connected(url: str) -> socket.socket:
    host, _, port = url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), 10)


def test_too_many_connections_are_answered_with_503() -> None:
    with live(memory_store(SURVEY), limits=Limits(connections=3)) as (url, _):
        held = [connected(url) for _ in range(3)]
        time.sleep(0.3)
        assert httpx.get(url + "/healthz").status_code == 503
        for sock in held:
            sock.close()
        time.sleep(0.3)
        assert httpx.get(url + "/healthz").status_code == 200


def test_slow_connections_are_ended_and_others_are_served() -> None:
    """Silent, byte by byte in the headers, and byte by byte in the body: all are ended by the server."""
    with live(memory_store(SURVEY), limits=Limits(seconds=2.0)) as (url, _):
        silent, heads, bodies = ([connected(url) for _ in range(20)] for _ in range(3))
        whole = a_request()
        for sock in bodies:
            sock.sendall(whole[:-5])
        for byte in b"POST /v1":
            for sock in heads:
                sock.sendall(bytes([byte]))
            time.sleep(0.02)
        assert httpx.get(url + "/healthz").status_code == 200
        for sock in silent + heads + bodies:
            assert b"HTTP/1.1 200" not in until_closed(sock)
            sock.close()
        assert httpx.get(url + "/healthz").status_code == 200


def until_closed(sock: socket.socket) -> bytes:
    """What the server says until it closes the connection; an error if it does not in half a minute."""
    sock.settimeout(30)
    found = b""
    try:
        while part := sock.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


def beginning_of(sock: socket.socket) -> bytes:
    """The first line of an answer."""
    sock.settimeout(30)
    found = b""
    while b"\r\n" not in found and (part := sock.recv(65536)):
        found += part
    return found


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00", b"400"),
        (b"GET / HTTP/9.9\r\n\r\n", b"400"),
        (b"GET\r\n\r\n", b"400"),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", b"40"),
        (b"GET http://[ HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /\xff\xfe HTTP/1.1\r\n\r\n", b"40"),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 20_000, b"431"),
        (b"GET /" + b"a" * 20_000, b"431"),
        (
            b"POST /v1/rounds/1/reports HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
            b"400",
        ),
        (
            b"POST /v1/rounds/1/reports HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"400",
        ),
        (b"POST /v1/rounds/1/reports HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
        (b"GET /healthz HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", b"200"),
        (b"GET /healthz HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", b"200"),
    ],
)
def test_hostile_bytes(data: bytes, status: bytes, served: tuple[str, Any]) -> None:
    url, _ = served
    with connected(url) as sock:
        sock.sendall(data)
        found = beginning_of(sock)
    assert found.startswith((b"HTTP/1.1 " + status, b"HTTP/1.1 415"))
    assert b"Traceback" not in found
    assert httpx.get(url + "/healthz").status_code == 200


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[str, Any]]:
    with live(memory_store(SURVEY)) as found:
        yield found


def test_pipelined_requests_are_answered_in_order(served: tuple[str, Any]) -> None:
    url, _ = served
    id = secrets.token_hex(16)
    with connected(url) as sock:
        sock.sendall(a_request(id) + a_request(id) + b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")
        found = until_closed(sock)
    assert found.count(b"HTTP/1.1 200") == 3
    assert found.index(b'"stored":1') < found.index(b'"duplicates":1') < found.index(b'"ok"')


def test_expect_continue(served: tuple[str, Any]) -> None:
    url, _ = served
    whole = a_request().replace(b"Host: x\r\n", b"Host: x\r\nExpect: 100-continue\r\nConnection: close\r\n")
    head, _, body = whole.partition(b"\r\n\r\n")
    with connected(url) as sock:
        sock.sendall(head + b"\r\n\r\n")
        sock.settimeout(5)
        assert sock.recv(100).startswith(b"HTTP/1.1 100")
        sock.sendall(body)
        assert b'"stored":1' in until_closed(sock)


# -- the commands ------------------------------------------------------------------------------------------------


@contextmanager
def command(
    *arguments: str, name: tuple[str, ...] = ("serve",)
) -> Iterator[tuple[str, subprocess.Popen[str], list[str]]]:
    """`hdr4me serve` in a process: its address, the process, and what it said so far."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "hdr4me", *name, *arguments, "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    said: list[str] = []
    try:
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line)
            if "dashboard" in line:
                break
        address = next(line.split()[-1] for line in said if line.startswith("collecting at"))
        yield address, process, said
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def test_serve_send_and_the_same_bits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """End to end: records are sent, the collector's tally equals `hdr4me tally` on what it exports."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1769817600")  # answers carry the day
    SURVEY.save(tmp_path / "survey.json")
    n = 2500
    records = pa.table({"age": np.linspace(0, 120, n), "smoker": ["no", "yes"] * (n // 2)})
    pq.write_table(records, tmp_path / "records.parquet")
    survey, database = str(tmp_path / "survey.json"), str(tmp_path / "c.db")
    arguments = [survey, "--database", database, "--open-uploads", "--link", "--min-reports", "50"]
    assert main(["token", "add", database, "--scope", "admin"]) == 0
    secret = capsys.readouterr().out.strip()
    with command(*arguments) as (url, process, said):
        send = ["send", survey, str(tmp_path / "records.parquet"), "--url", url]
        assert main([*send, "--spool", str(tmp_path / "spool"), "--json"]) == 0
        first = json.loads(capsys.readouterr().out)
        assert (first["stored"], first["duplicates"], len(first["data_quality"])) == (n, 0, 2)
        assert (
            main(
                [
                    "send",
                    survey,
                    "--url",
                    url,
                    "--spool",
                    str(tmp_path / "spool"),
                    "--json",
                ]
            )
            == 0
        )
        again = json.loads(capsys.readouterr().out)
        assert (again["stored"], again["duplicates"]) == (0, n)
        key = said[-1].strip().rpartition("#key=")[2]
        session = httpx.post(url + "/v1/session", json={"key": key}).json()["token"]
        assert httpx.post(url + "/v1/session", json={"key": key}).status_code == 401
        for token in (secret, session):
            headers = {"authorization": f"Bearer {token}"}
            tally = httpx.get(url + "/v1/rounds/1/tally", headers=headers).content
            exported = httpx.get(url + "/v1/rounds/1/reports.parquet", headers=headers).content
        (tmp_path / "reports.parquet").write_bytes(exported)
        estimate = httpx.get(url + "/v1/rounds/1/estimate?recalibrate=auto", headers=headers).json()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert (
        main(["tally", survey, str(tmp_path / "reports.parquet"), "-o", str(tmp_path / "files.tally")]) == 0
    )
    assert (tmp_path / "files.tally").read_bytes() == tally
    assert pq.read_table(tmp_path / "reports.parquet").column_names == ["report", "id"]
    capsys.readouterr()
    assert main(["estimate", str(tmp_path / "files.tally"), "--recalibrate", "auto", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == estimate
    assert main(["backup", database, "-o", str(tmp_path / "copy.backup"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reports"] == n
    assert main(["restore", str(tmp_path / "copy.backup"), "--database", str(tmp_path / "new.db")]) == 0
    store = open_store(tmp_path / "new.db")
    try:
        assert tally_bytes(store.tally(1)) == tally
    finally:
        store.close()


def test_the_demonstration_serves_its_survey(tmp_path: Path) -> None:
    """Reports that the demonstration left are in the round; the page on which a person answers has its route."""
    SURVEY.save(tmp_path / "survey.json")
    Local(threads=1).perturb(np.zeros((300, 2)), SURVEY, tmp_path / "reports.parquet")
    with command("--output", str(tmp_path), name=("demo", "--serve")) as (url, process, said):
        assert any("300 reports" in line for line in said)
        assert any("/answer" in line for line in said)
        assert httpx.get(url + "/answer").status_code in (200, 404)
        rounds = httpx.get(url + "/v1/rounds").json()["rounds"]
        assert [round["survey"] for round in rounds] == [SURVEY.fingerprint]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_sigterm_finishes_what_has_begun(tmp_path: Path) -> None:
    """A request that is half sent when SIGTERM comes is accepted, and is on the disk."""
    SURVEY.save(tmp_path / "survey.json")
    given = [str(tmp_path / "survey.json"), "--database", str(tmp_path / "c.db"), "--open-uploads"]
    with command(*given) as (url, process, _):
        head, _, body = a_request().partition(b"\r\n\r\n")
        with connected(url) as sock:
            sock.sendall(head + b"\r\nExpect: 100-continue\r\n\r\n")
            assert beginning_of(sock).startswith(b"HTTP/1.1 100")  # the request has begun
            process.send_signal(signal.SIGTERM)
            for _ in range(600):  # until it no longer listens
                try:
                    connected(url).close()
                except OSError:
                    break
                time.sleep(0.05)
            sock.sendall(body)
            assert b'"stored":1' in until_closed(sock)
        assert process.wait(60) == 0
    store = open_store(tmp_path / "c.db")
    assert store.round(1).stored == 1
    store.close()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--database", "{folder}/c.db"], "no survey yet"),
        (["{folder}/survey.json", "--database", "{folder}/c.db", "--workers", "2"], "--workers 2"),
        (["{folder}/survey.json", "--database", "{folder}/c.db", "--workers", "0"], "--workers 0"),
        (["{folder}/survey.json", "--port", "70000"], "--port 70000"),
        (["{folder}/survey.json", "--allow-origin", "example.org"], "--allow-origin"),
        (["{folder}/survey.json", "--min-reports", "0"], "--min-reports 0"),
        (["{folder}/survey.json", "--retain-days", "-1"], "--retain-days -1"),
        (["{folder}/survey.json", "--tolerance", "2"], "--tolerance 2"),
        (["{folder}/survey.json", "--rate", "0"], "--rate 0"),
        (["{folder}/none.json"], "does not exist"),
        (["{folder}/survey.json", "--database", "{folder}"], "directory"),
        (["{folder}/survey.json", "--host", "nowhere.invalid"], "cannot listen"),
    ],
)
def test_bad_options_of_serve(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    SURVEY.save(tmp_path / "survey.json")
    given = [argument.format(folder=tmp_path) for argument in arguments]
    if "--database" not in given:
        given += ["--database", str(tmp_path / "c.db")]
    assert main(["serve", *given, *([] if "--port" in given else ["--port", "0"])]) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert sentence in said


def test_tokens_are_stored_as_digests(tmp_path: Path) -> None:
    store = open_store(tmp_path / "c.db")
    store.open_round(SURVEY, now=datetime.now(UTC))
    store.add_token(digest("the secret"), "read", "")
    assert [token.sha256 for token in store.tokens()] == [digest("the secret")]
    store.close()
    assert b"the secret" not in (tmp_path / "c.db").read_bytes()


def test_a_spool_is_kept_when_sending_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Refused for good: the message says how to send the same reports again, and their ids are the same."""
    SURVEY.save(tmp_path / "survey.json")
    pq.write_table(pa.table({"age": [1.0, 2.0], "smoker": ["no", "yes"]}), tmp_path / "records.parquet")
    store = memory_store(SURVEY, open_uploads=False)
    given = [str(tmp_path / "survey.json"), "--spool", str(tmp_path / "spool")]
    with live(store) as (url, _):
        assert main(["send", *given, str(tmp_path / "records.parquet"), "--url", url]) == 2
        assert "To send the same reports again" in capsys.readouterr().err
    ids = (tmp_path / "spool" / "ids").read_bytes()
    store.add_token(ANYONE, "send")
    with live(store) as (url, _):
        assert (
            main(["send", *given, str(tmp_path / "records.parquet"), "--url", url]) == 2
        )  # records and a spool
        assert main(["send", *given, "--url", url]) == 0
        assert main(["send", *given, "--url", url]) == 0
    assert sorted(store.reports[1]) == sorted([ids[:16], ids[16:]])
    assert Tally(SURVEY).n_reports == 0
