"""What reading costs: processor time against the bytes given, and memory, for every reader and the worst files.

    python benchmarks/readers.py --output benchmarks/results/readers.json

Each file is made in one process and read in another, at three sizes, each four times the one before. The slope is that
of log(time) against log(bytes): 1 is linear. Memory is the peak above what the process had before it began to read.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).parent))

from fuzzing.reports import SURVEY, some_answers, some_rows
from hdr4me.engines import Local
from hdr4me.errors import FormatError
from hdr4me.io import Report, write_reports
from hdr4me.io.arrow import schema_of

__all__ = ["CASES"]


def _block(n: int) -> np.ndarray:
    small_sample = np.stack([np.frombuffer(row, np.uint8) for row in some_rows(Random(1), 1000)])
    return small_sample[np.arange(n) % 1000]


def _good(suffix: str) -> Callable[[Path, int], Path]:
    def make(folder: Path, n: int) -> Path:
        path = folder / f"r.{suffix}"
        with write_reports(path, SURVEY) as writer:
            for start in range(0, n, 100_000):
                writer.write(_block(min(100_000, n - start)))
        return path

    return make


def _nulls(suffix: str, every: int) -> Callable[[Path, int], Path]:
    """One report in every `every` rows; the other rows are null."""

    def make(folder: Path, n: int) -> Path:
        path, schema = folder / f"r.{suffix}", schema_of(SURVEY)
        one = some_rows(Random(1), 1)[0]
        values = [one if every and i % every == 0 else None for i in range(n)]
        loose: Any = pa.schema([schema.field(0).with_nullable(True)], metadata=schema.metadata)  # type: ignore[arg-type]
        table = pa.table({"report": pa.array(values, schema.field(0).type)}, schema=loose)
        if suffix == "parquet":
            pq.write_table(table, path)
        else:
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, loose) as writer:
                writer.write_table(table)
        return path

    return make


def _lines(bad: bytes, every: int) -> Callable[[Path, int], Path]:
    """One report in every `every` lines; the other lines are `bad`, and the first is a report."""

    def make(folder: Path, n: int) -> Path:
        path, random = folder / "r.jsonl", Random(1)
        good = [
            Report(SURVEY.fingerprint, tuple(map(tuple, some_answers(random)))).to_json().encode() + b"\n"
            for _ in range(100)
        ]
        with path.open("wb") as file:
            for i in range(n):
                file.write(good[i % 100] if i % every == 0 else bad)
        return path

    return make


CASES: dict[str, tuple[Callable[[Path, int], Path], int, bool]] = {
    "Parquet, reports": (_good("parquet"), 50_000, False),
    "Parquet, nulls only": (_nulls("parquet", 0), 15_000, False),
    "Parquet, every second a null": (_nulls("parquet", 2), 15_000, False),
    "Parquet, nulls with quarantine": (_nulls("parquet", 0), 15_000, True),
    "Arrow, reports": (_good("arrow"), 50_000, False),
    "Arrow, nulls only": (_nulls("arrow", 0), 20_000, False),
    "JSON lines, reports": (_lines(b"", 1), 20_000, False),
    "JSON lines, x": (_lines(b"x\n", 10**9), 20_000, False),
    "JSON lines, x with quarantine": (_lines(b"x\n", 10**9), 20_000, True),
    "JSON lines, blank": (_lines(b"\n", 10**9), 40_000, False),
    "JSON lines, far too long": (_lines(b"[" * 50_000 + b"\n", 10**9), 100, False),
    "JSON lines, half a report": (_lines(b'{"format":"hdr4me-report","version":1,\n', 2), 40_000, False),
}
"""The function that writes a file, the smallest number of rows or lines, and whether a quarantine is written."""


def _read(path: Path, quarantine: bool) -> dict[str, float]:
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        if quarantine:
            Local(threads=1).tally(path, SURVEY, quarantine=path.with_name("bad.jsonl"))
        else:
            Local(threads=1).tally(path, SURVEY)
    except FormatError:
        pass
    seconds = time.process_time() - began
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": seconds, "megabytes": (after - before) / 1024, "bytes": path.stat().st_size}


def _apart(work: Callable[[], Any]) -> Any:
    """The result of `work` in its own process, so that its memory is measured separately."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=lambda: there.send(work()))
    process.start()
    result = here.recv()
    process.join()
    return result


def _measure(name: str) -> dict[str, Any]:
    make, smallest, quarantine = CASES[name]
    found = []
    for n in (smallest, 4 * smallest, 16 * smallest):
        with tempfile.TemporaryDirectory() as folder:
            path = _apart(partial(make, Path(folder), n))
            found.append({"rows": n, **_apart(partial(_read, path, quarantine))})
    # Parquet's nulls take no bytes: there the rows are what is given.
    key = "rows" if name.startswith("Parquet") and "null" in name else "bytes"
    slope = math.log(found[2]["seconds"] / found[1]["seconds"]) / math.log(found[2][key] / found[1][key])
    return {"slope": round(slope, 2), "against": key, "runs": found}


def _warm() -> None:
    """Kernels are compiled before any clock starts."""
    with tempfile.TemporaryDirectory() as folder:
        Local(threads=1).tally(_good("arrow")(Path(folder), 1000), SURVEY)
        Local(threads=1).tally(_good("parquet")(Path(folder), 1000), SURVEY)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--case", choices=list(CASES), action="append", help="repeat for several")
    options = parser.parse_args()
    _warm()
    results = {}
    print("| file | bytes | rows or lines | seconds | slope | MB above start |\n|---|---|---|---|---|---|")
    for name in options.case or CASES:
        results[name] = found = _measure(name)
        last = found["runs"][-1]
        print(
            f"| {name} | {last['bytes']:,.0f} | {last['rows']:,} | {last['seconds']:.2f} | "
            f"{found['slope']:.2f} | {max(run['megabytes'] for run in found['runs']):.0f} |",
            flush=True,
        )
    if options.output is not None:
        options.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
