"""Load on the collector, beside FastAPI with SQLite that commits for each request; ratios in one run.

    python -m venv peer && peer/bin/pip install fastapi uvicorn uvloop httptools
    python benchmarks/collector_load.py --peer peer/bin/python --output benchmarks/results/collector_load.json

Both servers run on this machine, one after the other in alternation, with the same generator of load: a process with
64 connections that each send the next request when the answer is there. Every answer is checked.

    python benchmarks/collector_load.py --only versions --against OTHER --survey FILE --seconds 0.6 --turns 40
        --output benchmarks/results/http_ingest.json

compares the processor time for each single upload with that of another checkout, for SQLite and PostgreSQL. With
`--only compare`, `--against` measures the other checkout in the same turns as both servers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import uvloop

import hdr4me as hd
from hdr4me.engines import Local
from hdr4me.io.arrow import dumps
from hdr4me.io.lines import write_lines

FIXED = 10_000
"""Reports in a batch."""


def demo_survey() -> hd.Survey:
    """Sixteen dimensions, one answered by each user."""
    schema = hd.Schema(
        [hd.Numeric(f"x{i}", 0, 1, default=0.5) for i in range(12)]
        + [hd.Categorical(f"c{i}", list("abcd")) for i in range(4)]
    )
    return hd.Survey(schema, epsilon=2.0, sampled=1)


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
def running(
    command: Sequence[str], port: int, root: Path = Path(__file__).parents[1]
) -> Iterator[subprocess.Popen[bytes]]:
    """A server of a checkout in a process of its own, ended by SIGTERM."""
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(port, process)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()


def ours(survey: Path, database: str, port: int, root: Path = Path(__file__).parents[1]) -> list[str]:
    """The command that starts the collector of a checkout; anyone may send reports."""
    command = [sys.executable, "-m", "hdr4me", "serve", str(survey), "--database", database]
    opened = ["--open-uploads"] if (root / "src/hdr4me/collector/stores/protocol.py").exists() else []
    return [*command, "--port", str(port), *opened]  # an older version accepts uploads without a token


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
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n{key}\r\n".encode() + body


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
    write_lines(sink, rows, survey)  # type: ignore[arg-type]
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


@dataclass(frozen=True)
class Found:
    """One measurement."""

    reports_per_second: float
    requests: int
    p50_ms: float
    p99_ms: float
    bytes_written_per_report: float
    processor_us_per_report: float


def written(pid: int) -> int:
    """Bytes that a process has sent to the disk."""
    text = Path(f"/proc/{pid}/io").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("write_bytes")))


def processor_seconds(pid: int) -> float:
    """Seconds that a process has computed."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def exact_processor_seconds(pid: int) -> float:
    """The same in nanoseconds' resolution, for short measurements: the sum over its threads."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def peak_memory(pid: int) -> float:
    """The most megabytes that a process has held."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("VmHWM"))) / 1e3


def measured(pid: int, port: int, source: Iterator[bytes], connections: int, seconds: float) -> Found:
    """Load a server for some seconds."""
    before, busy = written(pid), processor_seconds(pid)
    times, stored, took = load(port, source, connections, seconds)
    p50, p99 = (round(1e3 * float(np.percentile(times, q)), 2) for q in (50, 99))
    per_report = (written(pid) - before) / max(stored, 1)
    spent = 1e6 * (processor_seconds(pid) - busy) / max(stored, 1)
    return Found(round(stored / took), len(times), p50, p99, round(per_report, 1), round(spent, 3))


def sources(survey: hd.Survey, rows: Any, peer: bool) -> dict[str, Callable[[], Iterator[bytes]]]:
    """The three forms, as requests that are made when they are requested."""
    path = "/v1/rounds/1/lines" if peer else "/v1/rounds/1/reports"
    n = 60 if peer else 300
    found: dict[str, Callable[[], Iterator[bytes]]] = {
        "single": lambda: singles(survey, rows),
        "ndjson": lambda: iter(line_batches(survey, rows, n, path)),
    }
    if not peer:
        found["arrow"] = lambda: iter(arrow_batches(survey, rows, 1500))
    return found


