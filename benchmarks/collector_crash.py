"""Kill −9, again and again: is a report that the store acknowledged ever lost, or counted twice?

Writers are forked, store batches of reports without pause, and write the acknowledged ids to a pipe.
After a random time they are killed. New writers send again what was not acknowledged, and some of what was. In the end
every acknowledged id must be stored, none twice, and the tally must be that of the stored reports.

    python benchmarks/collector_crash.py --cycles 100 --output benchmarks/results/collector_crash.json
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hdr4me.collector import open_store
from hdr4me.collector.batch import Batch
from hdr4me.collector.errors import StoreError
from hdr4me.survey import Numeric, Schema, Survey
from hdr4me.tally import Tally

SURVEY = Survey(Schema([Numeric("a", 0, 1), Numeric("b", 0, 1)]), epsilon=2.0, mechanism="duchi", sampled=1)
NOW = datetime(2026, 3, 1, tzinfo=UTC)
MOST_BATCH = 200


@dataclass
class Outcome:
    """What became of all reports."""

    store: str
    writers: int
    cycles: int
    database_killed: int
    acknowledged: int
    stored: int
    lost: int
    twice: int
    sent_again: int
    tally_is_exact: bool
    seconds: float

    @property
    def good(self) -> bool:
        """Nothing lost, nothing twice."""
        return self.lost == self.twice == 0 and self.tally_is_exact and self.acknowledged > 0


def payload_of(id: bytes) -> bytes:
    """The report of an id: so a report under a wrong id would be noticed."""
    return bytes([id[0] & 1, 0, id[1] & 1])


def write_for_ever(where: str, pipe: int, again: list[bytes], seed: int) -> None:
    """Store batches and write the acknowledged ids to the pipe, until this process is killed."""
    rng = random.Random(seed)
    store = open_store(where)
    while True:
        ids = [os.urandom(16) for _ in range(rng.randrange(1, MOST_BATCH))]
        ids += rng.sample(again, min(len(again), rng.randrange(20)))
        batches = [Batch(1, rng.randrange(2), id, payload_of(id), hour=100 + rng.randrange(2)) for id in ids]
        os.write(pipe, b"".join(b"s" + id for id in ids))  # sent
        store.write(batches)
        os.write(pipe, b"".join(b"a" + id for id in ids))  # acknowledged


class Writers:
    """Some forked writers, and the ids that they wrote."""

    def __init__(self, where: str, n: int, again: list[bytes], rng: random.Random) -> None:
        self.pids, self.pipes = [], {}
        for _ in range(n):
            reader, writer = os.pipe()
            seed = rng.getrandbits(32)
            pid = os.fork()
            if pid == 0:
                os.close(reader)
                try:
                    write_for_ever(where, writer, again, seed)
                except StoreError:
                    os._exit(3)
                except BaseException as error:
                    print(repr(error), file=sys.stderr, flush=True)
                    os._exit(4)
            os.close(writer)
            self.pids.append(pid)
            self.pipes[reader] = bytearray()

    def listen(self, seconds: float) -> None:
        """Read the pipes for a time; the time begins when each has had an acknowledgment."""
        end = time.monotonic() + 60
        heard = False
        while self._open and (left := end - time.monotonic()) > 0:
            ready, _, _ = select.select(self._open, [], [], left)
            self._read(ready)
            if not heard and all(ord("a") in data[::17] for data in self.pipes.values()):
                heard, end = True, time.monotonic() + seconds

    def kill(self) -> None:
        """Kill −9, and read to the end."""
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
        for pid in self.pids:
            _, status = os.waitpid(pid, 0)
            if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 4:
                raise AssertionError("a writer failed by itself")
        while self._open:
            self._read(self._open)

    @property
    def _open(self) -> list[int]:
        return [pipe for pipe in self.pipes if pipe >= 0]

    def _read(self, ready: list[int]) -> None:
        for pipe in ready:
            data = os.read(pipe, 1 << 16)
            self.pipes[pipe] += data
            if not data:
                os.close(pipe)
                self.pipes[-pipe - 1] = self.pipes.pop(pipe)

    def ids(self) -> tuple[set[bytes], set[bytes]]:
        """The ids that were sent, and those that were acknowledged; half an id at the end is none."""
        found: dict[int, set[bytes]] = {ord("s"): set(), ord("a"): set()}
        for data in self.pipes.values():
            for at in range(0, len(data) - 16, 17):
                found[data[at]].add(bytes(data[at + 1 : at + 17]))
        return found[ord("s")], found[ord("a")]


def campaign(
    where: str,
    cycles: int,
    *,
    writers: int = 1,
    seed: int = 1,
    longest: float = 0.2,
    kill_database: Callable[[], None] | None = None,
) -> Outcome:
    """Kill writers `cycles` times and look what is stored.

    Parameters
    ----------
    where
        A store's path or URL; it is empty.
    cycles
        How many times the writers are killed.
    writers
        How many write at once.
    seed
        Of the times at which they are killed.
    longest
        The longest time in seconds between the first acknowledgments and the end of the writers.
    kill_database
        Kills the database under the writers and starts it again.
    """
    rng = random.Random(seed)
    with closing(open_store(where)) as store:
        store.open_round(SURVEY, now=NOW)
    sent: set[bytes] = set()
    acknowledged: set[bytes] = set()
    start = time.monotonic()
    n_again = 0
    for _ in range(cycles):
        not_significant = list(sent - acknowledged)
        again = not_significant[:500] + rng.sample(sorted(acknowledged), min(len(acknowledged), 100))
        n_again += len(again)
        some = Writers(where, writers, again, rng)
        some.listen(rng.uniform(0, longest))
        if kill_database is not None:
            kill_database()
        some.kill()
        new_sent, new_acknowledged = some.ids()
        sent |= new_sent
        acknowledged |= new_acknowledged
    seconds = time.monotonic() - start
    with closing(open_store(where)) as store:
        pairs = [pair for b in store.blocks(1) for pair in zip(b.ids, b.payloads, strict=True)]
        tally = store.tally(1)
    ids = {id for id, _ in pairs}
    assert ids <= sent
    rows = np.frombuffer(b"".join(payload_of(id) for id, _ in pairs), np.uint8).reshape(-1, 3)
    exact = tally == Tally(SURVEY).add_block(rows) and all(payload == payload_of(id) for id, payload in pairs)
    return Outcome(
        store="PostgreSQL" if where.startswith("postgres") else "SQLite",
        writers=writers,
        cycles=cycles,
        database_killed=cycles if kill_database else 0,
        acknowledged=len(acknowledged),
        stored=len(pairs),
        lost=len(acknowledged - ids),
        twice=len(pairs) - len(ids),
        sent_again=n_again,
        tally_is_exact=bool(exact),
        seconds=round(seconds, 1),
    )


def _postgres(folder: Path, cycles: int, database_cycles: int) -> Iterator[Outcome]:
    """PostgreSQL with one writer, with two, and with the database killed under two."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "plugins"))
    import postgres_server
    import psycopg

    server: Any = postgres_server.make(folder)
    url = str(server.get_uri())

    def restart() -> None:
        postgres_server.kill(server)
        postgres_server.start_again(server)

    def run_sql(*statements: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("set client_min_messages = error")
            for statement in statements:
                connection.execute(statement)

    try:
        run_sql("alter system set recovery_init_sync_method = syncfs")
        for writers in (1, 2):
            run_sql("drop schema if exists hdr4me cascade")
            yield campaign(url, cycles, writers=writers)
        if database_cycles:
            run_sql("drop schema if exists hdr4me cascade")
            yield campaign(url, database_cycles, writers=2, kill_database=restart)
    finally:
        postgres_server.kill(server, signal.SIGQUIT)


def main() -> None:
    """Run the campaigns and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--database-cycles", type=int, default=100)
    parser.add_argument("--store", choices=["sqlite", "postgres", "both"], default="both")
    parser.add_argument("--database", help="an empty database; without it a server is started")
    parser.add_argument("--writers", type=int, default=1)
    parser.add_argument("--longest", type=float, default=0.2)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    found: list[Outcome] = []

    def add(outcome: Outcome) -> None:
        found.append(outcome)
        if options.output:
            options.output.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")

    with tempfile.TemporaryDirectory(prefix="crash", ignore_cleanup_errors=True) as folder:
        if options.store != "postgres":
            add(campaign(str(Path(folder, "reports.db")), options.cycles, longest=options.longest))
        if options.database:
            add(campaign(options.database, options.cycles, writers=options.writers, longest=options.longest))
        elif options.store != "sqlite":
            for outcome in _postgres(Path(folder, "pg"), options.cycles, options.database_cycles):
                add(outcome)
    print(json.dumps([asdict(outcome) for outcome in found], indent=1))
    sys.exit(0 if all(outcome.good for outcome in found) else 1)


if __name__ == "__main__":
    main()
