"""Arithmetic in a field of q numbers: q a prime, or 4; standard library only.

In the field of 4 the numbers 0 to 3 stand for 0, 1, w and w + 1 with w² = w + 1: they add as bits do without a carry.
Four is the only power of a prime here, for it is the best size at ε = 1, and its neighbours serve everywhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["PRODUCTS_OF_4", "dot", "inverse", "is_order", "minus", "times"]

PRODUCTS_OF_4 = (0, 0, 0, 0, 0, 1, 2, 3, 0, 2, 3, 1, 0, 3, 1, 2)
"""a·b at place 4a + b."""


def is_order(q: int) -> bool:
    """Whether there is a field of q numbers here: q is a prime, or 4.

    >>> [q for q in range(12) if is_order(q)]
    [2, 3, 4, 5, 7, 11]
    """
    if q < 5:
        return q in (2, 3, 4)
    return q % 2 == 1 and all(q % divisor for divisor in range(3, int(q**0.5) + 2, 2))


def times(a: int, b: int, q: int) -> int:
    """a·b."""
    return PRODUCTS_OF_4[4 * a + b] if q == 4 else a * b % q


def minus(a: int, b: int, q: int) -> int:
    """a − b."""
    return a ^ b if q == 4 else (a - b) % q


def inverse(a: int, q: int) -> int:
    """1/a as a^(q − 2), for a other than 0: the same exponent for every a.

    >>> [times(a, inverse(a, 7), 7) for a in range(1, 7)], [times(a, inverse(a, 4), 4) for a in (1, 2, 3)]
    ([1, 1, 1, 1, 1, 1], [1, 1, 1])
    """
    return times(a, a, q) if q == 4 else pow(a, q - 2, q)


def dot(first: Sequence[int], second: Iterable[int], q: int) -> int:
    """Σ aᵢ·bᵢ."""
    total = 0
    for a, b in zip(first, second, strict=True):
        product = times(a, b, q)
        total = total ^ product if q == 4 else (total + product) % q
    return total
