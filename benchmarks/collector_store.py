"""The store alone: its write rate when it is small and when it is large, and how many bytes it writes.

A store of 100,000 reports and one of `--large` take batches in turn; only their ratio is a claim. Bytes are those that
this process writes, log and file (SQLite only: PostgreSQL writes in processes of its own).

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

from hdr4me.collector import open_store
from hdr4me.collector.batch import Batch
from hdr4me.collector.stores.sqlite.store import SqliteStore
from hdr4me.survey import Numeric, Schema, Survey

SURVEY = Survey(Schema([Numeric("a", 0, 1), Numeric("b", 0, 1)]), epsilon=2.0, mechanism="duchi", sampled=2)
NOW = datetime(2026, 3, 1, tzinfo=UTC)
PAYLOAD = bytes([0, 0, 1, 1, 0, 0])
STORED = 16 + len(PAYLOAD)
"""Bytes of a report as it is stored: id and payload."""


def batch_of(n: int) -> list[Batch]:
    """New reports under random ids."""
    return [Batch(1, 0, os.urandom(16 * n), PAYLOAD * n, hour=100)]


def written_bytes() -> int:
    """Bytes that this process has written, log and file."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


def checkpoint(store: Any) -> bool:
    """Write SQLite's log into its file, so that all bytes are counted; whether this is SQLite."""
    if isinstance(store, SqliteStore):
        store._emptied_log()
    return isinstance(store, SqliteStore)


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def fill(where: str, n: int) -> Any:
    """A new store of n reports."""
    store = open_store(where)
    store.open_round(SURVEY, now=NOW)
    for _ in range(0, n, 50_000):
        store.write(batch_of(50_000))
    return store


def alternate(stores: dict[str, Any], batch: int, batches: int) -> dict[str, Any]:
    """Write batches to each store in turn, so that whatever else the machine does slows down all of them alike."""
    seconds, processor = dict.fromkeys(stores, 0.0), dict.fromkeys(stores, 0.0)
    for _ in range(batches):
        for name, store in stores.items():
            one = batch_of(batch)
            start, used = time.perf_counter(), time.process_time()
            store.write(one)
            seconds[name] += time.perf_counter() - start
            processor[name] += time.process_time() - used
    n = batch * batches
    return {
        "batch": batch,
        "rate": {name: round(n / seconds[name]) for name in stores},
        "rate_of_processor_time": {name: round(n / processor[name]) for name in stores},
        "ratio": round(seconds["small"] / seconds["large"], 2),
        "ratio_of_processor_time": round(processor["small"] / processor["large"], 2),
    }


def measure(small_at: str, large_at: str, large: int, small: int = 100_000) -> dict[str, Any]:
    """Rates and bytes at `small` and at `large` stored reports."""
    found: dict[str, Any] = {"store": "PostgreSQL" if large_at.startswith("postgres") else "SQLite"}
    with closing(fill(small_at, small)) as one:
        memory = resident()
        with closing(fill(large_at, large)) as other:
            found["memory_per_report"] = round((resident() - memory) / large, 1)
            found["stored"] = {"small": small, "large": large}
            found["batches"] = []
            for batch, batches in ((64, 200), (1000, 50), (10_000, 15)):
                checkpoint(one)
                checkpoint(other)
                before = written_bytes()
                facts = alternate({"small": one, "large": other}, batch, batches)
                if checkpoint(one) and checkpoint(other):
                    written = (written_bytes() - before) / (2 * batch * batches)
                    facts["bytes_written_per_stored_byte"] = round(written / STORED, 2)
                found["batches"].append(facts)
            start = time.perf_counter()
            other.tally(1)
            found["tally_seconds"] = round(time.perf_counter() - start, 3)
    start = time.perf_counter()
    open_store(large_at).close()
    found["open_seconds"] = round(time.perf_counter() - start, 2)
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
            found.append(measure(str(Path(folder, "small.db")), str(Path(folder, "large.db")), options.large))
        if options.store != "sqlite":
            sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "plugins"))
            import postgres_server
            import psycopg

            server: Any = postgres_server.make(Path(folder, "pg"))
            try:
                with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                    connection.execute("create database small")
                small_at = str(server.get_uri(database="small"))
                found.append(measure(small_at, str(server.get_uri()), options.large))
            finally:
                postgres_server.kill(server, 3)
    text = json.dumps(found, indent=1)
    print(text)
    if options.output:
        options.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
