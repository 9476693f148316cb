"""Arithmetic in a field of q elements, where q is a prime or a small prime power; standard library only.

In a field of q = p^k elements, k > 1, the integer Σ cᵢ·pⁱ represents the polynomial Σ cᵢ·xⁱ. Polynomials are added
digit by digit modulo p. They are multiplied modulo the irreducible polynomial xᵏ + Σ mᵢ·xⁱ with the smallest Σ mᵢ·pⁱ,
whose coefficients m₀ … mₖ₋₁ are in `MODULI`. Tables hold all sums and products of such a field.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import isqrt
from typing import NamedTuple

MAX_POWER = 256  # the largest prime power that is not a prime; primes are dense enough beyond
MODULI = {
    4: (1, 1),
    8: (1, 1, 0),
    9: (1, 0),
    16: (1, 1, 0, 0),
    25: (2, 0),
    27: (1, 2, 0),
    32: (1, 0, 1, 0, 0),
    49: (1, 0),
    64: (1, 1, 0, 0, 0, 0),
    81: (2, 1, 0, 0),
    121: (1, 0),
    125: (1, 1, 0),
    128: (1, 1, 0, 0, 0, 0, 0),
    169: (2, 0),
    243: (1, 2, 0, 0, 0),
    256: (1, 1, 0, 1, 1, 0, 0, 0),
}


@lru_cache(maxsize=4096)
def is_order(q: int) -> bool:
    """Whether q is supported: a prime, or a prime power up to `MAX_POWER`."""
    return q in MODULI or (q > 1 and all(q % divisor for divisor in range(2, isqrt(q) + 1)))


def characteristic(q: int) -> int:
    """The characteristic of the field."""
    return next(p for p in (2, 3, 5, 7, 11, 13) if q % p == 0) if q in MODULI else q


class Tables(NamedTuple):
    """The arithmetic of a field: a·b and a − b at index a·q + b, and 1/a at index a (0 at index 0)."""

    products: tuple[int, ...]
    differences: tuple[int, ...]
    inverses: tuple[int, ...]


@lru_cache(maxsize=32)
def tables(q: int) -> Tables:
    """The tables of a field of q ≤ `MAX_POWER` elements."""
    p = characteristic(q)
    differences = _digitwise(q, p, -1)
    products = _products(q, p, _digitwise(q, p, 1), differences)
    inverses = [0] * q
    for a in range(1, q):
        inverses[a] = products.index(1, a * q, (a + 1) * q) - a * q
    return Tables(products, differences, tuple(inverses))


def _digitwise(q: int, p: int, sign: int) -> tuple[int, ...]:
    """a + sign·b at index a·q + b, digit by digit modulo p, by recursion over the digits."""
    made = [0] * (q * q)
    for a in range(q):
        for b in range(q):
            made[a * q + b] = (a + sign * b) % p + (p * made[a // p * q + b // p] if a >= p or b >= p else 0)
    return tuple(made)


def _products(q: int, p: int, sums: Sequence[int], differences: Sequence[int]) -> tuple[int, ...]:
    """a·b at index a·q + b, from a, a·x, a·x², … and the digits of b."""
    modulus = MODULI.get(q, (0,))
    reduced = sum(m * p**i for i, m in enumerate(modulus))  # x^k = −reduced
    multiples = [0]  # c·(−reduced) for c = 0 … p − 1
    for _ in range(p - 1):
        multiples.append(differences[multiples[-1] * q + reduced])
    made: list[int] = []
    top = q // p
    for a in range(q):
        row, power = [0] * q, a
        for i in range(len(modulus)):
            start = p**i
            for b in range(start, start * p):  # b's leading digit is that of p^i
                row[b] = sums[row[b - start] * q + power]
            power = sums[power % top * p * q + multiples[power // top]]
        made += row
    return tuple(made)


def times(a: int, b: int, q: int) -> int:
    """a·b."""
    return tables(q).products[a * q + b] if q in MODULI else a * b % q


def minus(a: int, b: int, q: int) -> int:
    """a − b."""
    return tables(q).differences[a * q + b] if q in MODULI else (a - b) % q


def inverse(a: int, q: int) -> int:
    """1/a for a ≠ 0; a^(q − 2) modulo a prime, so that the running time does not depend on a."""
    return tables(q).inverses[a] if q in MODULI else pow(a, q - 2, q)


def dot(first: Sequence[int], second: Iterable[int], q: int) -> int:
    """Σ aᵢ·bᵢ."""
    negative = 0
    for a, b in zip(first, second, strict=True):
        negative = minus(negative, times(a, b, q), q)
    return minus(0, negative, q)
