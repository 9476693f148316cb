"""Points of a projective space as outputs: a report is one index for any number of categories.

Categories and outputs are points of the projective space PG(t − 1, q). The heavy outputs of category x are the points
of the hyperplane of x, those y with ⟨x, y⟩ = 0 (Feldman, Nelson, Nguyen and Talwar 2022: projective geometry response).
Any two hyperplanes share the same number λ of points, so all pairs of categories are equally distinguishable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any, Self

from hdr4me.channels.channel import Draws
from hdr4me.channels.k_subset import Family
from hdr4me.channels.projective.field import MAX_POWER, MODULI, dot, inverse, is_order, minus, times
from hdr4me.errors import FormatError, InvalidInput

MAX_POINTS = 1 << 24  # A tally has one counter for each point


def n_points(order: int, length: int) -> int:
    """The number of points of PG(length − 1, order): (q^t − 1)/(q − 1)."""
    return int(order**length - 1) // (order - 1)


@dataclass(frozen=True)
class Projective(Family):
    """`size` categories as the first points of PG(length − 1, order), with a prime order or a prime power up to 256.

    A point is a vector whose first nonzero element is 1. Points with f elements after that 1 have the indices from
    (q^f − 1)/(q − 1) on, in the order of these elements as digits.
    """

    name = "projective"
    response_class = "hdr4me.channels.projective.response:ProjectiveResponse"

    size: int
    order: int
    length: int

    def __post_init__(self) -> None:
        if type(self.order) is not int or not 2 <= self.order < MAX_POINTS or not is_order(self.order):
            raise InvalidInput.of(
                "order", self.order, f"a prime below {MAX_POINTS}, or a power of a prime up to {MAX_POWER}"
            )
        if type(self.length) is not int or not 2 <= self.length <= 24 or self.n_outputs > MAX_POINTS:
            raise InvalidInput.of("length", self.length, f"an integer >= 2 with at most {MAX_POINTS} points")
        self.check_integer("size", 2, self.n_outputs)

    @cached_property
    def n_outputs(self) -> int:
        return n_points(self.order, self.length)

    @cached_property
    def n_heavy(self) -> int:
        return n_points(self.order, self.length - 1)

    def vector(self, index: int, length: int | None = None) -> tuple[int, ...]:
        """The vector of a point of this space, or of a space with vectors of `length`."""
        q, t = self.order, self.length if length is None else length
        free = self._free(index, t)
        return _digits(q**free + index - n_points(q, free), q, t)

    def _free(self, index: int, length: int) -> int:
        """The number of elements after the first 1 of a point's vector."""
        return sum([index >= n_points(self.order, f) for f in range(1, length)])

    def index(self, vector: Sequence[int]) -> int:
        """The index of a vector whose first nonzero element is 1."""
        q = self.order
        number = reduce(lambda found, digit: found * q + digit, vector)
        free = sum([number >= q**f for f in range(1, self.length)])
        return number - int(q**free) + n_points(q, free)

    def is_heavy(self, x: int, output: Sequence[int]) -> bool:
        return dot(self.vector(x), self.vector(output[0]), self.order) == 0

    def draw(self, x: int, heavy: bool, draws: Draws) -> tuple[int, ...]:
        """Draws all elements of the vector but one; the element at the position of x's first 1 makes ⟨x, y⟩ 0 or 1.

        A heavy point comes from a uniform point of a space with one dimension less. A light point has exactly one
        vector with ⟨x, y⟩ = 1, so it comes from uniform digits. Both are always drawn, and one of them is used.
        """
        q, t = self.order, self.length
        inside = self.vector(draws.below(self.n_heavy), t - 1)
        outside = _digits(draws.below(q ** (t - 1)), q, t - 1)
        free = [a if heavy else b for a, b in zip(inside, outside, strict=True)]
        point = self.vector(x)
        place = t - 1 - self._free(x, t)
        others = dot((*point[:place], *point[place + 1 :]), free, q)
        found = (*free[:place], minus(0 if heavy else 1, others, q), *free[place:])
        scale = inverse(next(filter(None, found)), q)
        return (self.index([times(scale, number, q) for number in found]),)

    def shares(self, p: Fraction) -> tuple[Fraction, Fraction]:
        """Two hyperplanes share λ = (q^(t−2) − 1)/(q − 1) points: p, and pλ/k + (1 − p)(k − λ)/(N − k)."""
        n, k, shared = self.n_outputs, self.n_heavy, n_points(self.order, self.length - 2)
        return p, p * Fraction(shared, k) + (1 - p) * Fraction(k - shared, n - k)

    def to_dict(self) -> dict[str, Any]:
        """Size, order and length, and the modulus polynomial if the order is not a prime.

        Documents omit the polynomial of the field of 4 elements, which is unique.
        """
        own = {} if self.order == 4 or self.order not in MODULI else {"modulus": list(MODULI[self.order])}
        return super().to_dict() | own

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Self:
        made = super().from_dict({key: value for key, value in document.items() if key != "modulus"})
        expected = made.to_dict().get("modulus", "no modulus")
        if document.get("modulus", "no modulus") != expected:
            raise FormatError(
                f"modulus = {document.get('modulus')!r} is not allowed: a field of {made.order} elements has {expected}"
            )
        return made


def _digits(number: int, q: int, length: int) -> tuple[int, ...]:
    """The digits of a number in base q, the most significant first."""
    return tuple(number // q**f % q for f in reversed(range(length)))
