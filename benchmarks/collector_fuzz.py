"""Mutated requests against the collector: no 5xx, no traceback, no hang, flat memory.

    python benchmarks/collector_fuzz.py --requests 1000000 --output benchmarks/results/collector_fuzz.json

Most requests are made in this process, through the application itself; a tenth as many go over sockets, as bytes in
which anything can be wrong. Seeded: the same seed sends the same requests (ids and reports are new each time).
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import io
import json
import random
import resource
import secrets
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "plugins"))

from collector_memory import MemoryStore
from collector_service import Service, live

from hdr4me.client import Client
from hdr4me.collector.app import build_app
from hdr4me.collector.config import Settings
from hdr4me.collector.errors import Log
from hdr4me.collector.state import Collector
from hdr4me.collector.stores.protocol import ANYONE
from hdr4me.io.arrow import dumps
from hdr4me.io.report import pack
from hdr4me.survey import Categorical, Numeric, Schema, Survey

KINDS = ("application/json", "application/x-ndjson", "application/vnd.apache.arrow.stream")
PIECES = (
    b"null", b"-1", b"1e999", b"NaN", b"[]", b"{}", b"[[", b'"', b"\\u0000", b"\xff\xfe", b"\xed\xa0\x80", b"0" * 40,
    b"9" * 400, b"true", b'"answers":', b'"survey":', b"\n", b"\r\n", b"\x00" * 8, b"\xff" * 8, b"\xff\xff\xff\x7f",
    b"[" * 3000, b'{"a":' * 800, b"\xff\xff\xff\xff\x00\x00\x00\x00", b"}", b"]", b",", b"-0", b"1.0", b"0x1",
)  # fmt: skip
SLOWEST = 20.0
"""Seconds beyond which an answer counts as a hang."""


def surveys() -> list[Survey]:
    """One with reports of one size, one with reports of several sizes and two answers."""
    plain = Schema([Numeric("age", 0, 120), Categorical("smoker", ["no", "yes", "never"])])
    mixed = Schema(
        [
            Numeric("age", 0, 120),
            Categorical("city", [f"c{i}" for i in range(900)]),
            Categorical("s", list("abcdef")),
        ]
    )
    return [
        Survey(plain, epsilon=2.0, mechanism="duchi"),
        Survey(mixed, epsilon=2.0, mechanism="duchi", sampled=2),
    ]  # fmt: skip


class ForgetfulStore(MemoryStore):
    """Forgets reports now and then, so that memory shows what the service itself keeps."""

    def write(self, batches: Any) -> None:
        super().write(batches)
        for reports in self.reports.values():
            if len(reports) > 5000:
                reports.clear()
        del self.batches[:]


@dataclass
class Requests:
    """Makes requests from a seed: whole ones, then changed in one to eight places."""

    random: random.Random
    surveys: list[Survey]
    bodies: dict[tuple[int, str], list[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, survey in enumerate(self.surveys, 1):
            client = Client(survey)
            record = {
                one.name: one.categories[0] if isinstance(one, Categorical) else 3 for one in survey.schema
            }
            reports = [client.report(record) for _ in range(40)]
            lines = [report.to_json().encode() for report in reports]
            rows = np.frombuffer(b"".join(pack(r.answers, survey) for r in reports), np.uint8).reshape(40, -1)
            ids = np.frombuffer(secrets.token_bytes(640), np.uint8).reshape(40, 16)
            batch = b"\n".join(
                b'{"id":"%s","report":%s}' % (secrets.token_hex(16).encode(), line) for line in lines[:5]
            )
            self.bodies[number, KINDS[0]] = lines
            self.bodies[number, KINDS[1]] = [batch]
            self.bodies[number, KINDS[2]] = [dumps(ids[:n], rows[:n], survey) for n in (1, 7, 40)]

    def mutated(self, data: bytes) -> bytes:
        """The bytes with some of them changed."""
        choose, out = self.random, bytearray(data)
        for _ in range(choose.choice((0, 1, 1, 1, 2, 3, 8))):
            at = choose.randrange(len(out) + 1)
            match choose.randrange(8):
                case 0 if out:
                    at %= len(out)
                    out[at] ^= 1 << choose.randrange(8)
                case 1:
                    out[at:at] = choose.choice(PIECES)
                case 2:
                    del out[at : at + choose.choice((1, 2, 4, 16, 64))]
                case 3:
                    del out[at:]
                case 4:
                    size = choose.choice((1, 2, 4, 8, 64))
                    out[at : at + size] = choose.randbytes(size)
                case 5:
                    start = choose.randrange(len(out) + 1)
                    out[at:at] = out[start : start + choose.randrange(200)]
                case 6 if out:
                    at -= at % 4
                    out[at : at + 4] = choose.choice(
                        (0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 0x80000000, len(out))
                    ).to_bytes(4, "little")
                case _:
                    piece = choose.choice(PIECES)
                    out[at : at + len(piece)] = piece
        return bytes(out[: 1 << 20])

    def request(self) -> tuple[str, str, bytes, dict[str, str]]:
        """Method, path, body and headers."""
        choose = self.random
        number = choose.choice((1, 1, 2))
        kind = choose.choice(KINDS)
        body = self.mutated(choose.choice(self.bodies[number, kind]))
        headers = {"content-type": kind}
        if kind == KINDS[0] or choose.random() < 0.1:
            headers["idempotency-key"] = choose.randbytes(16).hex()
        if choose.random() < 0.1:
            body = self.mutated(gzip.compress(body, 1)) if choose.random() < 0.5 else gzip.compress(body, 1)
            headers["content-encoding"] = "gzip"
        method, path = "POST", f"/v1/rounds/{number}/reports"
        if choose.random() < 0.1:
            name = choose.choice(
                (
                    "content-type",
                    "content-encoding",
                    "idempotency-key",
                    "content-length",
                    "authorization",
                    "origin",
                )
            )
            headers[name] = self.mutated(headers.get(name, "Bearer token").encode()).decode("latin-1")[:300]
        if choose.random() < 0.06:
            path = self.mutated(choose.choice(PATHS).encode()).decode("latin-1")[:500]
            method = choose.choice(("GET", "POST", "DELETE", "OPTIONS", "HEAD", "PUT", "X"))
        return method, path or "/", body, headers


PATHS = (
    "/", "/v1/rounds", "/v1/rounds/1/reports", "/v1/rounds/1/estimate?level=0.9&recalibrate=auto", "/v1/rounds/1/tally",
    "/v1/rounds/1/status", "/v1/rounds/1/reports.parquet", "/v1/rounds/1/reports/" + "0" * 32, "/v1/series/x/estimate",
    "/v1/surveys/" + "0" * 64, "/v1/session", "/static/index.html", "/static/../../etc/passwd", "/metrics",
    "/healthz", "/readyz", "/v1/rounds/1/close", "/v1/rounds/1/quarantine", "/answer",
)  # fmt: skip


@dataclass
class Seen:
    """What came back."""

    statuses: Counter[int] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def add(self, status: int, body: bytes, took: float, what: str) -> None:
        """Note one answer, and what is wrong with it."""
        self.statuses[status] += 1
        self.slowest = max(self.slowest, took)
        if status >= 500 and status not in (503, 507):
            self.faults.append(f"{status}: {what}")
        if status >= 400 and status not in (503,) and body and "error" not in json.loads(body):
            self.faults.append(f"no sentence: {what}")
        if took > SLOWEST:
            self.faults.append(f"{took:.1f} s: {what}")


def memory() -> int:
    """Resident bytes now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def in_process(n: int, seed: int, *, together: int = 32) -> dict[str, Any]:
    """Send n requests through the application."""
    found, said = Seen(), io.StringIO()
    requests = Requests(random.Random(seed), surveys())
    store: Any = ForgetfulStore()
    store.add_token(ANYONE, "send")
    sizes: list[int] = []

    async def main() -> None:
        from datetime import UTC, datetime

        for survey in requests.surveys:
            store.open_round(survey, now=datetime.now(UTC))
        collector = Collector(
            store, Settings("postgresql://nowhere", allow_origins=("https://a.example",)), Log(said)
        )
        service = Service(collector, build_app(collector))
        await collector.start()

        async def one() -> None:
            method, path, body, headers = requests.request()
            began = time.perf_counter()
            try:
                answer = await asyncio.wait_for(service.call(method, path, body, headers), 30)
            except TimeoutError:
                found.faults.append(f"no answer: {method} {path}")
            except Exception as error:
                found.faults.append(f"{type(error).__name__}: {method} {path} {headers}")
            else:
                head = method == "HEAD"
                found.add(
                    answer.status,
                    b"" if head else answer.body,
                    time.perf_counter() - began,
                    f"{method} {path} {body[:99]!r}",
                )

        for start in range(0, n, together):
            await asyncio.gather(*(one() for _ in range(min(together, n - start))))
            if start % (together * max(1, n // together // 40)) == 0:
                sizes.append(memory())
        if collector.body_bytes.held or collector.writer.waiting.held:
            found.faults.append(
                f"left over: {collector.body_bytes.held} bytes, {collector.writer.waiting.held} reports"
            )
        await collector.stop()

    asyncio.run(main())
    unforeseen = [line for line in said.getvalue().splitlines() if "unforeseen" in line]
    half = sizes[len(sizes) // 2 :] or [memory()]
    return {
        "requests": n,
        "statuses": {str(status): count for status, count in sorted(found.statuses.items())},
        "faults": found.faults[:20] + unforeseen[:20],
        "slowest_seconds": round(found.slowest, 3),
        "megabytes_at_half": round(half[0] / 1e6, 1),
        "megabytes_at_the_end": round(half[-1] / 1e6, 1),
    }


def over_sockets(n: int, seed: int) -> dict[str, Any]:
    """Send n requests as bytes in which anything can be wrong, each on a connection of its own."""
    requests = Requests(random.Random(seed), surveys())
    store = ForgetfulStore()
    store.add_token(ANYONE, "send")
    from datetime import UTC, datetime

    for survey in requests.surveys:
        store.open_round(survey, now=datetime.now(UTC))
    statuses: Counter[str] = Counter()
    faults: list[str] = []

    async def one(port: int) -> None:
        method, path, body, headers = requests.request()
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\n{lines}".encode("latin-1")
        if requests.random.random() < 0.3:
            parts = [body[i : i + 99] for i in range(0, len(body), 99)]
            framed = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
            data = head + b"Transfer-Encoding: chunked\r\n\r\n" + framed
        else:
            data = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
        if requests.random.random() < 0.7:
            data = requests.mutated(data)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(data)
            writer.write_eof()
            answer = await asyncio.wait_for(reader.read(1 << 16), 20)
            statuses[answer[9:12].decode("latin-1") or "closed"] += 1
            if answer[9:10] == b"5" and answer[9:12] not in (b"503", b"507"):
                faults.append(repr(data[:300]))
        except TimeoutError:
            faults.append(f"no answer and not closed: {data[:300]!r}")
        except OSError:
            statuses["closed"] += 1
        finally:
            writer.close()

    with live(store, allow_origins=("https://a.example",)) as (url, collector):
        port = int(url.rpartition(":")[2])

        async def main() -> None:
            for start in range(0, n, 32):
                await asyncio.gather(*(one(port) for _ in range(min(32, n - start))))

        asyncio.run(main())
        time.sleep(0.1)
        left = collector.body_bytes.held
    if left:
        faults.append(f"left over: {left} bytes")
    return {"requests": n, "statuses": dict(sorted(statuses.items())), "faults": faults[:20]}


def main() -> None:
    """Run both parts and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    found = {
        "seed": given.seed,
        "in_process": in_process(given.requests, given.seed),
        "over_sockets": over_sockets(given.requests // 10, given.seed + 1),
    }
    text = json.dumps(found, indent=2)
    print(text)
    if given.output is not None:
        given.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
