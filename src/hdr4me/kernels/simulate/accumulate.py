"""Column sums and sums of squares of a block of rows, added in the rows' order.

The running sums of eight columns stay in vector registers while all rows pass: a plain loop would load and store them
for every value, at ten times the cost. Each column is added in the order of its rows, so the bits do not depend on
the width of the registers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from hdr4me.kernels.machine.jit import kernel

__all__ = ["column_sums", "scatter_sums"]

_WIDTH = 8
_I64 = ir.IntType(64)
_VECTOR = ir.VectorType(ir.DoubleType(), _WIDTH)


def _eight_columns(typingctx: Any, x: Any, rows: Any, stride: Any, sums: Any, squares: Any) -> Any:
    """Add eight columns of x (addresses; stride in bytes between rows, at least one row) to sums and squares."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x_address, n_rows, row_stride, sums_address, squares_address = args

        def at(address: Any) -> Any:
            return builder.inttoptr(address, _VECTOR.as_pointer())

        before = builder.block
        loop, after = builder.append_basic_block("add"), builder.append_basic_block("added")
        first = [builder.load(at(a), align=8, typ=_VECTOR) for a in (sums_address, squares_address)]
        builder.branch(loop)
        builder.position_at_end(loop)
        index, address = builder.phi(_I64), builder.phi(_I64)
        total, square = builder.phi(_VECTOR), builder.phi(_VECTOR)
        value = builder.load(at(address), align=8, typ=_VECTOR)
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
    whole = d // _WIDTH * _WIDTH
    if rows > 0:
        base = np.uint64(x.ctypes.data)
        to_sums, to_squares = np.uint64(sums.ctypes.data), np.uint64(squares.ctypes.data)
        for j in range(0, whole, _WIDTH):
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
