"""Everything at once on one store: writes, deletions, closing, finalizing, exports, backups and two readers.

    python benchmarks/collector_race.py --seconds 20 --output benchmarks/results/collector_race.json

Each task has a thread that repeats it without a pause, on SQLite and on PostgreSQL. An export must contain every report
that was acknowledged before it began and not deleted before it ended, and no report twice. A reader must find at least
as many reports as were acknowledged, less those deleted. In the end, each round's tally must be that of the
acknowledged reports without the deleted ones, bit for bit.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import secrets
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import hdr4me as hd
from hdr4me.collector import open_store
from hdr4me.collector.backup import backup
from hdr4me.collector.batch import ID_SIZE, Batch
from hdr4me.collector.errors import Finalized
from hdr4me.collector.export import write_parquet
from hdr4me.collector.stores.protocol import Store
from hdr4me.engines import Local
from hdr4me.tally.file import dumps


@dataclass
class Expected:
    """The reports of a round: acknowledged, and those of which the deletion was acknowledged or has begun."""

    reports: dict[bytes, bytes] = field(default_factory=dict)
    deleting: set[bytes] = field(default_factory=set)
    deleted: set[bytes] = field(default_factory=set)


class Race:
    """The tasks, what they expect, and the faults they find."""

    def __init__(self, where: str, folder: Path, seed: int) -> None:
        schema = hd.Schema([hd.Numeric("age", 0, 100, default=50), hd.Categorical("pet", ["cat", "dog"])])
        self.survey = hd.Survey(schema, epsilon=2.0)
        rows = np.concatenate(list(Local(threads=1).reports(np.zeros((500, 2)), self.survey)))
        self.payloads = [row.tobytes() for row in rows]
        self.where, self.folder, self.draw = where, folder, random.Random(seed)
        self.store: Store = open_store(where)
        self.rounds: dict[int, Expected] = {}
        self.lock, self.stop = threading.Lock(), threading.Event()
        self.done: Counter[str] = Counter()
        self.faults: list[str] = []
        self.open()

    def open(self) -> None:
        """Open the next round."""
        number = self.store.open_round(self.survey, now=datetime.now(UTC)).number
        with self.lock:
            self.rounds[number] = Expected()

    def some(self) -> tuple[int, Expected]:
        """One of the last three rounds."""
        with self.lock:
            return self.draw.choice(list(self.rounds.items())[-3:])

    def write(self) -> None:
        """Store a batch, sometimes with ids that are stored already, in the current round or a closed one."""
        number, expected = self.some()
        n = self.draw.choice((1, 1, 20, 500))
        chosen = {secrets.token_bytes(ID_SIZE): self.draw.choice(self.payloads) for _ in range(n)}
        with self.lock:
            again = list(expected.reports.items())[-2:]
        ids, data = b"".join([*chosen, *dict(again)]), b"".join([*chosen.values(), *dict(again).values()])
        batch = Batch(number, 0, ids, data)
        self.store.write([batch])
        if batch.refused:
            return
        if batch.stored != n:
            self.faults.append(f"{batch.stored} of {n} new reports were stored")
        with self.lock:
            expected.reports.update(chosen)

    def delete(self) -> None:
        """Delete a stored report."""
        number, expected = self.some()
        with self.lock:
            left = [id for id in list(expected.reports)[-2000:] if id not in expected.deleting]
            if not left:
                return
            id = self.draw.choice(left)
            expected.deleting.add(id)
        try:
            found = self.store.delete(number, id)
        except Finalized:
            with self.lock:
                expected.deleting.discard(id)
            return
        if not found:
            self.faults.append("an acknowledged report could not be deleted")
        with self.lock:
            expected.deleted.add(id)

    def close(self) -> None:
        """Close the last round and open the next."""
        time.sleep(0.3)
        self.store.close_round(max(self.rounds), now=datetime.now(UTC))
        self.open()

    def finalize(self) -> None:
        """Finalize the oldest round that is closed, while its reports may be deleted or exported."""
        time.sleep(0.2)
        closed = [r.number for r in self.store.rounds() if r.state == "closed"]
        if len(closed) > 1:
            self.store.finalize(closed[0])

    def export(self) -> None:
        """Export a round and compare its ids."""
        number, expected = self.some()
        with self.lock:
            before = set(expected.reports)
        file = io.BytesIO()
        for piece in write_parquet(self.store, number, self.survey):
            file.write(piece)
        ids = pq.read_table(file)["id"].to_pylist()
        with self.lock:
            missing = before - set(ids) - expected.deleting
        if len(ids) != len(set(ids)):
            self.faults.append("an export contains a report twice")
        if missing and self.store.round(number).state != "finalized":
            self.faults.append(f"an export misses {len(missing)} reports")

    def backup(self) -> None:
        """Make a backup; it verifies its own checksums."""
        backup(self.where, self.folder / "backup")

    def read(self) -> None:
        """Read a tally and the number of stored reports."""
        number, expected = self.some()
        with self.lock:
            before = len(expected.reports)
        found = self.store.tally(number).n_reports
        with self.lock:
            gone = len(expected.deleting)
        if found < before - gone:
            self.faults.append(f"a tally has {found} of {before} reports, {gone} deleted")

    def maintain(self) -> None:
        """One step of maintenance."""
        time.sleep(0.05)
        self.store.maintain()

    def repeat(self, task: Callable[[], None]) -> None:
        """Run a task until the end; an exception is a fault."""
        while not self.stop.is_set():
            try:
                task()
                self.done[task.__name__] += 1
            except Exception as error:
                self.faults.append(f"{task.__name__}: {type(error).__name__}: {error}"[:300])
                time.sleep(0.1)

    def run(self, seconds: float) -> dict[str, Any]:
        """Run all tasks for some seconds; what was done, and the faults."""
        began = time.monotonic()
        tasks = [self.write, self.delete, self.close, self.finalize, self.export, self.backup, self.read]
        threads = [
            threading.Thread(target=self.repeat, args=(t,)) for t in (*tasks, self.read, self.maintain)
        ]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        self.stop.set()
        for thread in threads:
            thread.join()
        self.store.close()
        self.store = open_store(self.where)
        for number, expected in self.rounds.items():
            left = [payload for id, payload in expected.reports.items() if id not in expected.deleted]
            rows = np.frombuffer(b"".join(left), np.uint8).reshape(-1, self.survey.report_size)
            tally = hd.Tally(self.survey).add_block(rows)
            if dumps(self.store.tally(number)) != dumps(tally):
                self.faults.append(f"the tally of round {number} is not that of its reports")
        self.store.close()
        return {
            "store": "PostgreSQL" if "://" in self.where else "SQLite",
            "seconds": round(time.monotonic() - began, 1),
            "rounds": len(self.rounds),
            "reports": sum(len(expected.reports) for expected in self.rounds.values()),
            "deleted": sum(len(expected.deleted) for expected in self.rounds.values()),
            "done": dict(sorted(self.done.items())),
            "faults": self.faults[:10],
        }


def main() -> int:
    """Race on SQLite, and on PostgreSQL."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--only", default="sqlite,postgres")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", help="an empty database; without it a server is started")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory(prefix="hdr4me-race-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for store in given.only.split(","):
            if store == "sqlite":
                found.append(Race(str(folder / "c.db"), folder, given.seed).run(given.seconds))
            elif given.database:
                found.append(Race(given.database, folder, given.seed).run(given.seconds))
            else:
                sys.path.append(str(Path(__file__).parents[1] / "tests" / "plugins"))
                import postgres_server

                server = postgres_server.make(folder / "pg")
                try:
                    found.append(Race(server.get_uri(), folder, given.seed).run(given.seconds))
                finally:
                    postgres_server.kill(server)
    text = json.dumps(found, indent=1)
    print(text)
    if given.output is not None:
        given.output.write_text(text + "\n")
    return any(result["faults"] for result in found)


if __name__ == "__main__":
    sys.exit(main())
