"""Compiled code is cached, and forgotten when any source of the room changes."""

from __future__ import annotations

from hdr4me.kernels.jit import kernel, sources_stamp
from hdr4me.kernels.subset import subset


def test_the_stamp_covers_the_room() -> None:
    """The one private name of numba that is used; if this fails after an upgrade, stale code can survive."""
    assert subset._cache._cache_file._source_stamp[1] == sources_stamp()


def test_division_is_the_processors() -> None:
    @kernel()
    def divide(a: float, b: float) -> float:
        return a / b

    assert divide(1.0, 0.0) == float("inf")
