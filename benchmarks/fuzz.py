"""The long run of the fuzzers: every reader, each in a process of its own that may die or hang without harm.

    python benchmarks/fuzz.py --mutants 1000000 --minutes 20 --output benchmarks/results/fuzz.json

A mutant that ends its process by a signal, takes longer than a minute, raises anything but the package's own errors,
or comes to a wrong count is written down with its seed, and the run goes on. `--target json --seed 17 --once` runs one
seed again in this process.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
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


def _work(target: str, seed: int, most: int, stop: float) -> None:
    """In the process of a fuzzer: seeds one after the other, each told before and after."""
    faulthandler.enable()
    base = str(_SCRATCH) if _SCRATCH.is_dir() else None
    with tempfile.TemporaryDirectory(dir=base) as folder:
        done = 0
        while done < most and time.time() < stop:
            print(f"begin {seed}", flush=True)
            try:
                n = run_seed(target, seed, Path(folder))
                print(f"end {n}", flush=True)
            except BaseException as error:
                n = 1
                told = f"{type(error).__name__}: {error}"[:300]
                print(f"fault {json.dumps(told)}", flush=True)
            done += n
            seed += 1


def _watch(target: str, seed: int, most: int, stop: float, found: dict[str, Any]) -> None:
    """Run a fuzzer's process, and start it again behind a seed that ended it or hung."""
    while found["mutants"] < most and time.time() < stop:
        command = [sys.executable, __file__, "--work", target, "--seed", str(seed)]
        command += ["--mutants", str(most - found["mutants"]), "--until", str(stop)]
        began = time.time()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            while True:
                ready, _, _ = select.select([process.stdout], [], [], _SECONDS)
                if not ready:
                    process.kill()
                    found["faults"].append({"target": target, "seed": seed, "what": "hang"})
                    seed += 1
                    break
                line = process.stdout.readline()
                if not line:
                    break
                word, _, rest = line.strip().partition(" ")
                if word == "begin":
                    seed = int(rest)
                elif word == "end":
                    found["mutants"] += int(rest)
                    seed += 1
                elif word == "fault":
                    found["mutants"] += 1
                    found["faults"].append({"target": target, "seed": seed, "what": json.loads(rest)})
                    seed += 1
        if process.returncode and process.returncode != -9:
            found["faults"].append({"target": target, "seed": seed, "what": f"exit {process.returncode}"})
            seed += 1
        found["seconds"] = round(found.get("seconds", 0.0) + time.time() - began, 1)


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
    if options.work:
        _work(options.work, options.seed, options.mutants, options.until)
        return 0
    if options.once:
        with tempfile.TemporaryDirectory() as folder:
            print(run_seed(options.target[0], options.seed, Path(folder)), "mutants")
        return 0
    results: dict[str, Any] = {}
    began, total = time.time(), options.minutes * 60
    chosen = options.target or list(TARGETS)
    shares = {name: TARGETS[name][1] for name in chosen}
    for name in chosen:
        found: dict[str, Any] = {"mutants": 0, "faults": []}
        share = shares[name] / sum(shares.values())
        # What is left of the time is shared among what is left of the fuzzers.
        left = total - (time.time() - began)
        stop = time.time() + left / (len(chosen) - chosen.index(name))
        _watch(name, options.seed, max(1, int(options.mutants * share)), stop, found)
        results[name] = found
        print(name, found["mutants"], "mutants,", len(found["faults"]), "faults", flush=True)
    faults = [fault for found in results.values() for fault in found["faults"]]
    document = {
        "mutants": sum(found["mutants"] for found in results.values()),
        "seed": options.seed,
        "by_target": {name: found["mutants"] for name, found in results.items()},
        "seconds": {name: found.get("seconds", 0.0) for name, found in results.items()},
        "faults": faults,
        "kinds_of_fault": dict(Counter(fault["what"].partition(":")[0] for fault in faults)),
    }
    print(json.dumps(document, indent=1))
    if options.output is not None:
        options.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
