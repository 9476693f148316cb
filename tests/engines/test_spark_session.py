"""Spark is never loaded unasked, and what is missing is named with its remedy."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hdr4me.engines import open_session
from hdr4me.engines.spark_session import require_pyspark
from hdr4me.errors import InvalidInput, MissingDependency


def test_nothing_loads_pyspark_unasked() -> None:
    code = (
        "import sys, hdr4me; from hdr4me.engines import Local, Spark, spark, open_session, committed_tally; "
        "sys.exit(any(name.partition('.')[0] in ('pyspark', 'py4j') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_pyspark_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    for call in (require_pyspark, open_session):
        with pytest.raises(MissingDependency, match=r"pip install -e '\.\[spark\]'"):
            call()


def test_without_java_the_error_says_so() -> None:
    code = (
        "from hdr4me.engines import open_session\n"
        "from hdr4me.errors import MissingDependency\n"
        "try: open_session('local[1]')\n"
        "except MissingDependency as error: print(error)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PATH": "/usr/nowhere"}
    )
    assert "Java 17" in run.stdout


@pytest.mark.parametrize("master", ["", 7])
def test_a_master_is_a_url(master: object) -> None:
    with pytest.raises(InvalidInput, match="must be a Spark master URL"):
        open_session(master)  # type: ignore[arg-type]
