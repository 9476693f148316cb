"""How time and memory grow: slopes on log-log axes, and the peak of memory at ten times the users."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from bench.clock import Task, cpu, interleave, slope
from bench.suites import Suite
from hdr4me.engines.general import plan_of
from hdr4me.engines.local import Local
from hdr4me.io import write_reports
from hdr4me.io.columns import from_matrix
from hdr4me.kernels.exact.perturb import perturb
from hdr4me.survey import Numeric, Schema, Survey
from hdr4me.tally import Tally

__all__ = ["memory", "time_growth"]


def time_growth(rounds: int, folder: Path) -> Suite:
    """Exponents of time in n, m and d, each alone; 1 is linear, 0 is no growth."""
    suite = Suite("Growth of time (exponents)", "")
    plans = {
        "n": [(n, 64, 8) for n in (500_000, 1_000_000, 2_000_000, 4_000_000)],
        "m": [(300_000, 2048, m) for m in (16, 32, 64, 128)],
        "d": [(200_000, d, 8) for d in (128, 256, 512, 1024, 2048)],
    }
    exponents: dict[str, dict[str, float]] = {"perturb": {}, "tally of a file": {}, "counting in memory": {}}
    for axis, sizes in plans.items():
        tasks: dict[str, Task] = {}
        for size in sizes:
            tasks |= {f"{what} {size}": task for what, task in _tasks(*size, folder).items()}
        best = interleave(tasks, rounds)
        at = [float({"n": n, "d": d, "m": m}[axis]) for n, d, m in sizes]
        for what, found in exponents.items():
            found[axis] = slope(at, [best[f"{what} {size}"] for size in sizes])
        for path in folder.glob("*-*-*.parquet"):
            path.unlink()
    for what, found in exponents.items():
        for axis, exponent in found.items():
            suite.rates[f"{what}, exponent in {axis}"] = exponent
    return suite


def _tasks(n: int, d: int, m: int, folder: Path) -> dict[str, Task]:
    survey = Survey(Schema(Numeric(f"x{j}", -1, 1) for j in range(d)), epsilon=float(m), sampled=m)
    # One record read again and again: the kernel's own work, not the size of the caches its input falls out of.
    values = np.broadcast_to(np.zeros(d, np.float32), (n, d))
    source, plan = from_matrix(values, survey), plan_of(survey)
    reports = perturb(source.columns, plan, n)
    path = folder / f"{n}-{d}-{m}.parquet"
    with write_reports(path, survey) as writer:
        writer.write(reports)
    out = np.empty_like(reports)
    counted, engine = Tally(survey), Local(threads=1)
    return {
        "perturb": cpu(lambda: perturb(source.columns, plan, n, out=out)),
        "tally of a file": cpu(lambda: engine.tally(path, survey)),
        "counting in memory": cpu(lambda: counted.add_block(reports)),
    }


_SCRIPT = """
import sys, threading, time
from pathlib import Path
from hdr4me.survey import Survey
what, survey_path, source, target = sys.argv[1:]
survey = Survey.load(survey_path)
def anonymous():
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
from hdr4me.engines import Local
from hdr4me.simulation import simulate
from hdr4me.mechanisms import mechanism
import numpy as np
engine = Local(2)
small = np.zeros((1000, len(survey.schema)))
list(engine.reports(small, survey))
simulate(mechanism("piecewise", epsilon=1.0), small, seed=1, sampled=small.shape[1])
before, peak, going = anonymous(), 0.0, True
def watch():
    global peak
    while going:
        peak = max(peak, anonymous()); time.sleep(0.002)
thread = threading.Thread(target=watch); thread.start()
if what == "perturb": engine.perturb(source, survey, target)
elif what == "tally": engine.tally([source], survey)
else:
    data = np.load(source, mmap_mode="r")
    simulate(mechanism("piecewise", epsilon=1.0), data, seed=1, sampled=data.shape[1], threads=2)
going = False; thread.join()
print(peak - before)
"""


def memory(folder: Path, users: tuple[int, ...]) -> dict[str, dict[int, float]]:
    """Peak of memory of its own (MB, above a warmed-up process) for perturb, tally and simulate, by number of users."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    d = 8
    survey = Survey(Schema(Numeric(f"x{j}", -1, 1) for j in range(d)), epsilon=2.0, sampled=2)
    survey.save(folder / "survey.json")
    found: dict[str, dict[int, float]] = {"perturb": {}, "tally": {}, "simulate": {}}
    for n in users:
        records, reports, matrix = folder / "r.parquet", folder / "out.parquet", folder / "m.npy"
        table = pa.table({f"x{j}": np.zeros(100_000, np.float32) + j / d for j in range(d)})
        with pq.ParquetWriter(records, table.schema, use_dictionary=False, compression="none") as writer:
            for _ in range(n // 100_000):
                writer.write_table(table)
        np.lib.format.open_memmap(matrix, "w+", np.float32, (n, d)).flush()
        for what, source in (("perturb", records), ("tally", reports), ("simulate", matrix)):
            found[what][n] = _peak(what, folder / "survey.json", source, reports)
    return found


def _peak(what: str, survey: Path, source: Path, target: Path) -> float:
    arguments: list[Any] = [sys.executable, "-c", _SCRIPT, what, survey, source, target]
    done = subprocess.run(list(map(str, arguments)), check=True, capture_output=True, text=True)
    return float(done.stdout)
