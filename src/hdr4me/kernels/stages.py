"""The stages between a position and a report byte, each a loop short enough for the compiler to vectorise.

A value's *position* is its row of the stacked alias tables in 16.16 fixed point. Per value one 16-bit word rounds
the position to a row (adding it to the fraction carries with probability fraction / 2^16, exactly) and one 32-bit
word picks the cell from that row's alias entries. Both are always drawn, and choices are selections, not
branches, so neither the time nor the randomness used depends on the value.

A loop that stores to one array and reads few others is vectorised behind cheap overlap checks; one big loop is not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdr4me.kernels.jit import kernel

__all__ = ["choose", "look_up", "pack", "point"]


@kernel()
def point(
    cells: NDArray[np.uint32],
    words: NDArray[np.uint32],
    halves: NDArray[np.uint16],
    bits: int,
) -> None:
    """Turn positions, in place, into indices of alias entries: the rounded row, and the word's column in it."""
    mask = np.uint32((1 << bits) - 1)
    shift = np.uint32(16 - bits)
    for i in range(cells.size):
        cells[i] = ((cells[i] + np.uint32(halves[i])) >> shift) & ~mask | (words[i] & mask)


@kernel()
def look_up(cells: NDArray[np.uint32], table: NDArray[np.uint32]) -> None:
    """Replace indices by the alias entries they point to."""
    for i in range(cells.size):
        cells[i] = table[np.uint64(cells[i])]


@kernel()
def choose(cells: NDArray[np.uint32], words: NDArray[np.uint32], bits: int, out: NDArray[np.uint8]) -> None:
    """The codes: the column itself when the word is below the entry's threshold, the entry's other cell if not."""
    mask = np.uint32((1 << bits) - 1)
    for i in range(cells.size):
        word = words[i]
        entry = cells[i]
        out[i] = np.uint8((word if word < (entry & ~mask) else entry) & mask)


@kernel()
def pack(
    low: NDArray[np.uint8], high: NDArray[np.uint8], codes: NDArray[np.uint8], out: NDArray[np.uint8]
) -> None:
    """Slots of three bytes: the dimension's two and the code."""
    for i in range(codes.size):
        out[3 * i] = low[i]
        out[3 * i + 1] = high[i]
        out[3 * i + 2] = codes[i]
