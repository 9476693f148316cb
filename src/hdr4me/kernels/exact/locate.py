"""Slots of three bytes, sixteen at a time: the index of each slot's counter, and whether all slots are valid."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from hdr4me.kernels.machine.vectors import BYTES, I32, I64, WIDTH, WORDS, Emitter

__all__ = ["BEYOND", "locate", "within"]

BEYOND = WIDTH
"""How many bytes after the last slot are read without being used."""

_ALL = 0xFFFFFFFF


def within(n_slots: int, n_sampled: int) -> NDArray[np.uint32]:
    """A mask for each slot: all bits set for the first slot of a report, no bit for the others.

    Only the others are compared with the slot before: within a report dimensions must increase.
    """
    pattern = np.zeros(n_slots, np.uint32)
    pattern[::n_sampled] = _ALL
    return pattern


def _walk(typingctx: Any, slots: Any, n: Any, d: Any, stride: Any, inner: Any, at: Any) -> Any:
    """Emit the loop over n slots, a multiple of sixteen; its value is 1 if all slots are valid, else 0.

    The difference of two numbers below 2^31 has its sign bit set exactly if the first number is the smaller. Each test
    is such a difference, and one vector holds the bitwise "and" of all of them: its sign bits are all set at the end
    exactly if every test of every slot was passed.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        slots, n, d, stride, inner, at = args
        b, e = builder, Emitter(builder)
        dims, codes = e.splat(d), e.splat(stride)
        low, byte, shift = (ir.Constant(WORDS, [value] * WIDTH) for value in (0xFFFF, 0xFF, 16))
        before = b.block
        loop, after = b.append_basic_block("slots"), b.append_basic_block("located")
        b.branch(loop)
        b.position_at_end(loop)
        index, good, previous = b.phi(I64), b.phi(WORDS), b.phi(WORDS)
        bytes_ = e.load(e.at(slots, index, 3), BYTES)
        spread = [3 * k + min(byte_, 2) for k in range(WIDTH) for byte_ in range(4)]
        word = b.bitcast(e.shuffle(bytes_, bytes_, spread), WORDS)
        dim, code = b.and_(word, low), b.and_(b.lshr(word, shift), byte)
        e.store(b.add(b.mul(dim, codes), code), e.at(at, index, 4))
        earlier = e.shuffle(previous, dim, list(range(WIDTH - 1, 2 * WIDTH - 1)))
        increasing = b.or_(b.sub(earlier, dim), e.load(e.at(inner, index, 4), WORDS))
        still_good = b.and_(b.and_(good, increasing), b.and_(b.sub(dim, dims), b.sub(code, codes)))
        following = b.add(index, ir.Constant(I64, WIDTH))
        for phi, first, then in (
            (index, ir.Constant(I64, 0), following),
            (good, ir.Constant(WORDS, [_ALL] * WIDTH), still_good),
            (previous, ir.Constant(WORDS, [0] * WIDTH), dim),
        ):
            phi.add_incoming(first, before)
            phi.add_incoming(then, loop)
        b.cbranch(b.icmp_unsigned("<", following, n), loop, after)
        b.position_at_end(after)
        for half in (8, 4, 2, 1):
            turned = e.shuffle(still_good, still_good, [(k + half) % WIDTH for k in range(WIDTH)])
            still_good = b.and_(still_good, turned)
        sign = b.lshr(b.extract_element(still_good, ir.Constant(I32, 0)), ir.Constant(I32, 31))
        return b.zext(sign, I64)

    return types.uint64(*[types.uint64] * 6), codegen


_locate: Any = intrinsic(_walk)


@njit(inline="always")
def locate(reports, n_slots, d, stride, inner, at):  # type: ignore[no-untyped-def]
    """Write the counter's index of each slot, dimension * stride + code, to `at`; returns whether all slots are valid.

    A slot is valid if its dimension is below d and above that of the slot before in the same report, and its code is
    below `stride`. n_slots is a multiple of sixteen, and BEYOND bytes after the last slot must be readable.
    """
    slots, pattern, places = reports.ctypes.data, inner.ctypes.data, at.ctypes.data
    found = _locate(
        np.uint64(slots),
        np.uint64(n_slots),
        np.uint64(d),
        np.uint64(stride),
        np.uint64(pattern),
        np.uint64(places),
    )
    return found == np.uint64(1)
