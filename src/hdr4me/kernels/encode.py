"""Sixteen numbers at once to sixteen report slots, in two passes over a group of values in the nearest cache.

First, in vectors: clamp the values to positions in 16.16 fixed point; add sixteen 16-bit words, which rounds the
positions at random; note which alias entries the low bits of sixteen 32-bit words point to. Second: gather the
entries, select the cells and weave their codes into the slots' bytes. The same arithmetic as `stages`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from hdr4me.kernels.jit import kernel
from hdr4me.kernels.machine import emit_prefetch
from hdr4me.kernels.vectors import BYTES, I16, I32, I64, WIDTH, WORDS, Emitter

__all__ = ["WIDTH", "encode_rows"]

_AHEAD = 512
"""How many values ahead memory is asked for: while the cipher has its turns it would be idle."""

_GROUP = 256
"""Values that go from one pass to the next together; many more would bunch the requests to memory."""

_HALVES = ir.VectorType(I16, WIDTH)
_DOUBLES, _SINGLES = ir.VectorType(ir.DoubleType(), 8), ir.VectorType(ir.FloatType(), 8)


class _Encoder(Emitter):
    """What the two passes do to sixteen values."""

    def masks(self, bits: Any) -> tuple[Any, Any, Any]:
        """Sixteen times: a word's bits for the column, the others, and how far positions move to make room for them."""
        one = ir.Constant(I64, 1)
        mask = self.splat(self.b.sub(self.b.shl(one, bits), one))
        return mask, self.b.not_(mask), self.splat(self.b.sub(ir.Constant(I64, 16), bits))

    def position(self, value: Any, low: Any, scale: Any, bottom: Any, top: Any, default: Any) -> Any:
        """Eight positions, half a unit added to bottom, top and default beforehand so that truncation rounds."""
        b = self.b
        x = b.fmul(b.fsub(value, low), scale, flags=("contract",))
        x = b.fadd(x, bottom, flags=("contract",))
        x = b.select(b.fcmp_ordered("ord", value, value), x, default)
        x = b.select(b.fcmp_ordered(">", x, bottom), x, bottom)
        x = b.select(b.fcmp_ordered("<", x, top), x, top)
        return b.fptoui(x, ir.VectorType(I32, 8))

    def look_up(self, table: Any, cells: Any) -> Any:
        """The sixteen entries whose indices lie at `cells`, two to a load; a vector's own gather is slower."""
        b, entries = self.b, ir.Constant(WORDS, ir.Undefined)
        start = b.inttoptr(table, I32.as_pointer())
        for k in range(WIDTH // 2):
            pair = self.load(cells, I64, 8 * k)
            both = b.and_(pair, ir.Constant(I64, 0xFFFFFFFF)), b.lshr(pair, ir.Constant(I64, 32))
            for half, index in enumerate(both):
                entry = b.load(b.gep(start, [index], source_etype=I32), typ=I32)
                entries = b.insert_element(entries, entry, ir.Constant(I32, 2 * k + half))
        return entries

    def weave(self, slots: Any, codes: Any) -> Any:
        """Sixteen slots with their third bytes replaced by the codes, which come as words."""
        order = [4 * WIDTH + 4 * (k // 3) if k % 3 == 2 else k for k in range(3 * WIDTH)]
        whole = self.shuffle(slots, self.b.bitcast(codes, BYTES), [*order, *[0] * WIDTH])
        return self.shuffle(whole, whole, list(range(3 * WIDTH)))


def _walk(builder: Any, n: Any, d: Any, column: Any, step: Any) -> None:
    """Emit step(index, column) for every sixteen of n >= 16 values, round the columns.

    The last step is shortened to end with the last value, so it may overlap the one before.
    """
    b = builder
    sixteen = ir.Constant(I64, WIDTH)
    final = b.sub(n, sixteen)
    final_column = b.urem(b.add(column, final), d)
    before = b.block
    loop, after = b.append_basic_block("values"), b.append_basic_block("done")
    b.branch(loop)
    b.position_at_end(loop)
    index, at = b.phi(I64), b.phi(I64)
    step(index, at)
    following, turned = b.add(index, sixteen), b.add(at, sixteen)
    turned = b.select(b.icmp_unsigned(">=", turned, d), b.sub(turned, d), turned)
    beyond = b.icmp_unsigned(">", following, final)
    index.add_incoming(ir.Constant(I64, 0), before)
    index.add_incoming(b.select(beyond, final, following), loop)
    at.add_incoming(column, before)
    at.add_incoming(b.select(beyond, final_column, turned), loop)
    b.cbranch(b.icmp_unsigned("<", index, final), loop, after)
    b.position_at_end(after)


def _pointer(single: bool, alike: bool) -> Any:
    """First pass, of doubles or singles: where the entries are. Ranges differ, or are alike and stay in registers."""
    item = 4 if single else 8

    def point(
        typingctx: Any, values: Any, n: Any, d: Any, column: Any, ranges: Any, stride: Any, words: Any, halves: Any,
        bits: Any, out: Any, cells: Any,
    ) -> Any:  # fmt: skip
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values, n, d, column, ranges, stride, words, halves, bits, out, cells = args
            b, e = builder, _Encoder(builder)
            mask, rest, shift = e.masks(bits)
            places = [b.add(ranges, b.mul(stride, ir.Constant(I64, 8 * k))) for k in range(5)]
            held = [e.load(place, _DOUBLES) for place in places] if alike else []

            def step(index: Any, at: Any) -> None:
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
                    five = held or [e.load(e.at(place, at, 8), _DOUBLES, 64 * half) for place in places]
                    positions.append(e.position(value, *five))
                position = e.shuffle(positions[0], positions[1], list(range(WIDTH)))
                word = e.load(e.at(words, index, 4), WORDS)
                half_word = b.zext(e.load(e.at(halves, index, 2), _HALVES), WORDS)
                row = b.and_(b.lshr(b.add(position, half_word), shift), rest)
                e.store(b.or_(row, b.and_(word, mask)), e.at(cells, index, 4))

            _walk(b, n, d, column, step)
            return context.get_dummy_value()

        return types.void(*[types.uint64] * 11), codegen

    return intrinsic(point)


def _choose(
    typingctx: Any, n: Any, d: Any, column: Any, slots: Any, words: Any, bits: Any, out: Any, cells: Any, table: Any
) -> Any:  # fmt: skip
    """Second pass: look sixteen entries up, select the cells, and weave their codes into the slots."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        n, d, column, slots, words, bits, out, cells, table = args
        b, e = builder, _Encoder(builder)
        mask, rest, _ = e.masks(bits)

        def step(index: Any, at: Any) -> None:
            word, entry = e.load(e.at(words, index, 4), WORDS), e.look_up(table, e.at(cells, index, 4))
            cell = b.select(b.icmp_unsigned("<", word, b.and_(entry, rest)), word, entry)
            woven = e.weave(e.load(e.at(slots, at, 3), BYTES), b.and_(cell, mask))
            e.store(woven, e.at(out, index, 3))

        _walk(b, n, d, column, step)
        return context.get_dummy_value()

    return types.void(*[types.uint64] * 9), codegen


_point_doubles, _point_singles = _pointer(single=False, alike=False), _pointer(single=True, alike=False)
_point_alike_doubles, _point_alike_singles = (
    _pointer(single=False, alike=True),
    _pointer(single=True, alike=True),
)
_finish: Any = intrinsic(_choose)


@kernel()
def encode_rows(values, ranges, slots, words, halves, table, bits, out):  # type: ignore[no-untyped-def]
    """Reports `out` (flat bytes) of a C-ordered matrix [n, d], d >= WIDTH, from n·d words of each size.

    `ranges` is [5, d + WIDTH]: low, scale, bottom, top, default, the last three with half a unit added; `slots` is a
    report with its codes left at 0; both run on into a copy of their beginning, and 16 more slots may be read. Where
    all columns have the same five numbers `ranges` is only [5, WIDTH]. The last sixteen values may overlap those
    before: drawn from the same words, they give the same codes again.
    """
    n, d = values.shape
    total = n * d
    alike = ranges.shape[1] == WIDTH
    room = np.zeros(_GROUP + WIDTH, np.uint32)
    item = values.itemsize
    width = np.uint64(d)
    start = 0
    while start < total:
        size = _GROUP if total - start >= _GROUP + WIDTH else total - start  # never fewer than sixteen left
        first, number, column = np.uint64(start), np.uint64(size), np.uint64(start % d)
        cells = np.uint64(room.ctypes.data)
        at_words = np.uint64(words.ctypes.data) + np.uint64(4) * first
        at_out = np.uint64(out.ctypes.data) + np.uint64(3) * first
        place = (
            np.uint64(values.ctypes.data) + np.uint64(item) * first,
            number,
            width,
            column,
            np.uint64(ranges.ctypes.data),
            np.uint64(ranges.shape[1]),
            at_words,
            np.uint64(halves.ctypes.data) + np.uint64(2) * first,
            np.uint64(bits),
            at_out,
            cells,
        )
        if alike and item == 4:
            _point_alike_singles(*place)
        elif alike:
            _point_alike_doubles(*place)
        elif item == 4:
            _point_singles(*place)
        else:
            _point_doubles(*place)
        at_slots, at_table = np.uint64(slots.ctypes.data), np.uint64(table.ctypes.data)
        _finish(number, width, column, at_slots, at_words, np.uint64(bits), at_out, cells, at_table)
        start += size
    room[0] = 0  # used to the end: only its address is, in between
