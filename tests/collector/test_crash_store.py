"""The short version of `benchmarks/collector_crash.py`: writers are killed, and nothing is lost or counted twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "collector_crash.py"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks")


def run(*options: str) -> dict[str, Any]:
    command = [sys.executable, str(SCRIPT), "--cycles", "6", "--longest", "0.1", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = json.loads(done.stdout)
    return found


def check(found: dict[str, Any]) -> None:
    assert (found["cycles"], found["lost"], found["twice"]) == (6, 0, 0)
    assert found["tally_is_exact"]
    assert found["acknowledged"] > 0
    assert found["stored"] >= found["acknowledged"]


def test_sqlite_loses_nothing_when_it_is_killed() -> None:
    check(run("--store", "sqlite"))


@pytest.mark.parametrize("writers", [1, 2])
def test_postgres_loses_nothing_when_its_writers_are_killed(database: str, writers: int) -> None:
    check(run("--store", "postgres", "--database", database, "--writers", str(writers)))
