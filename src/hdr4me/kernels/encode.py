"""Sixteen numbers at once to sixteen report slots: the whole way in vector registers.

Read sixteen values; clamp them to positions in 16.16 fixed point; add sixteen 16-bit words, which rounds the positions
at random; look up the alias entries that the low bits of sixteen 32-bit words point to; select the cells; weave
their codes into the slots' bytes. The same arithmetic as `stages`, in LLVM's vector types because a compiler does not
vectorise loops across the table look-up. Any processor runs it, with the widest registers it has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from hdr4me.kernels.jit import kernel
from hdr4me.kernels.machine import emit_prefetch

__all__ = ["WIDTH", "encode_rows"]

WIDTH = 16
"""Values at once; a matrix must have at least as many columns."""

_AHEAD = 1024
"""How many values ahead memory is asked for: while the cipher has its turns it would be idle."""

_I8, _I16, _I32, _I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_WORDS, _BYTES = ir.VectorType(_I32, WIDTH), ir.VectorType(_I8, WIDTH)
_HALVES, _LONGS = ir.VectorType(_I16, WIDTH), ir.VectorType(_I64, WIDTH)
_FLAGS, _POINTERS = ir.VectorType(ir.IntType(1), WIDTH), ir.VectorType(_I8.as_pointer(), WIDTH)
_SLOTS = ir.VectorType(_I8, 3 * WIDTH)
_DOUBLES, _SINGLES = ir.VectorType(ir.DoubleType(), 8), ir.VectorType(ir.FloatType(), 8)
_GATHER = ir.FunctionType(_WORDS, [_POINTERS, _I32, _FLAGS, _WORDS])


class _Emitter:
    """The few vector instructions needed, on addresses and registers."""

    def __init__(self, builder: Any) -> None:
        self.b = builder

    def load(self, address: Any, kind: Any, skip: int = 0) -> Any:
        place = self.b.add(address, ir.Constant(_I64, skip))
        return self.b.load(self.b.inttoptr(place, kind.as_pointer()), align=1, typ=kind)

    def splat(self, value: Any) -> Any:
        undefined = ir.Constant(_WORDS, ir.Undefined)
        first = self.b.insert_element(undefined, value, ir.Constant(_I32, 0))
        return self.b.shuffle_vector(first, undefined, ir.Constant(_WORDS, [0] * WIDTH))

    def position(self, value: Any, low: Any, scale: Any, bottom: Any, top: Any, default: Any) -> Any:
        """Eight positions, half a unit added to bottom, top and default beforehand so that truncation rounds."""
        b = self.b
        x = b.fmul(b.fsub(value, low), scale, flags=("contract",))
        x = b.fadd(x, bottom, flags=("contract",))
        x = b.select(b.fcmp_ordered("ord", value, value), x, default)
        x = b.select(b.fcmp_ordered(">", x, bottom), x, bottom)
        x = b.select(b.fcmp_ordered("<", x, top), x, top)
        return b.fptoui(x, ir.VectorType(_I32, 8))

    def look_up(self, table: Any, index: Any) -> Any:
        """Sixteen words of a table at once."""
        b = self.b
        module = b.module
        name = "llvm.masked.gather.v16i32.v16p0"
        gather = module.globals.get(name) or ir.Function(module, _GATHER, name)
        start = b.inttoptr(table, _I32.as_pointer())
        places = b.gep(start, [b.sext(index, _LONGS)], source_etype=_I32)
        places.type = _POINTERS  # llvmlite takes it for one pointer; the instruction printed is right
        every, none = ir.Constant(_FLAGS, [1] * WIDTH), ir.Constant(_WORDS, [0] * WIDTH)
        return b.call(gather, [places, ir.Constant(_I32, 4), every, none])

    def weave(self, slots: Any, codes: Any) -> Any:
        """The slots with their third bytes replaced by the codes."""
        b = self.b
        undefined = ir.Constant(_BYTES, ir.Undefined)
        spread = ir.Constant(ir.VectorType(_I32, 3 * WIDTH), [*range(WIDTH), *[0] * (2 * WIDTH)])
        wide = b.shuffle_vector(codes, undefined, spread)
        chosen = [3 * WIDTH + k // 3 if k % 3 == 2 else k for k in range(3 * WIDTH)]
        return b.shuffle_vector(slots, wide, ir.Constant(ir.VectorType(_I32, 3 * WIDTH), chosen))


def _encoder(single: bool) -> Any:
    """The intrinsic for doubles, or for singles."""
    item = 4 if single else 8

    def encode(
        typingctx: Any, values: Any, n: Any, d: Any, ranges: Any, stride: Any, slots: Any, words: Any, halves: Any,
        table: Any, bits: Any, out: Any,
    ) -> Any:  # fmt: skip
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values, n, d, ranges, stride, slots, words, halves, table, bits, out = args
            b, e = builder, _Emitter(builder)

            def times(x: Any, factor: int) -> Any:
                return b.mul(x, ir.Constant(_I64, factor))

            one, short_bits = ir.Constant(_I32, 1), b.trunc(bits, _I32)
            mask = e.splat(b.sub(b.shl(one, short_bits), one))
            rest, shift = b.not_(mask), e.splat(b.sub(ir.Constant(_I32, 16), short_bits))
            final = b.sub(n, ir.Constant(_I64, WIDTH))
            final_column = b.urem(final, d)
            before = b.block
            loop, after = b.append_basic_block("values"), b.append_basic_block("done")
            b.branch(loop)
            b.position_at_end(loop)
            index, column = b.phi(_I64), b.phi(_I64)
            at_value, at_out = b.add(values, times(index, item)), b.add(out, times(index, 3))
            for line in range(WIDTH * item // 64):
                emit_prefetch(b, b.add(at_value, ir.Constant(_I64, item * _AHEAD + 64 * line)), write=0)
            emit_prefetch(b, b.add(at_out, ir.Constant(_I64, 3 * _AHEAD)), write=1)
            at_range = [
                b.add(b.add(ranges, b.mul(stride, ir.Constant(_I64, 8 * k))), times(column, 8))
                for k in range(5)
            ]
            positions = []
            for half in range(2):
                if single:
                    value = b.fpext(e.load(at_value, _SINGLES, 32 * half), _DOUBLES)
                else:
                    value = e.load(at_value, _DOUBLES, 64 * half)
                positions.append(
                    e.position(value, *(e.load(place, _DOUBLES, 64 * half) for place in at_range))
                )
            position = b.shuffle_vector(*positions, ir.Constant(_WORDS, list(range(WIDTH))))
            word = e.load(b.add(words, times(index, 4)), _WORDS)
            half_word = b.zext(e.load(b.add(halves, times(index, 2)), _HALVES), _WORDS)
            row = b.and_(b.lshr(b.add(position, half_word), shift), rest)
            entry = e.look_up(table, b.or_(row, b.and_(word, mask)))
            cell = b.select(b.icmp_unsigned("<", word, b.and_(entry, rest)), word, entry)
            template = e.load(b.add(slots, times(column, 3)), _SLOTS)
            woven = e.weave(template, b.trunc(b.and_(cell, mask), _BYTES))
            b.store(woven, b.inttoptr(at_out, _SLOTS.as_pointer()), align=1)
            # On by sixteen, round the columns; the last step is shortened to end with the last value.
            following, turned = (
                b.add(index, ir.Constant(_I64, WIDTH)),
                b.add(column, ir.Constant(_I64, WIDTH)),
            )
            turned = b.select(b.icmp_unsigned(">=", turned, d), b.sub(turned, d), turned)
            beyond = b.icmp_unsigned(">", following, final)
            index.add_incoming(ir.Constant(_I64, 0), before)
            index.add_incoming(b.select(beyond, final, following), loop)
            column.add_incoming(ir.Constant(_I64, 0), before)
            column.add_incoming(b.select(beyond, final_column, turned), loop)
            b.cbranch(b.icmp_unsigned("<", index, final), loop, after)
            b.position_at_end(after)
            return context.get_dummy_value()

        return types.void(*[types.uint64] * 11), codegen

    return intrinsic(encode)


_encode_doubles, _encode_singles = _encoder(single=False), _encoder(single=True)


@kernel()
def encode_rows(values, ranges, slots, words, halves, table, bits, out):  # type: ignore[no-untyped-def]
    """Reports `out` (flat bytes) of a C-ordered matrix [n, d], d >= WIDTH, from n·d words of each size.

    `ranges` is [5, d + WIDTH]: low, scale, bottom, top, default, the last three with half a unit added; `slots` is a
    report with its codes left at 0; both run on into a copy of their beginning. The last sixteen values may
    overlap those before: drawn from the same words, they give the same codes again.
    """
    n, d = values.shape
    if n == 0:
        return
    place = (
        np.uint64(values.ctypes.data),
        np.uint64(n * d),
        np.uint64(d),
        np.uint64(ranges.ctypes.data),
        np.uint64(ranges.shape[1]),
        np.uint64(slots.ctypes.data),
        np.uint64(words.ctypes.data),
        np.uint64(halves.ctypes.data),
        np.uint64(table.ctypes.data),
        np.uint64(bits),
        np.uint64(out.ctypes.data),
    )
    if values.itemsize == 4:
        _encode_singles(*place)
    else:
        _encode_doubles(*place)
