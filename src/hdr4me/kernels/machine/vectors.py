"""LLVM's vector types for the few loops that no compiler vectorises by itself: sixteen elements at once.

Any processor runs them, with the widest registers it has, if its numbers begin with their lowest byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]

__all__ = ["BYTES", "HALVES", "I32", "I64", "WIDTH", "WORDS", "Emitter"]

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
