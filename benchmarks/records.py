"""The cost of reading records: missing values in a CSV file, the data-quality report, and Spark compared with Local.

    python benchmarks/records.py [--rows 500000] [--wide 1000000] [--rounds 3] [--output results/records.json]

Processor time, user and system, of this process and (for Spark) of every process below it; the best of some rounds,
in turn, because other work on the machine only ever adds time. Everything runs on one thread or one core each.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq

import hdr4me as hd
from hdr4me.io import DataQuality, data_quality

_TICKS = os.sysconf("SC_CLK_TCK")


def survey_of(d: int) -> hd.Survey:
    return hd.Survey(hd.Schema(hd.Numeric(f"x{j}", 0, 100) for j in range(d)), epsilon=1.0, mechanism="duchi")


def below(root: int) -> list[int]:
    """The processes of the tree that begins at `root`."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int(entry.joinpath("stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            parents.setdefault(parent, []).append(int(entry.name))
    found, rest = [], [root]
    while rest:
        found.append(rest.pop())
        rest += parents.get(found[-1], [])
    return found


def processor_time() -> float:
    """Seconds of this process and of all below it, including those that have ended."""
    total = 0
    for process in below(os.getpid()):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15]))
    return total / _TICKS


def best(
    ways: dict[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = processor_time
) -> dict[str, float]:
    """The smallest processor time of each method, after a warm-up round."""
    seconds = dict.fromkeys(ways, float("inf"))
    for round_ in range(rounds + 1):
        for name, way in ways.items():
            start = clock()
            way()
            if round_:
                seconds[name] = min(seconds[name], clock() - start)
    return seconds


def quiet(quality: object) -> None:
    """Ignore the data-quality report."""


def measure_csv(folder: Path, rows: int, rounds: int) -> dict[str, float]:
    """A CSV file of numbers: without missing values, with one empty cell per column, with one cell in twenty empty."""
    rng = np.random.default_rng(1)
    values, gaps = rng.normal(50, 10, (rows, 20)).round(3), rng.random((rows, 20)) < 0.05
    first = np.zeros_like(gaps)
    first[0] = True
    for name, mask in (("full", np.zeros_like(gaps)), ("one", first), ("gaps", gaps)):
        columns = {f"x{j}": pa.array(values[:, j], mask=mask[:, j]) for j in range(20)}
        pv.write_csv(pa.table(columns), folder / f"{name}.csv")
    marked = {f"x{j}": np.where(gaps[:, j], "NA", values[:, j].astype(str)) for j in range(20)}
    pv.write_csv(pa.table(marked), folder / "na.csv")
    engine, survey = hd.engines.Local(threads=1), survey_of(20)

    def way(name: str) -> Callable[[], object]:
        return lambda: engine.perturb(
            folder / f"{name}.csv", survey, folder / "out.parquet", on_quality=quiet
        )

    return best({name: way(name) for name in ("full", "one", "gaps", "na")}, rounds)


def measure_wide(folder: Path, rows: int, rounds: int, master: str) -> dict[str, float]:
    """A Parquet file of 100 columns: locally with and without the data-quality report, and on Spark."""
    rng = np.random.default_rng(2)
    path = folder / "wide.parquet"
    schema: Any = pa.schema([(f"x{j}", pa.float64()) for j in range(100)])
    with pq.ParquetWriter(path, schema) as writer:
        for _ in range(10):
            values = rng.normal(50, 10, (rows // 10, 100))
            writer.write_table(pa.table([values[:, j] for j in range(100)], schema=schema))
    engine, survey = hd.engines.Local(threads=1), survey_of(100)
    session = hd.engines.open_session(master)
    spark = hd.engines.spark(session)
    turn = [0]

    def on_spark() -> None:
        turn[0] += 1
        spark.perturb(path, survey, folder / f"out{turn[0]}", on_quality=quiet)

    def wall() -> float:
        start = time.perf_counter()
        on_spark()
        return time.perf_counter() - start

    target = folder / "out.parquet"
    shares: list[float] = []

    def timed(source: Any, survey: Any) -> DataQuality:
        start = time.thread_time()
        found = data_quality(source, survey)
        spent[0] += time.thread_time() - start
        return found

    spent = [0.0]

    def accounted() -> None:
        spent[0], start = 0.0, processor_time()
        with mock.patch("hdr4me.engines.local.data_quality", timed):
            engine.perturb(path, survey, target, on_quality=quiet)
        shares.append(spent[0] / (processor_time() - start))

    seconds = best(
        {
            "local": accounted,
            "spark": on_spark,
        },
        rounds,
    )
    seconds["account, of local"] = seconds["local"] * float(np.median(shares[1:]))
    seconds["spark, seconds on the clock"] = min(wall() for _ in range(rounds))
    session.stop()
    return seconds


def measure_reports(folder: Path, rows: int, rounds: int) -> dict[str, float]:
    """Reports of one answer in twenty as Parquet and as JSON lines: perturbed to, and tallied from, in turn."""
    values = np.random.default_rng(3).uniform(0, 100, (rows, 20))
    engine, survey = hd.engines.Local(threads=1), survey_of(20)
    ways: dict[str, Callable[[], object]] = {}
    for suffix in ("parquet", "jsonl"):
        path = folder / f"reports.{suffix}"
        ways[f"perturb to {suffix}"] = lambda path=path: engine.perturb(values, survey, path)  # type: ignore[misc]
        ways[f"tally {suffix}"] = lambda path=path: engine.tally(path, survey)  # type: ignore[misc]
    return best(ways, rounds, time.process_time)  # this process alone, finer than the system's ticks


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--wide", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--output", type=Path)
    parser.add_argument(
        "--only-reports", action="store_true", help="Parquet and JSON lines of reports, no more."
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        reports = measure_reports(Path(folder), options.wide, options.rounds)
        lines = {
            "reports": {"rows": options.wide, "processor_seconds": reports},
            "ratios": {
                f"{what} JSON lines beside Parquet": reports[f"{way} jsonl"] / reports[f"{way} parquet"]
                for what, way in (("perturb to", "perturb to"), ("tally", "tally"))
            },
        }
        if options.only_reports:
            print(json.dumps(lines, indent=1))
            return
        csv = measure_csv(Path(folder), options.rows, options.rounds)
        wide = measure_wide(Path(folder), options.wide, options.rounds, options.master)
    result = {
        "reports": lines["reports"],
        "csv": {"rows": options.rows, "columns": 20, "processor_seconds": csv},
        "parquet": {
            "rows": options.wide,
            "columns": 100,
            "processor_seconds": wide,
            "master": options.master,
        },
        "ratios": {
            "one empty cell": csv["one"] / csv["full"],
            "one cell in twenty empty": csv["gaps"] / csv["full"],
            "one cell in twenty NA": csv["na"] / csv["full"],
            "account, of local": wide["account, of local"] / wide["local"],
            "spark beside local": wide["spark"] / wide["local"],
            **lines["ratios"],
        },
    }
    text = json.dumps(json.loads(json.dumps(result), parse_float=lambda x: round(float(x), 3)), indent=1)
    if options.output:
        options.output.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
