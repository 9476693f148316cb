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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Pages of the documentation run what tests run too: coverage does not trace them."""
    pages = Path(__file__).parent / "docs"
    for item in items:
        if pages in item.path.parents:
            item.add_marker("no_cover")
