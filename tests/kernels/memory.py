"""Arrays that end where memory ends: a read or write beyond them ends the process."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

__all__ = ["at_the_end_of_memory"]


def at_the_end_of_memory(array: NDArray[Any]) -> NDArray[Any]:
    """A copy that is followed by a page which may be neither read nor written."""
    page = mmap.PAGESIZE
    pages = -(-array.nbytes // page) * page
    buffer = mmap.mmap(-1, pages + page)
    protect = getattr(ctypes.CDLL(None), "mprotect", None)
    if protect is None:
        pytest.skip("memory cannot be protected here")
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    data = np.frombuffer(buffer, np.uint8)
    assert protect(data.ctypes.data + pages, page, 0) == 0
    copy = data[pages - array.nbytes : pages].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