def fill_peer(database: str, n: int) -> None:
    """Reports in the peer's table before it starts."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("create table reports (id blob primary key, report text) without rowid")
        rows = sorted(secrets.token_bytes(16) for _ in range(n))
        connection.executemany("insert into reports values (?, '[[3, 1]]')", zip(rows))
        connection.commit()


CONNECTIONS = {"single": 64, "ndjson": 16, "arrow": 16}


def compare(folder: Path, survey: hd.Survey, rows: Any, given: argparse.Namespace) -> dict[str, Any]:
    """Both servers in turns; medians over the turns."""
    found: dict[str, list[Found]] = {}
    memory = 0.0
    for turn in range(given.turns):
        for which in ("peer", "ours", *(["other"] if given.against else [])):
            port = free_port()
            database = str(folder / f"{which}-{turn}.db")
            peer = [given.peer, str(Path(__file__).with_name("collector_peer.py")), database, str(port)]
            root = given.against if which == "other" else Path(__file__).parents[1]
            command = peer if which == "peer" else ours(folder / "survey.json", database, port, root)
            if which == "peer":
                fill_peer(database, given.before)
            with running(command, port, root) as process:
                if which != "peer":
                    for _ in range(0, given.before, 50 * FIXED):
                        load(port, iter(arrow_batches(survey, rows, 50)), 4, 600.0)
                for name, source in sources(survey, rows, which == "peer").items():
                    result = measured(process.pid, port, source(), CONNECTIONS[name], given.seconds)
                    found.setdefault(f"{which} {name}", []).append(result)
                    print(turn, which, name, result, flush=True)
                if which == "ours":
                    memory = max(memory, peak_memory(process.pid))

    def median(name: str, field: str) -> float:
        return float(np.median([getattr(result, field) for result in found[name]]))

    def ratio(one: str, other: str, field: str = "reports_per_second") -> float:
        return round(median(one, field) / median(other, field), 2)

    def best_to_other() -> dict[str, float]:
        best = {name: max(result.reports_per_second for result in results) for name, results in found.items()}
        return {name: round(best[f"ours {name}"] / best[f"other {name}"], 3) for name in CONNECTIONS}

    return {
        "stored_before": given.before,
        "single": ratio("ours single", "peer single"),
        "single_p99": ratio("ours single", "peer single", "p99_ms"),
        "ndjson": ratio("ours ndjson", "peer ndjson"),
        "arrow_to_ndjson_of_the_peer": ratio("ours arrow", "peer ndjson"),
        "arrow_to_single_of_the_peer": ratio("ours arrow", "peer single"),
        "processor_time": {
            name: ratio(f"peer {other}", f"ours {name}", "processor_us_per_report")
            for name, other in (("single", "single"), ("ndjson", "ndjson"), ("arrow", "ndjson"))
        },
        "peak_megabytes": round(memory, 1),
        **({"best_rate_to_other": best_to_other()} if given.against else {}),
        "measurements": {name: [asdict(result) for result in results] for name, results in found.items()},
    }


def versions(folder: Path, survey: hd.Survey, rows: Any, given: argparse.Namespace) -> dict[str, Any]:
    """Processor time for each single upload beside that of another checkout, on both databases.

    Both servers run at the same time, and short turns alternate between them, so that whatever else the machine
    does meets both alike.
    """
    sys.path.append(str(Path(__file__).parents[1] / "tests" / "plugins"))
    import postgres_server

    checkouts = {"ours": Path(__file__).parents[1], "other": given.against}
    found: dict[str, Any] = {}
    server = postgres_server.make(folder / "pg")
    try:
        for database in ("sqlite", "postgresql"):
            times: dict[str, list[float]] = {which: [] for which in checkouts}
            with ExitStack() as stack:
                servers = {}
                for which, root in checkouts.items():
                    port, path = free_port(), str(folder / f"{which}.db")
                    if database == "postgresql":
                        server.psql(f"create database {which}")
                        path = server.get_uri(database=which)
                    command = ours(folder / "survey.json", path, port, root)
                    servers[which] = stack.enter_context(running(command, port, root)).pid, port
                    load(port, singles(survey, rows), 64, 2.0)
                for _ in range(given.turns):
                    for which, (pid, port) in servers.items():
                        busy = exact_processor_seconds(pid)
                        _, stored, _ = load(port, singles(survey, rows), 64, given.seconds)
                        busy = exact_processor_seconds(pid) - busy
                        times[which].append(round(1e6 * busy / stored, 2))
            ratios = np.array(times["ours"]) / np.array(times["other"])
            found[database] = {
                "processor_us_per_report": times,
                "ratio_of_the_best": round(min(times["ours"]) / min(times["other"]), 3),
                "ratio_of_the_medians": round(float(np.median(times["ours"]) / np.median(times["other"])), 3),
                "median_of_the_ratios": round(float(np.median(ratios)), 3),
            }
            print(database, found[database], flush=True)
    finally:
        postgres_server.kill(server)
    return found


def grow(folder: Path, survey: hd.Survey, rows: Any, given: argparse.Namespace) -> dict[str, Any]:
    """The rate when few reports are stored, and when many are."""
    port, database = free_port(), str(folder / "large.db")
    found: dict[str, Any] = {}
    with running(ours(folder / "survey.json", database, port), port) as process:
        total = 0
        for goal in (100_000, given.large):
            while total < goal:
                n = min(100, (goal - total) // FIXED)
                _, stored, _ = load(port, iter(arrow_batches(survey, rows, max(n, 1))), 4, 600.0)
                total += stored
            for name in ("single", "arrow"):
                source = sources(survey, rows, False)[name]()
                result = measured(process.pid, port, source, CONNECTIONS[name], given.seconds / 2)
                found[f"{name} at {goal:,}"] = asdict(result)
                total += int(result.reports_per_second * given.seconds / 2)
                print(name, "at", f"{goal:,}", result, flush=True)
        found["peak_megabytes"] = round(peak_memory(process.pid), 1)
    small_sample, many = "100,000", f"{given.large:,}"
    for name in ("single", "arrow"):
        rates = [found[f"{name} at {goal}"]["reports_per_second"] for goal in (many, small_sample)]
        found[f"{name} kept"] = round(rates[0] / rates[1], 2)
    began = time.perf_counter()
    from hdr4me.collector import open_store

    store = open_store(database)
    found["reports"] = store.round(1).stored
    store.close()
    found["seconds_to_open"] = round(time.perf_counter() - began, 1)
    found["bytes_of_the_file_per_report"] = round(Path(database).stat().st_size / found["reports"], 1)
    return found


def main() -> None:
    """Measure, say, and write down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="a Python with FastAPI")
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--survey", type=Path, help="a survey that the other checkout wrote and both support")
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument(
        "--before", type=int, default=1_000_000, help="reports stored before both are compared"
    )
    parser.add_argument("--large", type=int, default=5_000_000, help="how many are many")
    parser.add_argument("--only", default="compare,grow")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    survey = hd.Survey.load(given.survey) if given.survey else demo_survey()
    rows = rows_of(survey, 20_000)
    line = len(lines_of(survey, rows[:1])[0])
    found: dict[str, Any] = {"bytes": {"report_and_id": survey.report_size + 16, "json_and_id": line + 32}}
    with tempfile.TemporaryDirectory(prefix="hdr4me-load-") as name:
        folder = Path(name)
        survey.save(folder / "survey.json")
        for part in given.only.split(","):
            found[part] = {"compare": compare, "grow": grow, "versions": versions}[part](
                folder, survey, rows, given
            )
    text = json.dumps(found, indent=2)
    print(text)
    if given.output is not None:
        given.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
