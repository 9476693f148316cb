"""xoshiro256++ (Blackman and Vigna 2019) in sixteen lanes: the quick, seeded generator of simulations.

Never for reports: those are drawn from `keystream`. The lanes' states stay in vector registers for a whole buffer,
which numba's own loops do not achieve (6 GB/s against 38), so the loop is written in LLVM's vector types; any
processor runs it, with the widest registers it has.

Each chunk of a simulation has its own generator, seeded by SplitMix64 from (seed, chunk): the numbers of a chunk do
not depend on which thread draws them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from hdr4me.kernels.machine.intrinsics import emit_prefetch
from hdr4me.kernels.machine.jit import kernel

LANES = 16
_WIDTH = 8
_GROUPS = LANES // _WIDTH
_I64 = ir.IntType(64)
_VECTOR = ir.VectorType(_I64, _WIDTH)


def _fill_lanes(typingctx: Any, state: Any, out: Any, n: Any, soon: Any) -> Any:
    """Fill n words (a multiple of LANES) at address `out`; `state` is the address of uint64 [4, LANES].

    Meanwhile as many bytes are prefetched from address `soon` into the second-level cache (the first is full of words):
    drawing words leaves memory idle.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        state_address, out_address, n_words, soon_address = args

        def splat(bits: int) -> Any:
            return ir.Constant(_VECTOR, [bits] * _WIDTH)

        def place(base: Any, element: Any) -> Any:
            address = builder.add(base, builder.mul(element, ir.Constant(_I64, 8)))
            return builder.inttoptr(address, _VECTOR.as_pointer())

        def state_place(word: int, group: int) -> Any:
            return place(state_address, ir.Constant(_I64, word * LANES + group * _WIDTH))

        def rotate(x: Any, k: int) -> Any:
            return builder.or_(builder.shl(x, splat(k)), builder.lshr(x, splat(64 - k)))

        before = builder.block
        loop, after = builder.append_basic_block("draw"), builder.append_basic_block("drawn")
        start = [
            [builder.load(state_place(word, g), align=8, typ=_VECTOR) for word in range(4)]
            for g in range(_GROUPS)
        ]
        builder.branch(loop)
        builder.position_at_end(loop)
        index = builder.phi(_I64)
        index.add_incoming(ir.Constant(_I64, 0), before)
        held = [[builder.phi(_VECTOR) for _ in range(4)] for _ in range(_GROUPS)]
        moved = []
        for g in range(_GROUPS):
            a, b, c, d = held[g]
            drawn = builder.add(rotate(builder.add(a, d), 23), a)
            builder.store(
                drawn, place(out_address, builder.add(index, ir.Constant(_I64, g * _WIDTH))), align=8
            )
            shifted = builder.shl(b, splat(17))
            c, d = builder.xor(c, a), builder.xor(d, b)
            b, a = builder.xor(b, c), builder.xor(a, d)
            moved.append([a, b, builder.xor(c, shifted), rotate(d, 45)])
        for line in range(LANES // 8):
            ahead = builder.add(soon_address, builder.mul(index, ir.Constant(_I64, 8)))
            emit_prefetch(builder, builder.add(ahead, ir.Constant(_I64, 64 * line)), write=0, near=2)
        following = builder.add(index, ir.Constant(_I64, LANES))
        index.add_incoming(following, loop)
        for phis, first, new in zip(held, start, moved, strict=True):
            for phi, x, y in zip(phis, first, new, strict=True):
                phi.add_incoming(x, before)
                phi.add_incoming(y, loop)
        builder.cbranch(builder.icmp_unsigned("<", following, n_words), loop, after)
        builder.position_at_end(after)
        for g, new in enumerate(moved):
            for word, value in enumerate(new):
                builder.store(value, state_place(word, g), align=8)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, types.uint64, types.uint64), codegen


def _to_unit(typingctx: Any, word: Any) -> Any:
    """The double in [1, 2) whose 52 fraction bits are the word's highest: two integer operations, no conversion."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        fraction = builder.lshr(args[0], ir.Constant(_I64, 12))
        return builder.bitcast(builder.or_(fraction, ir.Constant(_I64, 0x3FF << 52)), ir.DoubleType())

    return types.float64(types.uint64), codegen


_fill: Any = intrinsic(_fill_lanes)
to_unit: Any = intrinsic(_to_unit)


@kernel()
def fill(state: NDArray[np.uint64], out: NDArray[np.uint64], soon: int = 0) -> None:
    """Overwrite `out` (C-ordered, its size a multiple of LANES) with the next words of the lanes.

    `soon` is an address whose next 8 bytes for each word will be read soon, if any.
    """
    if out.size:
        into = np.uint64(out.ctypes.data)
        ahead = np.uint64(soon) if soon else into
        _fill(np.uint64(state.ctypes.data), into, np.uint64(out.size), ahead)


@kernel()
def seed_lanes(seed: int, chunk: int, state: NDArray[np.uint64]) -> None:
    """State uint64 [4, LANES] of the generator of one chunk."""
    z = np.uint64(seed)
    for key in (np.uint64(chunk), np.uint64(0x5851F42D4C957F2D)):
        z = _scramble(z + np.uint64(0x9E3779B97F4A7C15)) ^ key
    for lane in range(state.shape[1]):
        for word in range(4):
            z += np.uint64(0x9E3779B97F4A7C15)
            state[word, lane] = _scramble(z)


@kernel()
def _scramble(z):  # type: ignore[no-untyped-def]
    """SplitMix64's output function."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
