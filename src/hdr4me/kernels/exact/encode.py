"""A matrix of numbers to reports, every dimension sent: two passes over a group of values in the nearest cache.

First, sixteen values at once: clamp them to positions, add sixteen 16-bit words, note which alias entries the low bits
of sixteen 32-bit words point to; the arithmetic of `positions` and `point` in one. Second: `finish`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from hdr4me.kernels.exact.stages import finish_many
from hdr4me.kernels.machine.intrinsics import emit_prefetch
from hdr4me.kernels.machine.jit import kernel
from hdr4me.kernels.machine.vectors import HALVES, I32, I64, WIDTH, WORDS, Emitter

__all__ = ["GROUP", "WIDTH", "encode_rows"]

GROUP = 256
"""Values that go from one pass to the next together; many more would bunch the requests to memory."""

_AHEAD = 512
"""How many values ahead memory is asked for: while the cipher has its turns it would be idle."""

_DOUBLES, _SINGLES = ir.VectorType(ir.DoubleType(), 8), ir.VectorType(ir.FloatType(), 8)


def _position(b: Any, value: Any, low: Any, scale: Any, bottom: Any, top: Any, default: Any) -> Any:
    """Eight positions, half a unit added to bottom, top and default beforehand so that truncation rounds."""
    x = b.fmul(b.fsub(value, low), scale, flags=("contract",))
    x = b.fadd(x, bottom, flags=("contract",))
    x = b.select(b.fcmp_ordered(">", x, bottom), x, bottom)
    x = b.select(b.fcmp_ordered("<", x, top), x, top)
    x = b.select(b.fcmp_ordered("ord", value, value), x, default)
    return b.fptoui(x, ir.VectorType(I32, 8))


def _pointer(single: bool, alike: bool) -> Any:
    """The first pass, of doubles or singles. Ranges differ, or are alike and stay in registers."""
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
    """Reports `out` (flat bytes) of a C-ordered matrix [n, d], d >= WIDTH, from n·d words of each size.

    `ranges` is [5, d + GROUP + WIDTH]: low, scale, bottom, top, default, the last three with half a unit added, of the
    dimensions `dims`, all of them and then from the first again. Where all columns have the same five numbers
    `ranges` is only [5, WIDTH]. The last sixteen values may overlap those before: drawn from the same words, they
    give the same codes again.
    """
    n, d = values.shape
    total = n * d
    alike = ranges.shape[1] == WIDTH
    cells = np.empty(GROUP + WIDTH, np.uint32)
    item = values.itemsize
    start = 0
    while start < total:
        size = GROUP if total - start >= GROUP + WIDTH else total - start  # never fewer than sixteen left
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
    cells[0] = 0  # used to the end: only its address is, in between
