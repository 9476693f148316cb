"""From a matrix of numbers to reports, for surveys in which every user sends every dimension.

The values pass in groups that fit into the first-level cache, and each group is passed over twice:

1. Sixteen values at a time: each value becomes a position (clamped to its dimension's range), a 16-bit random word is
   added to round the position to a row, and the low bits of a 32-bit random word choose the alias entry in that row.
   This is the arithmetic of `positions.positions` and `stages.point` in one loop.
2. `stages.finish_many` turns alias entries into the bytes of the report.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from hdr4me.kernels.exact.blocks import finish_many
from hdr4me.kernels.machine.intrinsics import HALVES, I32, I64, WIDTH, WORDS, Emitter, emit_prefetch
from hdr4me.kernels.machine.jit import kernel

GROUP = 256
"""Values in a group. With larger groups the prefetches of one pass would come all at once."""

_AHEAD = 512
"""How many values ahead memory is prefetched; while the cipher fills the random words, memory would be idle."""

_DOUBLES, _SINGLES = ir.VectorType(ir.DoubleType(), 8), ir.VectorType(ir.FloatType(), 8)


def _position(b: Any, value: Any, low: Any, scale: Any, bottom: Any, top: Any, default: Any) -> Any:
    """Emit eight positions. Bottom, top and default already contain half a unit, so that truncation rounds."""
    x = b.fmul(b.fsub(value, low), scale, flags=("contract",))
    x = b.fadd(x, bottom, flags=("contract",))
    x = b.select(b.fcmp_ordered(">", x, bottom), x, bottom)
    x = b.select(b.fcmp_ordered("<", x, top), x, top)
    x = b.select(b.fcmp_ordered("ord", value, value), x, default)
    return b.fptoui(x, ir.VectorType(I32, 8))


def _pointer(single: bool, alike: bool) -> Any:
    """The intrinsic of the first pass, for values in double or single precision.

    With `alike` all dimensions have the same range, and its five numbers are loaded once and kept in registers.
    """
    item = 4 if single else 8

    def point(
        typingctx: Any, values: Any, n: Any, ranges: Any, stride: Any, words: Any, halves: Any, bits: Any, out: Any,
        cells: Any,
    ) -> Any:  # fmt: skip
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values, n, ranges, stride, words, halves, bits, out, cells = args
            b, e = builder, Emitter(builder)
            mask = e.low_bits(bits)
            rest, shift = b.not_(mask), e.splat(b.sub(ir.Constant(I64, 16), bits))
            places = [b.add(ranges, b.mul(stride, ir.Constant(I64, 8 * k))) for k in range(5)]
            held = [e.load(place, _DOUBLES) for place in places] if alike else []

            def step(index: Any) -> None:
                at_value, at_out = e.at(values, index, item), e.at(out, index, 3)
                for line in range(WIDTH * item // 64):
                    emit_prefetch(b, b.add(at_value, ir.Constant(I64, item * _AHEAD + 64 * line)), write=0)
                emit_prefetch(b, b.add(at_out, ir.Constant(I64, 3 * _AHEAD)), write=1)
                positions = []
                for half in range(2):
                    if single:
                        value = b.fpext(e.load(at_value, _SINGLES, 32 * half), _DOUBLES)
                    else:
                        value = e.load(at_value, _DOUBLES, 64 * half)
                    five = held or [e.load(e.at(place, index, 8), _DOUBLES, 64 * half) for place in places]
                    positions.append(_position(b, value, *five))
                position = e.shuffle(positions[0], positions[1], list(range(WIDTH)))
                word = e.load(e.at(words, index, 4), WORDS)
                half_word = b.zext(e.load(e.at(halves, index, 2), HALVES), WORDS)
                row = b.and_(b.lshr(b.add(position, half_word), shift), rest)
                e.store(b.or_(row, b.and_(word, mask)), e.at(cells, index, 4))

            e.walk(n, step)
            return context.get_dummy_value()

        return types.void(*[types.uint64] * 9), codegen

    return intrinsic(point)


_point_doubles, _point_singles = _pointer(single=False, alike=False), _pointer(single=True, alike=False)
_point_alike_doubles, _point_alike_singles = (
    _pointer(single=False, alike=True),
    _pointer(single=True, alike=True),
)


@kernel()
def encode_rows(values, ranges, dims, words, halves, table, bits, out):  # type: ignore[no-untyped-def]
    """Write the reports of a C-ordered matrix `values` [n, d], d >= WIDTH, to the flat bytes `out`.

    `words` and `halves` hold n·d random words of 32 and of 16 bits. `dims` lists the dimensions 0 … d - 1 and then
    starts again from 0, GROUP + WIDTH entries beyond d, so that a group may run past the end of a row. `ranges` [5, d
    + GROUP + WIDTH] holds low, scale, bottom, top and default of the dimensions in the order of `dims`, the last three
    with half a unit added; where all dimensions have the same five numbers it is [5, WIDTH]. The last vector of
    sixteen values may overlap the vector before it: the overlapping values are computed twice from the same words,
    with the same result.
    """
    n, d = values.shape
    total = n * d
    alike = ranges.shape[1] == WIDTH
    cells = np.empty(GROUP + WIDTH, np.uint32)
    item = values.itemsize
    start = 0
    while start < total:
        # The last group takes up to WIDTH values more than GROUP, so that no group is shorter than one vector.
        size = GROUP if total - start >= GROUP + WIDTH else total - start
        column = start % d
        number, shift = np.uint64(size), np.uint64(bits)
        at_words, at_out = np.uint64(words.ctypes.data + 4 * start), np.uint64(out.ctypes.data + 3 * start)
        at_cells = np.uint64(cells.ctypes.data)
        place = (
            np.uint64(values.ctypes.data + item * start),
            number,
            np.uint64(ranges.ctypes.data + (0 if alike else 8 * column)),
            np.uint64(ranges.shape[1]),
            at_words,
            np.uint64(halves.ctypes.data + 2 * start),
            shift,
            at_out,
            at_cells,
        )
        if alike and item == 4:
            _point_alike_singles(*place)
        elif alike:
            _point_alike_doubles(*place)
        elif item == 4:
            _point_singles(*place)
        else:
            _point_doubles(*place)
        at_dims, at_table = np.uint64(dims.ctypes.data + 2 * column), np.uint64(table.ctypes.data)
        finish_many(number, at_cells, at_dims, at_words, at_table, shift, at_out)
        start += size
    cells[0] = 0  # keeps the array alive until here: the loop above uses only its address
