"""A busy hour on an SQLite store: its end must cost no request time or memory.

    python benchmarks/collector_hour.py --reports 12000000 --output benchmarks/results/collector_hour.json

A process with an address space of 2 GB (the limit of the shipped unit) stores the reports of one hour: batches of
10,000 from the transactions of a busy collector, and single reports among them. Then it stores one report of the next
hour, merges what is left in the steps of `maintain`, and opens the store again.
"""

from __future__ import annotations

import argparse
import json
import resource
import secrets
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import hdr4me as hd
from hdr4me.collector import open_store
from hdr4me.collector.batch import Batch, hour_now

BATCH = 10_000
MEMORY = 2 << 30


def run(path: str, reports: int) -> dict[str, float]:
    """The longest write within the hour, the first write after it, and the steps of maintenance, in seconds."""
    schema = hd.Schema([hd.Numeric(f"x{i}", 0, 1) for i in range(16)])
    survey = hd.Survey(schema, epsilon=2.0, mechanism="duchi", sampled=1)
    payload = hd.Client(survey).report({f"x{i}": 0.5 for i in range(16)}).to_bytes(survey)
    store = open_store(path)
    store.open_round(survey, now=datetime.now(UTC))
    hour = hour_now() - 2

    def write(n: int, its_hour: int) -> float:
        began = time.perf_counter()
        store.write([Batch(1, 0, secrets.token_bytes(16 * n), payload * n, hour=its_hour)])
        return time.perf_counter() - began

    times = []
    for _ in range(reports // BATCH):
        times += [write(BATCH, hour), *(write(1, hour) for _ in range(3))]
    first = write(1, hour + 1)
    steps = []
    more = True
    while more:
        began = time.perf_counter()
        more = store.maintain()
        steps.append(time.perf_counter() - began)
    stored = store.round(1).stored
    store.close()
    began = time.perf_counter()
    store = open_store(path)
    opened = time.perf_counter() - began
    after = write(1, hour + 1)
    assert store.round(1).stored == stored + 1
    store.close()
    return {
        "reports": stored,
        "longest_write_in_the_hour": round(max(times), 3),
        "first_write_after_the_hour": round(first, 4),
        "longest_step_of_maintenance": round(max(steps), 4),
        "seconds_to_open_again": round(opened, 1),
        "first_write_after_opening": round(after, 4),
        "peak_megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3),
    }


def main() -> None:
    """Measure in a process with limited memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=12_000_000)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--path")
    given = parser.parse_args()
    if given.path:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        print(json.dumps(run(given.path, given.reports)))
        return
    with tempfile.TemporaryDirectory(prefix="hdr4me-hour-") as folder:
        command = [sys.executable, __file__, "--reports", str(given.reports), "--path", f"{folder}/c.db"]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    text = json.dumps({"memory_limit_megabytes": MEMORY >> 20, **found}, indent=2)
    print(text)
    if given.output is not None:
        given.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
