"""How every kernel is compiled: without the GIL, cached on disk, and never from stale code.

numba reuses compiled code as long as the file of the kernel is unchanged. But a kernel contains the kernels that it
calls, also those of other files. So a digest of all files of `kernels` is part of the cache's version: changing one of
them invalidates the compiled code of all.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit

__all__ = ["kernel", "sources_stamp"]


def sources_stamp() -> str:
    """A digest of every source file of `kernels`, in all of its folders."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


_STAMP = sources_stamp()


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function of plain arrays when it is first called; options are numba's.

    Division follows the processor, not Python: checks for zero would keep loops from being vectorised.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = njit(nogil=True, cache=True, error_model="numpy", **options)(function)
        index = dispatcher._cache._cache_file
        index._version = f"{index._version} {_STAMP}"  # numba compares it before it loads anything
        return dispatcher

    return decorate
