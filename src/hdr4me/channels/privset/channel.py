"""Sets as inputs: several categories at once, answered by a set of others (PrivSet, Wang et al. 2018).

An input is a set of exactly s items, out of v categories and s dummies that pad smaller sets. An output is a set of w
items. It is heavy for an input if they share an item.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate
from math import comb

from hdr4me.channels.channel import Draws, Input
from hdr4me.channels.k_subset import KSubset, SetFamily, heaviest
from hdr4me.channels.proof import ONE, check_epsilon
from hdr4me.errors import InvalidInput

MAX_INPUTS = 1 << 47  # sets: an index must fit into 63 bits with a fraction of 16 bits
_MOST_CHOSEN = 256


def rank(members: Sequence[int]) -> int:
    """The index of a set in the combinatorial number system: Σ C(cᵢ, i) over its members in increasing order."""
    return sum(comb(member, i) for i, member in enumerate(sorted(members), start=1))


def unrank(number: int, size: int, n_items: int) -> tuple[int, ...]:
    """The set of `size` items below `n_items` with this index, in a constant number of steps."""
    found: list[int] = []
    for i in range(size, 0, -1):
        low, step = 0, 1 << (n_items.bit_length() - 1)
        while step:
            ahead = low + step
            low = ahead if ahead < n_items and comb(ahead, i) <= number else low
            step >>= 1
        number -= comb(low, i)
        found.append(low)
    return tuple(reversed(found))


@dataclass(frozen=True)
class PrivSet(SetFamily):
    """Sets of w = `chosen` items as answers to sets of up to s = `most` out of v = `size` categories."""

    name = "privset"
    response_class = "hdr4me.channels.privset.response:PrivSetResponse"

    size: int
    most: int
    chosen: int

    def __post_init__(self) -> None:
        self.check_integer("size", 2, 65536)
        self.check_integer("most", 1, self.size)
        self.check_integer("chosen", 1, self.size)
        if comb(self.size + self.most, self.most) > MAX_INPUTS:
            raise InvalidInput.of(
                "most", self.most, f"at most 2**47 different sets of {self.size} categories"
            )

    @property
    def n_items(self) -> int:
        """Categories and dummies."""
        return self.size + self.most

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        return (Input("selection", comb(self.n_items, self.most)),)

    @cached_property
    def n_heavy(self) -> int:
        return self.n_outputs - comb(self.size, self.chosen)

    def members(self, x: int) -> tuple[int, ...]:
        """The items of input x."""
        return unrank(x, self.most, self.n_items)

    def worst_pair(self) -> tuple[int, int]:
        """The first s categories, and the empty set: they share no item."""
        return rank(range(self.most)), rank(range(self.size, self.n_items))

    def is_heavy(self, x: int, output: Sequence[int]) -> bool:
        return not set(self.members(x)).isdisjoint(output)

    @cached_property
    def ways(self) -> tuple[int, ...]:
        """The numbers of heavy outputs that share at most 1, 2, … items with an input."""
        s, w = self.most, self.chosen
        return tuple(accumulate(comb(s, j) * comb(self.size, w - j) for j in range(1, min(s, w) + 1)))

    def draw(self, x: int, heavy: bool, draws: Draws) -> tuple[int, ...]:
        """Draws the number of shared items, then the items of the input and the others in random order.

        The numbers of draws and their bounds depend neither on x nor on whether the output is heavy.
        """
        own = self.members(x)
        inside = set(own)
        others = [item for item in range(self.n_items) if item not in inside]
        word = draws.below(self.n_heavy)
        shared = 1 + sum([word >= ways for ways in self.ways[:-1]])
        mine = _shuffled(own, min(self.most, self.chosen), draws)
        rest = _shuffled(others, self.chosen, draws)
        n_shared = shared if heavy else 0
        return tuple(sorted([*mine[:n_shared], *rest[: self.chosen - n_shared]]))

    def shares(self, p: Fraction) -> tuple[Fraction, Fraction]:
        every, none = comb(self.n_items - 1, self.chosen - 1), comb(self.size - 1, self.chosen - 1)
        return self._with(p, every, 0), self._with(p, every - none, none)

    def pair_shares(self, p: Fraction) -> tuple[Fraction, Fraction]:
        """P(two items are both in the output) if the user has at least one of them, and if the user has neither."""
        if self.chosen < 2:
            return Fraction(0), Fraction(0)
        every, none = comb(self.n_items - 2, self.chosen - 2), comb(self.size - 2, self.chosen - 2)
        return self._with(p, every, 0), self._with(p, every - none, none)

    def _with(self, p: Fraction, n_heavy: int, n_light: int) -> Fraction:
        """The probability of a number of heavy and of light outputs."""
        k, n = self.n_heavy, self.n_outputs
        return p * Fraction(n_heavy, k) + (1 - p) * Fraction(n_light, n - k)


def _shuffled(items: Sequence[int], n: int, draws: Draws) -> list[int]:
    """n of the items in uniformly random order, by n draws."""
    left = list(items)
    for i in range(n):
        j = i + draws.below(len(left) - i)
        left[i], left[j] = left[j], left[i]
    return left[:n]


def total_error(epsilon: float, family: PrivSet) -> float:
    """n·Σ Var over all items, including dummies: (s·p(1 − p) + (V − s)·q(1 − q))/(p − q)²."""
    p, q = family.shares(Fraction(heaviest(epsilon, family), ONE))
    return float((family.most * p * (1 - p) + family.size * q * (1 - q)) / (p - q) ** 2)


@lru_cache(maxsize=64)
def selection_channel(epsilon: float, category_count: int, at_most: int) -> KSubset:
    """The PrivSet channel with the output size of the smallest error."""
    check_epsilon(epsilon)
    best, error = PrivSet(category_count, at_most, 1), float("inf")
    for chosen in range(1, min(category_count, _MOST_CHOSEN) + 1):
        family = PrivSet(category_count, at_most, chosen)
        found = total_error(epsilon, family)
        if found >= error:
            break
        best, error = family, found
    return KSubset("privset", float(epsilon), best, heaviest(epsilon, best))
