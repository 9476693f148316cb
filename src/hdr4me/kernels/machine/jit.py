"""Compilation of kernels: without the GIL, cached on disk if possible, and never from stale code.

numba reuses compiled code while the file that defines a kernel is unchanged, but a kernel contains the kernels that it
calls, also from other files. Therefore the cache key includes a digest of all kernel sources: a change of one file
invalidates all compiled code.

numba raises an error if it has no writable folder, or if a file of its cache is damaged. Here kernels are then compiled
in each process, which takes some seconds, and damaged files are replaced. For a read-only installation, set
NUMBA_CACHE_DIR to a writable folder.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import caching


def sources_digest() -> str:
    """A digest of every source file of the kernels, in all their folders."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


_DIGEST = sources_digest()


_FunctionCache: Any = caching.FunctionCache  # numba has no types


class _Cache(_FunctionCache):  # type: ignore[misc]
    """Numba's cache, in which a file that cannot be read or written is treated as missing."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        index = self._cache_file
        index._version = f"{index._version} {_DIGEST}"  # checked before anything is unpickled

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # unpickling a damaged file can raise anything
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception:
            with contextlib.suppress(Exception):  # the index may be damaged: recreate it, or use no cache
                self.flush()
                super().save_overload(sig, data)


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function of plain arrays when it is first called; options are numba's.

    Division by zero raises no error, because a check would prevent the vectorization of loops.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = njit(nogil=True, error_model="numpy", **options)(function)
        with contextlib.suppress(RuntimeError):  # there is no folder for compiled code
            dispatcher._cache = _Cache(function)
        return dispatcher

    return decorate
