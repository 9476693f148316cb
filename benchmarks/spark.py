"""Counting ten million reports: this machine, Spark on two of its cores, and plain Spark SQL on the same reports.

    python benchmarks/spark.py [--reports 10000000] [--rounds 5] [--sampled 1 10] [--json]

Every way is run once to warm up (that is the start-up, shown apart), then in turn for several rounds; the best round
counts, because other work on the machine only ever adds time. All answers are compared before anything is printed.

The SQL competitors do less: they check nothing, and their answer is rows of (dimension, code, count).
  sql decoded   explode the report into slots, decode dimension and code, group by both: what one would write first
  sql slots     explode into three-byte slots, group by the bytes, decode only the groups: the fastest we found
  sql flat      a table of (dimension, code) that someone exploded beforehand; its preparation is not counted
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hdr4me as hd
from hdr4me.io import write_reports

DIMS = 100
Way = Callable[[], NDArray[np.int64]]


def make_reports(path: Path, survey: Any, n_reports: int) -> None:
    """Reports with uniform codes; the m dimensions of each are one from every m-th part of the schema."""
    rng = np.random.default_rng(1)
    m, cells = survey.sampled, survey.questions[0].channel.n_counters
    step = DIMS // m
    with write_reports(path, survey) as writer:
        for n in np.diff(np.linspace(0, n_reports, 21).astype(int)).tolist():
            block = np.zeros((n, m, 3), np.uint8)
            block[:, :, 0] = np.arange(m) * step + rng.integers(0, step, (n, m))
            block[:, :, 2] = rng.integers(0, cells, (n, m))
            writer.write(block.reshape(n, 3 * m))


def ways(session: Any, survey: Any, path: Path) -> dict[str, Way]:
    """Every way to count, each giving the tally's flat counts."""
    from pyspark.sql import functions as F

    m, cells = survey.sampled, survey.questions[0].channel.n_counters
    engine, frame = hd.engines.spark(session), session.read.parquet(str(path))

    def by_rows(rows: list[Any]) -> NDArray[np.int64]:
        counts = np.zeros(DIMS * cells, np.int64)
        for dimension, code, count in rows:
            counts[int(dimension) * cells + int(code)] = count
        return counts

    def slot(first: str, size: int) -> str:
        return f"substring(report, 3 * i + {first}, {size})"

    def number(first: str) -> str:
        return f"conv(hex({slot(first, 1)}), 16, 10)"

    def decoded() -> NDArray[np.int64]:
        pair = f"struct({number('1')} + 256 * {number('2')} as dimension, {number('3')} as code)"
        slots = frame.select(F.expr(f"explode(transform(sequence(0, {m - 1}), i -> {pair})) as x"))
        return by_rows([tuple(row) for row in slots.groupBy("x.dimension", "x.code").count().collect()])

    def slots() -> NDArray[np.int64]:
        if m == 1:
            rows = frame.groupBy("report").count().collect()
        else:
            each = frame.select(F.expr(f"explode(transform(sequence(0, {m - 1}), i -> {slot('1', 3)})) as x"))
            rows = each.groupBy("x").count().collect()
        return by_rows([(x[0] + 256 * x[1], x[2], count) for x, count in rows])

    flat_path = str(path.with_suffix(".flat"))
    pair = f"struct(int({number('1')} + 256 * {number('2')}) as dimension, int({number('3')}) as code)"
    frame.select(F.expr(f"inline(transform(sequence(0, {m - 1}), i -> {pair}))")).write.parquet(flat_path)
    table = session.read.parquet(flat_path)

    def flat() -> NDArray[np.int64]:
        return by_rows([tuple(row) for row in table.groupBy("dimension", "code").count().collect()])

    return {
        "local": lambda: hd.engines.Local().tally([path], survey).counts,
        "spark files": lambda: engine.tally(path, survey).counts,
        "spark frame": lambda: engine.tally(frame, survey).counts,
        "sql decoded": decoded,
        "sql slots": slots,
        "sql flat": flat,
    }


def measure(session: Any, sampled: int, n_reports: int, rounds: int, folder: Path) -> dict[str, Any]:
    """Seconds of each way: the first run, and the best of the rounds."""
    schema = hd.Schema(hd.Numeric(f"x{j}", -1, 1) for j in range(DIMS))
    survey = hd.Survey(schema, epsilon=float(sampled), sampled=sampled)
    path = folder / f"reports-{sampled}.parquet"
    make_reports(path, survey, n_reports)
    every = ways(session, survey, path)
    first, best, answers = {}, dict.fromkeys(every, float("inf")), {}
    for name, way in every.items():
        start = time.perf_counter()
        answers[name] = way()
        first[name] = time.perf_counter() - start
    if not all(np.array_equal(answer, answers["local"]) for answer in answers.values()):
        raise SystemExit("the ways to count disagree")
    for _ in range(rounds):
        for name, way in every.items():
            start = time.perf_counter()
            way()
            best[name] = min(best[name], time.perf_counter() - start)
    return {
        "n_reports": n_reports,
        "sampled": sampled,
        "report_bytes": survey.report_size,
        "file_bytes": path.stat().st_size,
        "cells": survey.questions[0].channel.n_counters,
        "first_seconds": first,
        "best_seconds": best,
    }


def show(result: dict[str, Any]) -> None:
    n, best = result["n_reports"], result["best_seconds"]
    print(f"\n{n:,} reports of {result['sampled']} × 3 bytes, {result['cells']} cells, ", end="")
    print(f"{result['file_bytes'] / 1e6:.0f} MB of Parquet\n")
    print("| way | first run, s | best, s | million reports/s | Spark files are faster by |")
    print("|---|---|---|---|---|")
    for name, seconds in best.items():
        times = f"{seconds / best['spark files']:.1f}×"
        print(
            f"| {name} | {result['first_seconds'][name]:.2f} | {seconds:.2f} | {n / seconds / 1e6:.1f} | {times} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reports", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sampled", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    start = time.perf_counter()
    session = hd.engines.open_session(options.master, settings={"spark.driver.memory": "4g"})
    session.range(1).count()
    opened = time.perf_counter() - start
    print(f"Spark's start-up: {opened:.1f} s", file=sys.stderr)
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for sampled in options.sampled:
            results.append(measure(session, sampled, options.reports, options.rounds, Path(folder)))
            if not options.json:
                show(results[-1])
    session.stop()
    if options.json:
        print(json.dumps({"start_up_seconds": opened, "results": results}, indent=1))


if __name__ == "__main__":
    main()
