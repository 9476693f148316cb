"""The stages between a position and a report's bytes: `point` at an alias entry, and `finish` the slot.

A value's *position* is its row of the stacked alias tables in 16.16 fixed point. Per value one 16-bit word rounds
the position to a row (adding it to the fraction carries with probability fraction / 2^16, exactly) and one 32-bit
word picks the cell from that row's alias entries. Both are always drawn, and choices are selections, not
branches, so neither the time nor the randomness used depends on the value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from hdr4me.kernels.machine.jit import kernel
from hdr4me.kernels.machine.vectors import BYTES, HALVES, I32, I64, WIDTH, WORDS, Emitter

__all__ = ["finish", "finish_many", "point"]


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


def _entries(e: Emitter, table: Any, cells: Any) -> Any:
    """Load the sixteen entries whose indices lie at `cells`, two indices per load: faster than a gather."""
    b, entries = e.b, ir.Constant(WORDS, ir.Undefined)
    start = b.inttoptr(table, I32.as_pointer())
    for k in range(WIDTH // 2):
        pair = e.load(cells, I64, 8 * k)
        both = b.and_(pair, ir.Constant(I64, 0xFFFFFFFF)), b.lshr(pair, ir.Constant(I64, 32))
        for half, index in enumerate(both):
            entry = b.load(b.gep(start, [index], source_etype=I32), typ=I32)
            entries = b.insert_element(entries, entry, ir.Constant(I32, 2 * k + half))
    return entries


def _finish(
    typingctx: Any, n: Any, cells: Any, dims: Any, words: Any, table: Any, bits: Any, out: Any
) -> Any:
    """Emit the loop over sixteen values at a time: load their entries, select the codes, and write slots of 3 bytes."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        n, cells, dims, words, table, bits, out = args
        b, e = builder, Emitter(builder)
        mask = e.low_bits(bits)
        rest, above = b.not_(mask), ir.Constant(WORDS, [16] * WIDTH)

        def step(index: Any) -> None:
            word, entry = e.load(e.at(words, index, 4), WORDS), _entries(e, table, e.at(cells, index, 4))
            code = b.and_(b.select(b.icmp_unsigned("<", word, b.and_(entry, rest)), word, entry), mask)
            dim = b.zext(e.load(e.at(dims, index, 2), HALVES), WORDS)
            slots = b.bitcast(b.or_(dim, b.shl(code, above)), BYTES)
            order = [4 * (k // 3) + k % 3 for k in range(3 * WIDTH)]
            packed = e.shuffle(slots, slots, [*order, *order[:WIDTH]])
            e.store(e.shuffle(packed, packed, list(range(3 * WIDTH))), e.at(out, index, 3))

        e.walk(n, step)
        return context.get_dummy_value()

    return types.void(*[types.uint64] * 7), codegen


finish_many: Any = intrinsic(_finish)


@kernel()
def finish(cells, dims, words, table, bits, out):  # type: ignore[no-untyped-def]
    """Write slots of three bytes (two of the dimension, one of the code) from indices of alias entries.

    The code is the entry's own column if the word is below the entry's threshold, else the entry's other cell.
    """
    n = cells.size
    if n >= WIDTH:
        finish_many(
            np.uint64(n),
            np.uint64(cells.ctypes.data),
            np.uint64(dims.ctypes.data),
            np.uint64(words.ctypes.data),
            np.uint64(table.ctypes.data),
            np.uint64(bits),
            np.uint64(out.ctypes.data),
        )
    else:
        mask = np.uint32((1 << bits) - 1)
        for i in range(n):
            word, entry = words[i], table[np.uint64(cells[i])]
            out[3 * i] = np.uint8(dims[i])
            out[3 * i + 1] = np.uint8(dims[i] >> np.uint16(8))
            out[3 * i + 2] = np.uint8((word if word < (entry & ~mask) else entry) & mask)
