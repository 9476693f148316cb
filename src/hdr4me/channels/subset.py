"""Subsets of categories as outputs: subset selection, and generalized randomized response for sets of size 1.

The heavy outputs of category x are the sets that contain x (Ye and Barg 2018; Wang et al. 2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb

from hdr4me.channels.channel import Draws
from hdr4me.channels.k_subset import SetFamily
from hdr4me.channels.proof import ONE

MAX_SIZE = 1 << 20
_MAX_ROWS = 256


@dataclass(frozen=True)
class Subset(SetFamily):
    """Sets of `chosen` out of `size` categories, sent in increasing order; each member has a counter."""

    name = "subset"
    response_class = "hdr4me.channels.k_subset_response:SubsetResponse"

    size: int
    chosen: int

    def __post_init__(self) -> None:
        self.check_integer("size", 2, MAX_SIZE)
        self.check_integer("chosen", 1, self.size - 1)

    @property
    def n_items(self) -> int:
        return self.size

    @cached_property
    def n_heavy(self) -> int:
        return comb(self.size - 1, self.chosen - 1)

    def is_heavy(self, x: int, output: Sequence[int]) -> bool:
        return x in output

    def draw(self, x: int, heavy: bool, draws: Draws) -> tuple[int, ...]:
        """A uniform set of the other categories; for a heavy output, x replaces a random one of them."""
        others = sorted(_subset(self.size - 1, self.chosen, draws))
        place = draws.below(self.chosen)
        full = [k + (k >= x) for k in others]
        return tuple(sorted([x if heavy and i == place else k for i, k in enumerate(full)]))

    def shares(self, p: Fraction) -> tuple[Fraction, Fraction]:
        w, v = self.chosen, self.size
        return p, (p * (w - 1) + (1 - p) * w) / (v - 1)

    def pair_shares(self, p: Fraction) -> tuple[Fraction, Fraction]:
        """P(two categories are both in the output) if one of them is the user's, and if neither is."""
        w, v = self.chosen, self.size
        others = (p * (w - 1) * (w - 2) + (1 - p) * w * (w - 1)) / ((v - 1) * max(v - 2, 1))
        return p * (w - 1) / (v - 1), others

    def integer_rows(self, weight: int) -> tuple[tuple[int, ...], ...] | None:
        """For sets of size 1, if the light weight is an integer for each category and a cell is one byte."""
        v = self.size
        if self.chosen > 1 or v > _MAX_ROWS or (ONE - weight) % (v - 1):
            return None
        other = (ONE - weight) // (v - 1)
        return tuple(tuple(weight if y == x else other for y in range(v)) for x in range(v))


def _subset(n: int, size: int, draws: Draws) -> set[int]:
    """A uniform set of `size` integers below `n` (Floyd's algorithm: one draw per member)."""
    found: set[int] = set()
    for j in range(n - size, n):
        t = draws.below(j + 1)
        found.add(j if t in found else t)
    return found
