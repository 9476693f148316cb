"""Load on the collector, beside FastAPI with SQLite that commits for each request; ratios in one run.

    python benchmarks/collector_load.py --peer /tmp/fastapi-venv/bin/python --output benchmarks/results/collector_load.json

Both servers run on this machine, one after the other in alternation, with the same generator of load: a process with
64 connections that each send the next request when the answer is there. Every answer is checked.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import uvloop

import hdr4me as hd
from hdr4me.engines import Local
from hdr4me.reports.lines import LineSink
from hdr4me.reports.stream import dumps

FIXED = 10_000
"""Reports in a batch."""


def demo_survey() -> hd.Survey:
    """Sixteen dimensions, one answered by each user."""
    schema = hd.Schema(
        [hd.Numeric(f"x{i}", 0, 1) for i in range(12)]
        + [hd.Categorical(f"c{i}", list("abcd")) for i in range(4)]
    )
    return hd.Survey(schema, epsilon=2.0, n_sampled=1)


# -- servers ---------------------------------------------------------------------------------------------------


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes], seconds: float = 60.0) -> None:
    """Wait until something listens."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError("the server ended")
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("the server does not listen")


@contextmanager
def running(command: Sequence[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A server in a process of its own, ended by SIGTERM."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port, process)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()


def ours(survey: Path, database: str, port: int) -> list[str]:
    """The command that starts the collector."""
    return [sys.executable, "-m", "hdr4me", "serve", str(survey), "--database", database, "--port", str(port)]


# -- load ------------------------------------------------------------------------------------------------------


class Sender(asyncio.Protocol):
    """One connection: sends a request, waits for its answer, sends the next."""

    def __init__(
        self, requests: Iterator[bytes], done: Callable[[float, bytes], None], ended: asyncio.Future[None]
    ) -> None:
        self._requests, self._done, self._ended = requests, done, ended
        self._buffer = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._next()

    def _next(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            return
        self._buffer, self._began = b"", time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, blank, body = self._buffer.partition(b"\r\n\r\n")
        if not blank:
            return
        at = head.lower().find(b"content-length: ")
        length = int(head[at + 16 : at + 24].split(b"\r\n")[0])
        if len(body) < length:
            return
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"refused: {self._buffer[:300]!r}")
        self._done(time.perf_counter() - self._began, body)
        self._next()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._ended.done():
            self._ended.set_result(None)


def load(
    port: int, requests: Iterator[bytes], connections: int, seconds: float
) -> tuple[list[float], int, float]:
    """Send requests for some seconds; the seconds of each answer, the stored reports, the seconds it took."""
    times: list[float] = []
    stored = 0
    until = time.perf_counter() + seconds

    def limited() -> Iterator[bytes]:
        while time.perf_counter() < until:
            try:
                yield next(requests)
            except StopIteration:
                return

    def done(took: float, body: bytes) -> None:
        nonlocal stored
        times.append(took)
        stored += json.loads(body)["stored"]

    async def main() -> None:
        loop = asyncio.get_running_loop()
        source = limited()
        ends = [loop.create_future() for _ in range(connections)]
        for end in ends:
            await loop.create_connection(lambda end=end: Sender(source, done, end), "127.0.0.1", port)  # type: ignore[misc]
        await asyncio.gather(*ends)

    began = time.perf_counter()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
    return times, stored, time.perf_counter() - began


def request(path: str, kind: str, body: bytes, id: str | None = None) -> bytes:
    """The bytes of a POST."""
    key = f"Idempotency-Key: {id}\r\n" if id else ""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{key}\r\n"
    return head.encode() + body


def rows_of(survey: hd.Survey, n: int) -> Any:
    """Reports of n made-up users."""
    matrix = np.zeros((n, len(survey.schema)))
    return np.concatenate(list(Local(threads=1).reports(matrix, survey)))


class _Memory:
    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def write(self, data: Any) -> int:
        self.parts.append(bytes(data))
        return len(self.parts[-1])


def lines_of(survey: hd.Survey, rows: Any) -> list[bytes]:
    """The JSON of each report."""
    sink = _Memory()
    LineSink(sink, survey).write(rows)  # type: ignore[arg-type]
    return b"".join(sink.parts).splitlines()


def singles(survey: hd.Survey, rows: Any) -> Iterator[bytes]:
    """Requests with one report each, without end."""
    found = lines_of(survey, rows)
    while True:
        for line in found:
            yield request("/v1/rounds/1/reports", "application/json", line, secrets.token_hex(16))


def line_batches(survey: hd.Survey, rows: Any, n: int, path: str) -> list[bytes]:
    """n requests with `FIXED` reports each, made beforehand."""
    found = lines_of(survey, rows[:FIXED])
    out = []
    for _ in range(n):
        body = b"\n".join(
            b'{"id":"%s","report":%s}' % (secrets.token_hex(16).encode(), line) for line in found
        )
        out.append(request(path, "application/x-ndjson", body))
    return out


def arrow_batches(survey: hd.Survey, rows: Any, n: int) -> list[bytes]:
    """The same as Arrow streams."""
    out = []
    for _ in range(n):
        ids = np.frombuffer(secrets.token_bytes(16 * FIXED), np.uint8).reshape(-1, 16)
        out.append(
            request(
                "/v1/rounds/1/reports",
                "application/vnd.apache.arrow.stream",
                dumps(ids, rows[:FIXED], survey),
            )
        )
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", default="/tmp/fastapi-venv/bin/python", help="the Python with FastAPI")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", default="single,lines,arrow")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="hdr4me-load-"))
    survey = demo_survey()
    survey.save(folder / "survey.json")
    rows = rows_of(survey, 20_000)
    peer = str(Path(__file__).with_name("collector_peer.py"))
    found: dict[str, list[dict[str, float]]] = {}

    def measure(name: str, port: int, source: Iterator[bytes], connections: int) -> None:
        times, stored, took = load(port, source, connections, arguments.seconds)
        result = {
            "reports_per_second": round(stored / took),
            "requests": len(times),
            "p50_ms": round(1e3 * float(np.percentile(times, 50)), 2),
            "p99_ms": round(1e3 * float(np.percentile(times, 99)), 2),
        }
        found.setdefault(name, []).append(result)
        print(name, result, flush=True)

    for turn in range(arguments.rounds):
        for which in ("peer", "ours"):
            port = free_port()
            database = str(folder / f"{which}-{turn}.db")
            command = (
                [arguments.peer, peer, database, str(port)]
                if which == "peer"
                else ours(folder / "survey.json", database, port)
            )
            with running(command, port):
                for name in arguments.only.split(","):
                    if name == "single":
                        measure(f"{which} single", port, singles(survey, rows), 64)
                    elif name == "lines":
                        path = "/v1/rounds/1/lines" if which == "peer" else "/v1/rounds/1/reports"
                        batches = line_batches(survey, rows, 60 if which == "peer" else 200, path)
                        measure(f"{which} lines", port, iter(batches), 4)
                    elif name == "arrow" and which == "ours":
                        measure("ours arrow", port, iter(arrow_batches(survey, rows, 1000)), 4)
    shutil.rmtree(folder)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    main()
