"""Counts the source files of hdr4me in which a command runs code: how much of the package a reader must follow.

    python benchmarks/modules.py

A file counts if a function, method or class body of it is executed; the statements of a module that is only imported
do not. The HTTP report is the second one, after everything has been loaded.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = str(ROOT / "src" / "hdr4me")
PREPARED = ("survey", "perturb", "tally")
JOBS = ("estimate", "perturb", "tally", "plan", "http")

seen: set[str] = set()

SCHEMA = """
[[dimensions]]
name = "age"
type = "numeric"
low = 0
high = 120

[[dimensions]]
name = "smoker"
type = "categorical"
categories = ["never", "former", "current"]
"""


def arguments(job: str, folder: Path) -> list[str]:
    """A command with small files in `folder`."""
    survey, reports, tally = folder / "survey.json", folder / "reports.parquet", folder / "day.tally"
    found: dict[str, list[Any]] = {
        "survey": [folder / "schema.toml", "--epsilon", 2, "--output", survey],
        "perturb": [survey, folder / "records.csv", "--output", reports],
        "tally": [survey, reports, "--output", tally],
        "estimate": [tally],
        "plan": ["--users", 150_000, "--dims", 750, "--epsilon", 1],
    }
    return [job, *map(str, found[job])]


def post(folder: Path) -> set[str]:
    """The files that the second of two reports runs in a collector with an SQLite store."""
    sys.path.insert(0, str(ROOT / "tests" / "plugins"))
    from datetime import UTC, datetime

    from collector_service import Service, serving

    import hdr4me as hd
    from hdr4me.collector import open_store
    from hdr4me.collector.stores.protocol import ANYONE

    survey = hd.Survey.load(folder / "survey.json")
    store = open_store(folder / "reports.db")
    store.open_round(survey, now=datetime.now(UTC))
    store.add_token(ANYONE, "send")
    bodies = [hd.Client(survey).report({"age": 30, "smoker": "never"}).to_json().encode() for _ in range(2)]

    async def work(service: Service) -> set[str]:
        for i, body in enumerate(bodies):
            seen.clear()
            headers = {"content-type": "application/json", "idempotency-key": f"{i:032x}"}
            answer = await service.call("POST", "/v1/rounds/1/reports", body, headers)
            assert answer.status == 200, answer
        return set(seen)

    found: set[str] = serving(store, work)
    store.close()
    return found


def watch(frame: FrameType, event: str, argument: Any) -> None:
    """Note the file of every call."""
    code = frame.f_code
    if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(PACKAGE):
        seen.add(code.co_filename)


def run(job: str, folder: Path) -> int:
    """Do a job in this process, and print the files."""
    threading.setprofile(watch)
    sys.setprofile(watch)
    from hdr4me.cli import main

    code = 0
    if job == "http":
        found = post(folder)
    else:
        code = main(arguments(job, folder))
        found = set(seen)
    sys.setprofile(None)
    print("\n".join(sorted(found)), file=sys.stderr)
    return code


def files(job: str, folder: Path) -> list[str]:
    """The files that a job runs, in a process of its own; `folder` was made by `prepare`."""
    done = subprocess.run(
        [sys.executable, __file__, job, str(folder)], check=True, capture_output=True, text=True
    )
    return [line for line in done.stderr.splitlines() if line.startswith(PACKAGE)]


def prepare(folder: Path) -> None:
    """The files that the commands read."""
    (folder / "schema.toml").write_text(SCHEMA)
    (folder / "records.csv").write_text("age,smoker\n" + "30,never\n44,former\n62,current\n" * 1000)
    for job in PREPARED:
        files(job, folder)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        sys.exit(run(sys.argv[1], Path(sys.argv[2])))
    with tempfile.TemporaryDirectory() as made:
        prepare(Path(made))
        for name in JOBS:
            print(f"{name:10} {len(files(name, Path(made))):4}")
