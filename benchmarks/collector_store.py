"""The store alone: how fast it takes batches when it is small and when it is large, and how many bytes it writes.

Rates when empty and at `--large` stored reports are measured in one run; so only their ratio is a claim. Bytes are what
the kernel counts for this process (`/proc/self/io`, SQLite only: PostgreSQL writes in processes of its own).

    python benchmarks/collector_store.py --output benchmarks/results/collector_store.json
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hdr4me.collector import open_store
from hdr4me.collector.sqlite import SqliteStore
from hdr4me.collector.store import Arrival
from hdr4me.survey import Numeric, Schema, Survey

SURVEY = Survey(Schema([Numeric("a", 0, 1), Numeric("b", 0, 1)]), epsilon=2.0, mechanism="duchi", n_sampled=2)
NOW = datetime(2026, 3, 1, tzinfo=UTC)
PAYLOAD = bytes([0, 0, 1, 1, 0, 0])
STORED = 16 + len(PAYLOAD)
"""Bytes of a report as it is stored: id and payload."""


def batch_of(n: int) -> list[Arrival]:
    """New reports under random ids."""
    data = os.urandom(16 * n)
    return [Arrival(1, data[16 * i : 16 * i + 16], PAYLOAD, 100) for i in range(n)]


def rate(store: Any, batch: int, batches: int) -> float:
    """Reports a second: the median over three parts."""
    found = []
    for _ in range(3):
        made = [batch_of(batch) for _ in range(max(1, batches // 3))]
        start = time.perf_counter()
        for one in made:
            store.write(one)
        found.append(batch * len(made) / (time.perf_counter() - start))
    return float(np.median(found))


def written_bytes() -> int:
    """Bytes that this process has written, log and file."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


def checkpoint(store: Any) -> bool:
    """Write SQLite's log into its file, so that all bytes are counted; whether this is SQLite."""
    if isinstance(store, SqliteStore):
        store._truncate()
    return isinstance(store, SqliteStore)


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure(where: str, large: int, small: int = 100_000) -> dict[str, Any]:
    """Rates and bytes at `small` and at `large` stored reports."""
    found: dict[str, Any] = {"store": "PostgreSQL" if where.startswith("postgres") else "SQLite"}
    with closing(open_store(where)) as store:
        store.open_round(SURVEY, now=NOW)
        rate(store, 64, 30)
        memory = resident()
        filled = 0
        for size, name in ((small, "small"), (large, "large")):
            while filled < size:
                store.write(batch_of(min(20_000, size - filled)))
                filled = store.round(1).stored if filled == 0 else filled + 20_000
            facts: dict[str, Any] = {"stored": store.round(1).stored}
            for batch, batches in ((64, 150), (1000, 60), (10_000, 15)):
                checkpoint(store)
                before = written_bytes()
                facts[f"rate_{batch}"] = round(rate(store, batch, batches))
                if checkpoint(store):
                    n = batch * 3 * max(1, batches // 3)
                    facts[f"bytes_{batch}"] = round((written_bytes() - before) / n / STORED, 2)
            start = time.perf_counter()
            store.tally(1)
            facts["tally_seconds"] = round(time.perf_counter() - start, 3)
            found[name] = facts
        found["memory_per_report"] = round((resident() - memory) / found["large"]["stored"], 1)
    start = time.perf_counter()
    with closing(open_store(where)) as store:
        found["open_seconds"] = round(time.perf_counter() - start, 2)
    for batch in (64, 1000, 10_000):
        found[f"ratio_{batch}"] = round(found["large"][f"rate_{batch}"] / found["small"][f"rate_{batch}"], 2)
    return found


def main() -> None:
    """Measure and write down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", type=int, default=5_000_000)
    parser.add_argument("--store", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory(prefix="rates", ignore_cleanup_errors=True) as folder:
        if options.store != "postgres":
            found.append(measure(str(Path(folder, "reports.db")), options.large))
        if options.store != "sqlite":
            sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "plugins"))
            import postgres_server

            server: Any = postgres_server.make(Path(folder, "pg"))
            try:
                found.append(measure(str(server.get_uri()), options.large))
            finally:
                postgres_server.kill(server, 3)
    text = json.dumps(found, indent=1)
    print(text)
    if options.output:
        options.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
