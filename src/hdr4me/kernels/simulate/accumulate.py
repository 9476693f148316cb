"""Column sums and sums of squares of a block of rows, added in the rows' order.

The running sums of eight columns stay in vector registers while all rows pass: a plain loop would load and store them
for every value, at ten times the cost. Each column is added in the order of its rows, so the bits do not depend on
the width of the registers. `sum_two_intervals` is the most used loop, of Piecewise and Square wave: mixtures of two
intervals drawn and summed in one pass, t* = a + b·u + c·t with (a, b, c) of the interval that u falls in. The draws are
those of `draws`, but they are not written to memory in between.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from hdr4me.kernels.machine.jit import kernel

WIDTH = 8
"""Columns at once."""

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_WORDS, _DOUBLES = ir.VectorType(_I64, WIDTH), ir.VectorType(ir.DoubleType(), WIDTH)
_SINGLES = ir.VectorType(ir.FloatType(), WIDTH)


def _eight_columns(typingctx: Any, x: Any, rows: Any, stride: Any, sums: Any, squares: Any) -> Any:
    """Add eight columns of x (addresses; stride in bytes between rows, at least one row) to sums and squares."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x_address, n_rows, row_stride, sums_address, squares_address = args

        def at(address: Any) -> Any:
            return builder.inttoptr(address, _DOUBLES.as_pointer())

        before = builder.block
        loop, after = builder.append_basic_block("add"), builder.append_basic_block("added")
        first = [builder.load(at(a), align=8, typ=_DOUBLES) for a in (sums_address, squares_address)]
        builder.branch(loop)
        builder.position_at_end(loop)
        index, address = builder.phi(_I64), builder.phi(_I64)
        total, square = builder.phi(_DOUBLES), builder.phi(_DOUBLES)
        value = builder.load(at(address), align=8, typ=_DOUBLES)
        new_total = builder.fadd(total, value)
        new_square = builder.fadd(
            square, builder.fmul(value, value, flags=("contract",)), flags=("contract",)
        )
        following = builder.add(index, ir.Constant(_I64, 1))
        steps = (
            (index, ir.Constant(_I64, 0), following),
            (address, x_address, builder.add(address, row_stride)),
            (total, first[0], new_total),
            (square, first[1], new_square),
        )
        for phi, start, new in steps:
            phi.add_incoming(start, before)
            phi.add_incoming(new, loop)
        builder.cbranch(builder.icmp_unsigned("<", following, n_rows), loop, after)
        builder.position_at_end(after)
        builder.store(new_total, at(sums_address), align=8)
        builder.store(new_square, at(squares_address), align=8)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, types.uint64, types.uint64, types.uint64), codegen


_add_eight: Any = intrinsic(_eight_columns)


@kernel(fastmath={"contract"})
def column_sums(
    x: NDArray[np.float64], d: int, sums: NDArray[np.float64], squares: NDArray[np.float64]
) -> None:
    """Add the columns of x, flat rows of d, and their squares."""
    rows = x.size // d
    whole = d // WIDTH * WIDTH
    if rows > 0:
        base = np.uint64(x.ctypes.data)
        to_sums, to_squares = np.uint64(sums.ctypes.data), np.uint64(squares.ctypes.data)
        for j in range(0, whole, WIDTH):
            skip = np.uint64(8 * j)
            _add_eight(base + skip, np.uint64(rows), np.uint64(8 * d), to_sums + skip, to_squares + skip)
    for j in range(whole, d):
        total, square = sums[j], squares[j]
        for r in range(rows):
            value = x[r * d + j]
            total += value
            square += value * value
        sums[j], squares[j] = total, square


@kernel(fastmath={"contract"})
def scatter_sums(x: NDArray[np.float64], dims: NDArray[np.uint16], into: NDArray[np.float64]) -> None:
    """Add values to their dimensions' (sum, square, count), interleaved as [d, 4] to share a cache line."""
    for i in range(x.size):
        j = np.uint64(dims[i])
        value = x[i]
        into[j, 0] += value
        into[j, 1] += value * value
        into[j, 2] += 1.0


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
