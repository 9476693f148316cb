"""Speed of this checkout over that of another one, job by job, interleaved in one run.

    python benchmarks/against.py /path/to/other/checkout [--output FILE]

Each checkout has a process of its own that repeats one job on request. Jobs alternate between the two, and the
best of several turns counts, in processor time: the machine may be busy. "Reports" keeps the reports in memory, where
the checkout before the redesign did not compare values with their ranges; "file of reports" compares them in both.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

TURNS = 9


def jobs() -> dict[str, Callable[[], Any]]:
    """What is timed, by name; most take a few hundredths of a second."""
    import numpy as np
    import pyarrow as pa

    import hdr4me as hd

    rng = np.random.default_rng(1)
    n = 1_000_000
    numbers = rng.uniform(-1, 1, (n, 8))
    cities = pa.table({"city": pa.array(rng.integers(0, 100, n)).cast(pa.string())})
    local = hd.engines.Local(threads=1)
    survey_of: Callable[..., Any] = hd.Survey
    sampled = next(name for name in signature(hd.Survey).parameters if name.endswith("sampled"))
    schema = hd.Schema([hd.Numeric(f"x{j}", -1, 1) for j in range(8)])
    labels = hd.Schema([hd.Categorical("city", [str(i) for i in range(100)])])
    surveys = {
        "numbers": (survey_of(schema, epsilon=2.0, mechanism="piecewise", **{sampled: 4}), numbers),
        "one of 8": (survey_of(schema, epsilon=2.0, mechanism="piecewise", **{sampled: 1}), numbers),
        "optimal": (hd.Survey(schema, epsilon=1.0), numbers),
        "unary": (hd.Survey(labels, epsilon=1.0, categorical="oue"), cities.slice(0, n // 4)),
        "subset": (hd.Survey(labels, epsilon=1.0, categorical="subset"), cities),
        "projective": (hd.Survey(labels, epsilon=1.0, categorical="projective"), cities),
    }
    found: dict[str, Callable[[], Any]] = {}
    folder = tempfile.TemporaryDirectory()
    for name in ("numbers", "one of 8"):

        def write(survey: Any = surveys[name][0], target: Any = Path(folder.name) / f"{name}.arrow") -> None:
            local.perturb(numbers, survey, target)

        found[f"{name}: file of reports"] = write
    for name, (survey, records) in surveys.items():
        blocks = list(local.reports(records, survey))

        def perturb(survey: Any = survey, records: Any = records) -> None:
            for _ in local.reports(records, survey):
                pass

        def count(survey: Any = survey, blocks: Any = blocks) -> None:
            tally = hd.Tally(survey)
            for block in blocks:
                tally.add_block(block)

        found[f"{name}: reports"], found[f"{name}: tally"] = perturb, count
    client = hd.Client(surveys["numbers"][0])
    record = {f"x{j}": 0.25 for j in range(8)}
    found["one device: 500 reports"] = lambda: [client.report(record) for _ in range(500)]
    law = hd.mechanism("piecewise", epsilon=1.0)
    found["simulation"] = lambda: hd.simulate(law, numbers, seed=1)
    atexit.register(folder.cleanup)
    return found


def worker() -> None:
    """Answer each line, the name of a job, with the processor time that it took; an empty line gets the names."""
    known = jobs()
    for job in known.values():
        job()
    for line in sys.stdin:
        name = line.strip()
        if not name:
            print(json.dumps(list(known)), flush=True)
            continue
        start = time.process_time()
        known[name]()
        print(time.process_time() - start, flush=True)


def opened(root: Path) -> subprocess.Popen[str]:
    """The worker of one checkout."""
    return subprocess.Popen(
        [sys.executable, __file__, "--worker"],
        env={**os.environ, "PYTHONPATH": str(root / "src")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def asked(process: subprocess.Popen[str], line: str) -> Any:
    """One question to a worker."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def main() -> None:
    """Print, and write, the ratio of both checkouts for each job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, nargs="?")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--worker", action="store_true")
    given = parser.parse_args()
    if given.worker:
        worker()
        return
    ours, theirs = opened(Path(__file__).parents[1]), opened(given.other)
    ratios = {}
    for name in asked(ours, ""):
        times = [(asked(ours, name), asked(theirs, name)) for _ in range(TURNS)]
        mine, other = (min(column) for column in zip(*times, strict=True))
        ratios[name] = round(mine / other, 3)
        print(f"{name:28} {mine * 1e3:8.1f} ms {other * 1e3:8.1f} ms   ratio {mine / other:.3f}", flush=True)
    if given.output:
        given.output.write_text(json.dumps(ratios, indent=1) + "\n", encoding="utf-8")
    for process in (ours, theirs):
        process.terminate()


if __name__ == "__main__":
    main()
