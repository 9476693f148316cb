"""Mixtures of two intervals, drawn and summed in one pass: the most used loop, of Piecewise and Square wave.

For eight columns at a time, all rows of a group are drawn, t* = a + b·u + c·t with (a, b, c) of the interval that u
falls in, and added to the columns' sums and sums of squares, which stay in registers. The draws are those of `draws`,
but they are not written to memory in between.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from hdr4me.kernels.machine.jit import kernel

__all__ = ["WIDTH", "sum_two_intervals", "unfold"]

WIDTH = 8
"""Columns at once."""

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_WORDS, _DOUBLES = ir.VectorType(_I64, WIDTH), ir.VectorType(ir.DoubleType(), WIDTH)
_SINGLES = ir.VectorType(ir.FloatType(), WIDTH)


def _eight(single: bool) -> Any:
    """The intrinsic for true values in doubles, or in singles: addresses, rows, columns, seven parameters."""

    def add(
        typingctx: Any, t: Any, words: Any, rows: Any, d: Any, sums: Any, squares: Any,
        a0: Any, b0: Any, c0: Any, a1: Any, b1: Any, c1: Any, end: Any,
    ) -> Any:  # fmt: skip
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            b = builder
            at_t, at_words, rows, d, at_sums, at_squares = args[:6]

            def place(address: Any, kind: Any) -> Any:
                return b.inttoptr(address, kind.as_pointer())

            def splat(value: Any) -> Any:
                undefined = ir.Constant(_DOUBLES, ir.Undefined)
                first = b.insert_element(undefined, value, ir.Constant(_I32, 0))
                return b.shuffle_vector(
                    first, undefined, ir.Constant(ir.VectorType(_I32, WIDTH), [0] * WIDTH)
                )

            a0, b0, c0, a1, b1, c1, end = (splat(value) for value in args[6:])
            start = [b.load(place(x, _DOUBLES), align=8, typ=_DOUBLES) for x in (at_sums, at_squares)]
            before = b.block
            loop, after = b.append_basic_block("rows"), b.append_basic_block("done")
            b.branch(loop)
            b.position_at_end(loop)
            index, row_t, row_words = (b.phi(_I64) for _ in range(3))
            total, square = b.phi(_DOUBLES), b.phi(_DOUBLES)
            if single:
                t = b.fpext(b.load(place(row_t, _SINGLES), align=4, typ=_SINGLES), _DOUBLES)
            else:
                t = b.load(place(row_t, _DOUBLES), align=8, typ=_DOUBLES)
            word = b.load(place(row_words, _WORDS), align=8, typ=_WORDS)
            fraction = b.lshr(word, ir.Constant(_WORDS, [12] * WIDTH))
            u = b.bitcast(b.or_(fraction, ir.Constant(_WORDS, [0x3FF << 52] * WIDTH)), _DOUBLES)
            first = b.fcmp_ordered("<", u, end)
            level = b.fmul(b.select(first, c0, c1), t, flags=("contract",))
            level = b.fadd(b.select(first, a0, a1), level, flags=("contract",))
            x = b.fadd(level, b.fmul(b.select(first, b0, b1), u, flags=("contract",)), flags=("contract",))
            new_total = b.fadd(total, x)
            new_square = b.fadd(square, b.fmul(x, x, flags=("contract",)), flags=("contract",))
            following = b.add(index, ir.Constant(_I64, 1))
            step_t = b.mul(d, ir.Constant(_I64, 4 if single else 8))
            steps = (
                (index, ir.Constant(_I64, 0), following),
                (row_t, at_t, b.add(row_t, step_t)),
                (row_words, at_words, b.add(row_words, b.mul(d, ir.Constant(_I64, 8)))),
                (total, start[0], new_total),
                (square, start[1], new_square),
            )
            for phi, initial, new in steps:
                phi.add_incoming(initial, before)
                phi.add_incoming(new, loop)
            b.cbranch(b.icmp_unsigned("<", following, rows), loop, after)
            b.position_at_end(after)
            b.store(new_total, place(at_sums, _DOUBLES), align=8)
            b.store(new_square, place(at_squares, _DOUBLES), align=8)
            return context.get_dummy_value()

        return types.void(*[types.uint64] * 6, *[types.float64] * 7), codegen

    return intrinsic(add)


_add_doubles, _add_singles = _eight(single=False), _eight(single=True)


@kernel()
def sum_two_intervals(t, words, law, d, sums, squares):  # type: ignore[no-untyped-def]
    """Add the reports on flat rows t of d >= WIDTH columns to sums and squares, block by block of WIDTH columns.

    Both have room for whole blocks. The last block ends with the last column, so it may hold columns of the block
    before a second time: `unfold` leaves them out.
    """
    rows = t.size // d
    if rows == 0:
        return
    item = t.itemsize
    for block in range((d + WIDTH - 1) // WIDTH):
        j = min(block * WIDTH, d - WIDTH)
        place = (
            np.uint64(t.ctypes.data) + np.uint64(item * j),
            np.uint64(words.ctypes.data) + np.uint64(8 * j),
            np.uint64(rows),
            np.uint64(d),
            np.uint64(sums.ctypes.data) + np.uint64(8 * WIDTH * block),
            np.uint64(squares.ctypes.data) + np.uint64(8 * WIDTH * block),
            law[0, 0],
            law[0, 1],
            law[0, 2],
            law[1, 0],
            law[1, 1],
            law[1, 2],
            law[0, 3],
        )
        if item == 4:
            _add_singles(*place)
        else:
            _add_doubles(*place)


@kernel()
def unfold(blocks, out):  # type: ignore[no-untyped-def]
    """Copy d columns out of their blocks."""
    d = out.size
    for j in range(d):
        last = j >= (d - 1) // WIDTH * WIDTH
        out[j] = blocks[blocks.size - d + j if last else j]
