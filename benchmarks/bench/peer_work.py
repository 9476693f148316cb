"""Runs inside the peers' own environment: takes the name of a task on a line, answers with seconds and work done.

It imports nothing of ours. A task that its library cannot do, or whose library is absent, answers with an error.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from typing import Any


def opendp(_: str) -> tuple[float, float]:
    """Laplace noise on a vector; scale 2."""
    dp: Any = import_module("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    measurement = dp.m.make_laplace(*space, scale=2.0)
    values = [0.1] * 4_000
    return _timed(lambda: measurement(values), len(values))


def diffprivlib(_: str) -> tuple[float, float]:
    """Laplace noise, value by value."""
    mechanism: Any = import_module("diffprivlib.mechanisms").Laplace(epsilon=1.0, sensitivity=2.0)
    return _timed(lambda: [mechanism.randomize(0.1) for _ in range(4_000)], 4_000)


def pure_ldp(_: str) -> tuple[float, float]:
    """Generalized randomized response on 10 categories."""
    client: Any = import_module("pure_ldp.frequency_oracles.direct_encoding").DEClient(epsilon=1.0, d=10)
    return _timed(lambda: [client.privatise(3) for _ in range(4_000)], 4_000)


def multi_freq_ldpy(_: str) -> tuple[float, float]:
    """Generalized randomized response on 10 categories."""
    client: Any = import_module("multi_freq_ldpy.pure_frequency_oracles.GRR").GRR_Client
    return _timed(lambda: [client(3, 10, 1.0) for _ in range(4_000)], 4_000)


def duckdb(path: str) -> tuple[float, float]:
    """Counts of (dimension, code) from its best layout: a long table of two columns."""
    connection: Any = import_module("duckdb").connect()
    connection.execute("SET threads = 1")
    query = f"SELECT dimension, code, count(*) FROM read_parquet('{path}') GROUP BY ALL"
    return _timed(lambda: connection.execute(query).fetchall(), 1)


def duckdb_reports(argument: str) -> tuple[float, float]:
    """Counts from the very file of binary reports: slots cut out of it in SQL. Of six ways tried, the quickest."""
    sampled, _, path = argument.partition(" ")
    connection: Any = import_module("duckdb").connect()
    connection.execute("SET threads = 1")
    slots = ", ".join(f"substr(digits, {6 * s + 1}, 6)" for s in range(int(sampled)))
    reports = f"SELECT hex(report) AS digits FROM read_parquet('{path}')"
    query = f"SELECT slot, count(*) FROM (SELECT unnest([{slots}]) AS slot FROM ({reports})) GROUP BY slot"
    return _timed(lambda: connection.execute(query).fetchall(), 1)


def polars(path: str) -> tuple[float, float]:
    """The same."""
    os.environ["POLARS_MAX_THREADS"] = "1"  # read when polars is loaded
    library: Any = import_module("polars")
    frame = library.scan_parquet(path).group_by("dimension", "code").len()
    return _timed(lambda: frame.collect(), 1)


def _timed(work: Any, amount: float) -> tuple[float, float]:
    start = time.process_time()
    work()
    return time.process_time() - start, amount


TASKS = {
    f.__name__: f for f in (opendp, diffprivlib, pure_ldp, multi_freq_ldpy, duckdb, duckdb_reports, polars)
}


def main() -> None:
    """Answer until the input ends."""
    answers, sys.stdout = sys.stdout, sys.stderr  # a library that prints must not spoil an answer
    for line in sys.stdin:
        name, _, argument = line.rstrip("\n").partition(" ")
        try:
            seconds, amount = TASKS[name](argument)
            answer: dict[str, Any] = {"seconds": seconds, "amount": amount}
        except Exception as error:  # absent, or broken: the report says so
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
