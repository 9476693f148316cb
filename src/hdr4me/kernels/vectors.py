"""LLVM's vector types for the few loops that no compiler vectorises by itself: sixteen elements at once.

Any processor runs them, with the widest registers it has.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]

__all__ = ["BYTES", "I8", "I16", "I32", "I64", "WIDTH", "WORDS", "Emitter"]

WIDTH = 16
"""Elements at once."""

I8, I16, I32, I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
WORDS, BYTES = ir.VectorType(I32, WIDTH), ir.VectorType(I8, 4 * WIDTH)


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

    def shuffle(self, a: Any, b: Any, order: list[int]) -> Any:
        """Elements of two vectors, those of the second counted on from the first's."""
        return self.b.shuffle_vector(a, b, ir.Constant(ir.VectorType(I32, len(order)), order))
