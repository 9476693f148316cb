"""xoshiro256++ (Blackman and Vigna 2019) in sixteen lanes: the quick, seeded generator of simulations.

It is never used for reports, which draw from a `Keystream`. The lanes' states stay in vector registers for a whole
buffer, which numba's own loops do not achieve (6 GB/s against 38), so the loop is written in LLVM's vector types; any
processor runs it, with the widest registers it has.

Each chunk of a simulation has its own generator, seeded by SplitMix64 from (seed, chunk): the numbers of a chunk do
not depend on which thread draws them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numpy.typing import NDArray

from hdr4me.kernels.machine.intrinsics import I64, emit_loop, emit_prefetch, emits
from hdr4me.kernels.machine.jit import kernel

LANES = 16
_WIDTH = 8
_GROUPS = LANES // _WIDTH
_VECTOR = ir.VectorType(I64, _WIDTH)


@emits(types.void(*[types.uint64] * 4))
def _fill(b: Any, state: Any, out: Any, n: Any, soon: Any) -> None:
    """Fill n words (a multiple of LANES) at address `out`; `state` is the address of uint64 [4, LANES].

    Meanwhile as many bytes are prefetched from address `soon` into the second-level cache (the first is full of words):
    drawing words leaves memory idle.
    """

    def splat(bits: int) -> Any:
        return ir.Constant(_VECTOR, [bits] * _WIDTH)

    def place(base: Any, element: Any) -> Any:
        return b.inttoptr(b.add(base, b.mul(element, ir.Constant(I64, 8))), _VECTOR.as_pointer())

    def rotate(x: Any, k: int) -> Any:
        return b.or_(b.shl(x, splat(k)), b.lshr(x, splat(64 - k)))

    def draw(index: Any, *held: Any) -> list[Any]:
        moved = []
        for g in range(_GROUPS):
            s0, s1, s2, s3 = held[4 * g : 4 * g + 4]
            drawn = b.add(rotate(b.add(s0, s3), 23), s0)
            b.store(drawn, place(out, b.add(index, ir.Constant(I64, g * _WIDTH))), align=8)
            shifted = b.shl(s1, splat(17))
            s2, s3 = b.xor(s2, s0), b.xor(s3, s1)
            s1, s0 = b.xor(s1, s2), b.xor(s0, s3)
            moved += [s0, s1, b.xor(s2, shifted), rotate(s3, 45)]
        for line in range(LANES // 8):
            ahead = b.add(soon, b.mul(index, ir.Constant(I64, 8)))
            emit_prefetch(b, b.add(ahead, ir.Constant(I64, 64 * line)), write=0, near=2)
        return moved

    places = [
        place(state, ir.Constant(I64, word * LANES + g * _WIDTH)) for g in range(_GROUPS) for word in range(4)
    ]
    first = [b.load(at, align=8, typ=_VECTOR) for at in places]
    for value, at in zip(emit_loop(b, n, LANES, first, draw), places, strict=True):
        b.store(value, at, align=8)


@emits(types.float64(types.uint64))
def to_unit(b: Any, word: Any) -> Any:
    """The double in [1, 2) whose 52 fraction bits are the word's highest: two integer operations, no conversion."""
    fraction = b.lshr(word, ir.Constant(I64, 12))
    return b.bitcast(b.or_(fraction, ir.Constant(I64, 0x3FF << 52)), ir.DoubleType())


@kernel()
def fill(state: NDArray[np.uint64], out: NDArray[np.uint64], soon: int = 0) -> None:
    """Overwrite `out` (C-ordered, its size a multiple of LANES) with the next words of the lanes.

    `soon` is an address whose next 8 bytes for each word will be read soon, if any.
    """
    if out.size:
        ahead = np.uint64(soon) if soon else np.uint64(out.ctypes.data)
        _fill(state.ctypes.data, out.ctypes.data, out.size, ahead)


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
