"""For every test and doctest: designed tables are kept inside the checkout, and compilation is not traced."""

import os
import sys
from pathlib import Path
from typing import Any

from numba.core.dispatcher import Dispatcher

os.environ["HDR4ME_CACHE_DIR"] = str(Path(__file__).parent / ".pytest_cache" / "designs")


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
