"""For every test and doctest: where designed tables are kept, how many threads there are, what is not traced."""

import os
import sys
from pathlib import Path
from typing import Any

# Designed tables are kept inside the checkout, never in the user's own cache.
os.environ["HDR4ME_CACHE_DIR"] = str(Path(__file__).parent / ".pytest_cache" / "designs")
# Small matrices gain nothing from threads, and the threads of several test processes wait for one another by spinning.
# OpenBLAS reads this number when numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from numba.core.dispatcher import Dispatcher


def _compile_untraced(self: Any, *arguments: Any, **options: Any) -> Any:
    """Compile with no trace function: coverage measures hdr4me, and the compiler is a large Python program."""
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        return _compile(self, *arguments, **options)
    finally:
        sys.settrace(tracer)


_compile = Dispatcher.compile
Dispatcher.compile = _compile_untraced


# Long tests of these packages repeat what short ones run once: coverage does not trace them, nor the pages.
REPEATED = (
    "auditing",
    "channels",
    "comparison",
    "contracts",
    "framework",
    "kernels",
    "mechanisms",
    "planner",
)
REPEATED += ("recalibration", "simulation", "statistics")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what tests/slow.txt lists, and all tests with Spark."""
    root = Path(__file__).parent
    lines = (root / "tests" / "slow.txt").read_text(encoding="utf-8").splitlines()
    listed = frozenset(line for line in lines if not line.startswith("#"))
    files = tuple(line for line in listed if "::" not in line)
    for item in items:
        name = item.nodeid.partition("[")[0]
        spark = item.get_closest_marker("spark") or "spark_session" in getattr(item, "fixturenames", ())
        slow = bool(spark) or name in listed or name.startswith(files)
        if slow:
            item.add_marker("slow")
        if name.startswith("docs/") or (slow and name.split("/")[1] in REPEATED):
            item.add_marker("no_cover")
