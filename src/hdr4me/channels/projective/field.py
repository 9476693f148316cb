"""Arithmetic in a field of q numbers, q a prime or a small power of one; standard library only.

In a field of q = p^k numbers, k > 1, the number Σ cᵢ·pⁱ stands for the polynomial Σ cᵢ·xⁱ. Polynomials are added digit
by digit modulo p. They are multiplied modulo an irreducible polynomial xᵏ + Σ mᵢ·xⁱ, the one with the least Σ mᵢ·pⁱ.
All sums and products of such a field are in tables, so that a result takes one look-up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import product
from typing import NamedTuple

MAX_POWER = 256
"""The largest field whose size is no prime: its numbers fit into a byte. Primes are dense enough beyond."""


@lru_cache(maxsize=4096)
def prime_power(q: int) -> tuple[int, int] | None:
    """(p, k) with q = p^k and p a prime, or None.

    >>> prime_power(27), prime_power(13), prime_power(12)
    ((3, 3), (13, 1), None)
    """
    if q < 2:
        return None
    p = next((divisor for divisor in range(2, int(q**0.5) + 2) if q % divisor == 0 and divisor < q), q)
    k = 0
    while q % p == 0:
        q //= p
        k += 1
    return (p, k) if q == 1 else None


def is_order(q: int) -> bool:
    """Whether there is a field of q numbers here: q is a prime, or a power of one up to `MAX_POWER`.

    >>> [q for q in range(33) if is_order(q)]
    [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32]
    """
    found = prime_power(q)
    return found is not None and (found[1] == 1 or q <= MAX_POWER)


class Tables(NamedTuple):
    """A field's arithmetic: a·b and a − b at place a·q + b, and 1/a at place a (0 at place 0)."""

    products: tuple[int, ...]
    differences: tuple[int, ...]
    inverses: tuple[int, ...]


@lru_cache(maxsize=32)
def modulus(q: int) -> tuple[int, ...]:
    """The numbers m₀ … mₖ₋₁ of the irreducible polynomial of a field of q = p^k; empty if q is a prime.

    >>> modulus(4), modulus(9), modulus(256), modulus(7)
    ((1, 1), (1, 0), (1, 1, 0, 1, 1, 0, 0, 0), ())
    """
    found = prime_power(q)
    assert found is not None
    p, k = found
    if k == 1:
        return ()
    divisors = [
        (*digits, 1) for size in range(1, k // 2 + 1) for digits in product(range(p), repeat=size)
    ]  # monic, the constant first
    for number in range(q):
        candidate = tuple(number // p**i % p for i in range(k))
        if all(any(_remainder((*candidate, 1), divisor, p)) for divisor in divisors):
            return candidate
    raise AssertionError("there is an irreducible polynomial of every degree")


def _remainder(dividend: Sequence[int], divisor: Sequence[int], p: int) -> list[int]:
    """What is left of a polynomial after division by a monic one, modulo p."""
    rest, size = list(dividend), len(divisor)
    for top in range(len(rest) - 1, size - 2, -1):
        factor = rest[top]
        for i, m in enumerate(divisor):
            rest[top - size + 1 + i] = (rest[top - size + 1 + i] - factor * m) % p
    return rest[: size - 1]


@lru_cache(maxsize=32)
def tables(q: int) -> Tables:
    """The tables of a field of q ≤ `MAX_POWER` numbers.

    >>> tables(4).products
    (0, 0, 0, 0, 0, 1, 2, 3, 0, 2, 3, 1, 0, 3, 1, 2)
    """
    found = prime_power(q)
    assert found is not None
    p, k = found
    numbers = range(q)
    if k == 1:
        products = tuple(a * b % p for a in numbers for b in numbers)
        differences = tuple((a - b) % p for a in numbers for b in numbers)
    else:
        sums = _digitwise(q, p, 1)
        differences = _digitwise(q, p, -1)
        products = _products(q, p, k, sums, differences)
    inverses = [0] * q
    for a in range(1, q):
        inverses[a] = products.index(1, a * q, (a + 1) * q) - a * q
    return Tables(products, differences, tuple(inverses))


def _digitwise(q: int, p: int, sign: int) -> tuple[int, ...]:
    """a + sign·b at place a·q + b, digit by digit modulo p: the last digits, and p times the result for the others."""
    made = [0] * (q * q)
    for a in range(q):
        for b in range(q):
            made[a * q + b] = (a + sign * b) % p + (p * made[a // p * q + b // p] if a >= p or b >= p else 0)
    return tuple(made)


def _products(q: int, p: int, k: int, sums: Sequence[int], differences: Sequence[int]) -> tuple[int, ...]:
    """a·b at place a·q + b, from a, a·x, a·x², … and b's digits."""
    reduced = sum(m * p**i for i, m in enumerate(modulus(q)))  # x^k = −reduced
    multiples = [0]  # c·(−reduced) for c = 0 … p − 1
    for _ in range(p - 1):
        multiples.append(differences[multiples[-1] * q + reduced])
    made: list[int] = []
    top = q // p
    for a in range(q):
        row, power = [0] * q, a
        for i in range(k):
            start = p**i
            for b in range(start, start * p):  # b's leading digit is that of p^i
                row[b] = sums[row[b - start] * q + power]
            power = sums[power % top * p * q + multiples[power // top]]
        made += row
    return tuple(made)


@lru_cache(maxsize=4096)
def _tables_if_power(q: int) -> Tables | None:
    found = prime_power(q)
    return tables(q) if found is not None and found[1] > 1 else None


def times(a: int, b: int, q: int) -> int:
    """a·b."""
    own = _tables_if_power(q)
    return a * b % q if own is None else own.products[a * q + b]


def minus(a: int, b: int, q: int) -> int:
    """a − b."""
    own = _tables_if_power(q)
    return (a - b) % q if own is None else own.differences[a * q + b]


def inverse(a: int, q: int) -> int:
    """1/a, for a other than 0; modulo a prime as a^(q − 2), with the same exponent for every a.

    >>> [times(a, inverse(a, 7), 7) for a in range(1, 7)], [times(a, inverse(a, 9), 9) for a in range(1, 9)]
    ([1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1, 1])
    """
    own = _tables_if_power(q)
    return pow(a, q - 2, q) if own is None else own.inverses[a]


def dot(first: Sequence[int], second: Iterable[int], q: int) -> int:
    """Σ aᵢ·bᵢ."""
    negative = 0
    for a, b in zip(first, second, strict=True):
        negative = minus(negative, times(a, b, q), q)
    return minus(0, negative, q)
