"""Operations missing in numba: loads from an address, prefetching, bit counts, and LLVM vectors of sixteen elements.

With addresses, one compiled kernel reads NumPy matrices of any layout and Arrow's column buffers without a copy, and
accesses only the sampled dimensions. The vector types are for the small number of loops that compilers do not
vectorize. They work on any little-endian processor and use its widest registers.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic


def emits(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make an intrinsic of this signature from f(builder, *arguments), which emits its LLVM code."""

    def decorate(emit: Callable[..., Any]) -> Any:
        def typed(typingctx: Any, *arguments: Any) -> Any:
            def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                value = emit(builder, *args)
                return context.get_dummy_value() if value is None else value

            return signature, codegen

        # Numba needs argument names and does not accept *arguments.
        names = ["typingctx", *(f"argument{i}" for i in range(len(signature.args)))]
        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        typed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        typed.__name__ = emit.__name__
        return intrinsic(typed)

    return decorate


_word = types.uint64(types.uint64)
_I1, _I8, I32, I64, _I256 = (ir.IntType(bits) for bits in (1, 8, 32, 64, 256))
_DOUBLE = ir.DoubleType()


def emit_loop(
    b: Any, n: Any, step: int, first: Sequence[Any], body: Callable[..., Sequence[Any]]
) -> Sequence[Any]:
    """Emit a loop over 0, step, … below n, at least once; body(index, *values) gives the values for the next round.

    `first` are the values of the first round; those after the last one are returned.
    """
    before = b.block
    loop, after = b.append_basic_block("round"), b.append_basic_block("done")
    b.branch(loop)
    b.position_at_end(loop)
    index, values = b.phi(I64), [b.phi(value.type) for value in first]
    new = body(index, *values)
    following = b.add(index, ir.Constant(I64, step))
    starts, nexts = [ir.Constant(I64, 0), *first], [following, *new]
    for phi, start, then in zip([index, *values], starts, nexts, strict=True):
        phi.add_incoming(start, before)
        phi.add_incoming(then, loop)
    b.cbranch(b.icmp_unsigned("<", following, n), loop, after)
    b.position_at_end(after)
    return new


def _at(builder: Any, address: Any, kind: Any) -> Any:
    return builder.inttoptr(address, kind.as_pointer())


# Element types that a column may have; a column is described by its type's number here.
DTYPES = tuple(np.dtype(name) for name in ("f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1"))


def _loader(number: int) -> Any:
    """An intrinsic that reads one element of the numbered type, at any alignment, as a float64."""
    kind, bits = DTYPES[number].kind, 8 * DTYPES[number].itemsize
    stored = ir.IntType(bits) if kind in "iu" else _DOUBLE if bits == 64 else ir.FloatType()

    @emits(types.float64(types.uint64))
    def read(b: Any, address: Any) -> Any:
        value = b.load(_at(b, address, stored), align=1, typ=stored)
        if kind in "iu":
            return (b.sitofp if kind == "i" else b.uitofp)(value, _DOUBLE)
        return value if bits == 64 else b.fpext(value, _DOUBLE)

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


@emits(_word)
def trailing_zeros(b: Any, word: Any) -> Any:
    """The position of the lowest set bit of a uint64; 64 if there is none."""
    return b.cttz(word, ir.Constant(_I1, 0))


@emits(_word)
def ones(b: Any, word: Any) -> Any:
    """The number of set bits of a uint64."""
    return b.ctpop(word)


@emits(_word)
def one_byte(b: Any, address: Any) -> Any:
    """The byte at an address."""
    return b.zext(b.load(_at(b, address, _I8), align=1, typ=_I8), I64)


@emits(_word)
def eight_bytes(b: Any, address: Any) -> Any:
    """The eight bytes at an address of any alignment."""
    return b.load(_at(b, address, I64), align=1, typ=I64)


@emits(types.void(types.uint64, types.uint64))
def put_byte(b: Any, address: Any, value: Any) -> None:
    """Write the lowest byte of a uint64 to an address."""
    b.store(b.trunc(value, _I8), _at(b, address, _I8), align=1)


@emits(types.void(types.uint64, types.uint64))
def put_eight(b: Any, address: Any, value: Any) -> None:
    """Write a uint64 to an address of any alignment."""
    b.store(value, _at(b, address, I64), align=1)


@emits(types.boolean(types.uint64, types.uint64))
def same_32(b: Any, one: Any, other: Any) -> Any:
    """Whether the 32 bytes at two addresses are the same."""
    return b.icmp_unsigned("==", *(b.load(_at(b, x, _I256), align=1, typ=_I256) for x in (one, other)))


def emit_prefetch(builder: Any, address: Any, *, write: int, near: int = 3) -> None:
    """Emit a request for the cache line at an address, to read or write it; near 3 is the first cache, 2 the second."""
    name, pointer = "llvm.prefetch.p0", _I8.as_pointer()
    known = builder.module.globals.get(name)
    kind = ir.FunctionType(ir.VoidType(), [pointer, I32, I32, I32])
    purpose, level, data = (ir.Constant(I32, value) for value in (write, near, 1))
    function = known or ir.Function(builder.module, kind, name)
    builder.call(function, [builder.inttoptr(address, pointer), purpose, level, data])


@emits(types.void(types.uint64))
def prefetch(b: Any, address: Any) -> None:
    """Prefetch the cache line at an address into the second-level cache: many at a time, where loads would wait."""
    emit_prefetch(b, address, write=0, near=2)


WIDTH = 16  # elements at once
WORDS, HALVES = ir.VectorType(I32, WIDTH), ir.VectorType(ir.IntType(16), WIDTH)
BYTES = ir.VectorType(_I8, 4 * WIDTH)


class Emitter:
    """The required vector instructions on addresses and registers."""

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
        """Sixteen words with this number of low bits set."""
        one = ir.Constant(I64, 1)
        return self.splat(self.b.sub(self.b.shl(one, bits), one))

    def shuffle(self, a: Any, b: Any, order: list[int]) -> Any:
        """Elements of two vectors by index; the indices of the second vector follow those of the first."""
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
