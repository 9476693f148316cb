"""What numba does not offer: loads from an address, prefetching, bit counts, and LLVM's vectors of sixteen elements.

Reading through addresses lets one compiled kernel take a NumPy matrix of any layout and Arrow's column buffers
alike, uncopied, and touch only the dimensions that were sampled. The vector types are for the few loops that no
compiler vectorises by itself. Any processor runs them, with the widest registers it has, if its numbers begin with
their lowest byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

DTYPES = tuple(
    np.dtype(name)
    for name in ("f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1")  # the order `load` counts in
)
"""Element types a column may have; a column is described by its type's number here."""


def _loader(number: int) -> Any:
    """An intrinsic that reads one element of the numbered type, at any alignment, as a float64."""
    kind, bits = DTYPES[number].kind, 8 * DTYPES[number].itemsize
    stored = ir.IntType(bits) if kind in "iu" else ir.DoubleType() if bits == 64 else ir.FloatType()

    @intrinsic
    def read(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], stored.as_pointer())
            value = builder.load(pointer, align=1, typ=stored)
            if kind == "i":
                return builder.sitofp(value, ir.DoubleType())
            if kind == "u":
                return builder.uitofp(value, ir.DoubleType())
            return value if bits == 64 else builder.fpext(value, ir.DoubleType())

        return types.float64(types.uint64), codegen

    return read


_f8, _f4, _i8, _i4, _i2, _i1, _u8, _u4, _u2, _u1 = (_loader(number) for number in range(len(DTYPES)))


@njit(inline="always")
def load(address: Any, number: Any) -> float:
    """The element of type DTYPES[number] at an address, as float64."""
    if number == 0:
        return _f8(address)  # type: ignore[no-any-return]
    if number == 1:
        return _f4(address)  # type: ignore[no-any-return]
    if number == 3:
        return _i4(address)  # type: ignore[no-any-return]
    if number == 2:
        return _i8(address)  # type: ignore[no-any-return]
    if number == 4:
        return _i2(address)  # type: ignore[no-any-return]
    if number == 5:
        return _i1(address)  # type: ignore[no-any-return]
    if number == 6:
        return _u8(address)  # type: ignore[no-any-return]
    if number == 7:
        return _u4(address)  # type: ignore[no-any-return]
    if number == 8:
        return _u2(address)  # type: ignore[no-any-return]
    return _u1(address)  # type: ignore[no-any-return]


def _trailing_zeros(typingctx: Any, word: Any) -> Any:
    """The position of the lowest set bit of a uint64; 64 if there is none."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), codegen


def _ones(typingctx: Any, word: Any) -> Any:
    """How many bits of a uint64 are set."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


