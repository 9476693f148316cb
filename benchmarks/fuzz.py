"""The long run of the fuzzers: every reader, in its own process, which may crash or hang.

    python benchmarks/fuzz.py --mutants 1000000 --minutes 20 --output benchmarks/results/fuzz.json

A mutant that ends its process by a signal, takes more than a minute of processor time, raises anything but the
package's own errors, or comes to a wrong count is written down with its seed, and the run goes on. The output is
written again every half minute. `--target json --seed 17 --once` runs one seed again in this process.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from fuzzing import documents, reports

__all__ = ["TARGETS", "run_seed"]

Fuzz = Callable[[Random, Path], int]
TARGETS: dict[str, tuple[Fuzz, float]] = {
    "json": (reports.fuzz_json, 0.60),
    "parquet": (reports.fuzz_parquet, 0.12),
    "arrow": (reports.fuzz_arrow, 0.12),
    "tables": (reports.fuzz_tables, 0.01),
    "survey": (documents.fuzz_survey, 0.03),
    "tally": (documents.fuzz_tally, 0.06),
    "ledger": (documents.fuzz_ledger, 0.03),
    "csv": (documents.fuzz_csv, 0.03),
}
"""Each fuzzer, and its share of the mutants."""

_SECONDS = 60.0
_SCRATCH = Path("/dev/shm")


def run_seed(target: str, seed: int, folder: Path) -> int:
    """Run one seed; how many mutants it made."""
    return TARGETS[target][0](Random(f"{target}-{seed}"), folder)


def _work(targets: list[str], done: Counter[str], seed: int, most: int, stop: float) -> None:
    """In the process of the fuzzers: seeds in order, each printed before and after."""
    faulthandler.enable()
    base = str(_SCRATCH) if _SCRATCH.is_dir() else None
    with tempfile.TemporaryDirectory(dir=base) as folder:
        while done.total() < most and time.time() < stop:
            target = min(targets, key=lambda name: done[name] / TARGETS[name][1])
            print(f"begin {target} {seed}", flush=True)
            n = 1
            try:
                n = run_seed(target, seed, Path(folder))
            except BaseException as error:
                fault = f"{type(error).__name__}: {error}"[:300]
                print(f"fault {json.dumps(fault)}", flush=True)
            print(f"end {n}", flush=True)
            done[target] += n
            seed += 1


def _processor_seconds(pid: int) -> float:
    """What a process has used so far; wall-clock time if the system does not report it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return time.monotonic()


def _watch(
    targets: list[str], seed: int, most: int, stop: float, tell: Callable[[Counter[str], list[Any]], object]
) -> tuple[Counter[str], list[Any]]:
    """Run the fuzzers' process, and start it again behind a seed that ended it or hung."""
    done: Counter[str] = Counter()
    faults: list[Any] = []
    saved = time.time()
    while done.total() < most and time.time() < stop:
        target = "start"
        command = [sys.executable, __file__, "--work", json.dumps(done), "--seed", str(seed)]
        command += [f"--target={name}" for name in targets]
        command += ["--mutants", str(most), "--until", str(stop)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            since = _processor_seconds(process.pid)
            while True:
                ready, _, _ = select.select([process.stdout], [], [], 5.0)
                if not ready:
                    # A busy machine is no hang: what counts is the time that the processor spent.
                    if _processor_seconds(process.pid) - since > _SECONDS:
                        process.kill()
                        faults.append({"target": target, "seed": seed, "what": "hang"})
                        break
                    continue
                line = process.stdout.readline()
                since = _processor_seconds(process.pid)
                word, _, rest = line.strip().partition(" ")
                if not word:
                    break
                if word == "begin":
                    target, _, number = rest.partition(" ")
                    seed = int(number)
                elif word == "end":
                    done[target] += int(rest)
                    if time.time() - saved > 30:
                        tell(done, faults)
                        saved = time.time()
                else:
                    faults.append({"target": target, "seed": seed, "what": json.loads(rest)})
        if process.returncode not in (0, -9):
            faults.append({"target": target, "seed": seed, "what": f"exit {process.returncode}"})
        seed += 1
        print(done.total(), "mutants,", len(faults), "faults", flush=True)
    return done, faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", choices=sorted(TARGETS), action="append", help="repeat for several")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    targets = options.target or list(TARGETS)
    if options.work:
        done = Counter({name: int(n) for name, n in json.loads(options.work).items()})
        _work(targets, done, options.seed, options.mutants, options.until)
        return 0
    if options.once:
        with tempfile.TemporaryDirectory() as folder:
            print(run_seed(targets[0], options.seed, Path(folder)), "mutants")
        return 0

    def tell(done: Counter[str], faults: list[Any]) -> str:
        document = {
            "mutants": done.total(),
            "seed": options.seed,
            "by_target": dict(sorted(done.items())),
            "faults": faults,
            "kinds_of_fault": dict(Counter(fault["what"].partition(":")[0] for fault in faults)),
        }
        text = json.dumps(document, indent=1)
        if options.output is not None:
            options.output.write_text(text + "\n", encoding="utf-8")
        return text

    stop = time.time() + 60 * options.minutes
    done, faults = _watch(targets, options.seed, options.mutants, stop, tell)
    print(tell(done, faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