def _integer(bits: int) -> Any:
    """An intrinsic that reads an unsigned integer of so many bits at an address of any alignment, as a uint64."""

    def read(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.IntType(bits)
            value = builder.load(builder.inttoptr(args[0], kind.as_pointer()), align=1, typ=kind)
            return builder.zext(value, ir.IntType(64)) if bits < 64 else value

        return types.uint64(types.uint64), codegen

    return intrinsic(read)


def _put(bits: int) -> Any:
    """An intrinsic that writes so many low bits of a uint64 to an address of any alignment."""

    def write(typingctx: Any, address: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.IntType(bits)
            value = builder.trunc(args[1], kind) if bits < 64 else args[1]
            builder.store(value, builder.inttoptr(args[0], kind.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(types.uint64, types.uint64), codegen

    return intrinsic(write)


def _same_32(typingctx: Any, one: Any, other: Any) -> Any:
    """Whether the 32 bytes at two addresses are the same."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.IntType(256)
        a, b = (builder.load(builder.inttoptr(x, kind.as_pointer()), align=1, typ=kind) for x in args)
        return builder.icmp_unsigned("==", a, b)

    return types.boolean(types.uint64, types.uint64), codegen


eight_bytes, one_byte = _integer(64), _integer(8)
put_byte, put_eight = _put(8), _put(64)
same_32: Any = intrinsic(_same_32)
trailing_zeros: Any = intrinsic(_trailing_zeros)
ones: Any = intrinsic(_ones)


def emit_prefetch(builder: Any, address: Any, *, write: int, near: int = 3) -> None:
    """Emit a request for the cache line at an address, to read or write it; near 3 is the first cache, 2 the second."""
    pointer, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
    name = "llvm.prefetch.p0"
    known = builder.module.globals.get(name)
    kind = ir.FunctionType(ir.VoidType(), [pointer, flag, flag, flag])
    purpose, level, data = (ir.Constant(flag, value) for value in (write, near, 1))
    function = known or ir.Function(builder.module, kind, name)
    builder.call(function, [builder.inttoptr(address, pointer), purpose, level, data])


def _prefetcher() -> Any:
    """The intrinsic that prefetches the cache line at an address into the second-level cache.

    Many prefetches are under way at a time, where loads would wait for each other.
    """

    def ask(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            emit_prefetch(builder, args[0], write=0, near=2)
            return context.get_dummy_value()

        return types.void(types.uint64), codegen

    return intrinsic(ask)


prefetch = _prefetcher()


WIDTH = 16
"""Elements at once."""

I32, I64 = ir.IntType(32), ir.IntType(64)
WORDS, HALVES = ir.VectorType(I32, WIDTH), ir.VectorType(ir.IntType(16), WIDTH)
BYTES = ir.VectorType(ir.IntType(8), 4 * WIDTH)


class Emitter:
    """The few vector instructions needed, on addresses and registers."""

    def __init__(self, builder: Any) -> None:
        self.b = builder

    def load(self, address: Any, kind: Any, skip: int = 0) -> Any:
        place = self.b.add(address, ir.Constant(I64, skip))
        return self.b.load(self.b.inttoptr(place, kind.as_pointer()), align=1, typ=kind)

    def store(self, value: Any, address: Any) -> None:
        self.b.store(value, self.b.inttoptr(address, value.type.as_pointer()), align=1)

    def at(self, address: Any, index: Any, size: int) -> Any:
        return self.b.add(address, self.b.mul(index, ir.Constant(I64, size)))

    def splat(self, value: Any) -> Any:
        """Sixteen times the low 32 bits of a 64-bit number."""
        undefined = ir.Constant(WORDS, ir.Undefined)
        first = self.b.insert_element(undefined, self.b.trunc(value, I32), ir.Constant(I32, 0))
        return self.b.shuffle_vector(first, undefined, ir.Constant(WORDS, [0] * WIDTH))

    def low_bits(self, bits: Any) -> Any:
        """Sixteen words with as many of their low bits set."""
        one = ir.Constant(I64, 1)
        return self.splat(self.b.sub(self.b.shl(one, bits), one))

    def shuffle(self, a: Any, b: Any, order: list[int]) -> Any:
        """Elements of two vectors, those of the second counted on from the first's."""
        return self.b.shuffle_vector(a, b, ir.Constant(ir.VectorType(I32, len(order)), order))

    def walk(self, n: Any, step: Callable[[Any], None]) -> None:
        """step(index) for every sixteen of n >= 16 elements.

        The last step is shortened to end with the last element, so it may overlap the one before.
        """
        b, sixteen = self.b, ir.Constant(I64, WIDTH)
        final = b.sub(n, sixteen)
        before = b.block
        loop, after = b.append_basic_block("elements"), b.append_basic_block("done")
        b.branch(loop)
        b.position_at_end(loop)
        index = b.phi(I64)
        step(index)
        following = b.add(index, sixteen)
        index.add_incoming(ir.Constant(I64, 0), before)
        index.add_incoming(b.select(b.icmp_unsigned(">", following, final), final, following), loop)
        b.cbranch(b.icmp_unsigned("<", index, final), loop, after)
        b.position_at_end(after)
