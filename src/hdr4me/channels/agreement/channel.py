"""Blocks of signs as outputs: many numbers, each rounded to −1 or 1, answered by one report; standard library only.

The heavy outputs of a block of signs are the blocks that agree with it in at least τ positions. Outputs are numbered by
the number of positions in which they differ, so that the heavy outputs have the first k numbers, and one bounded random
integer gives one output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import comb

from hdr4me.channels.channel import Draws, Field, Input
from hdr4me.channels.k_subset import Family

FIELD_BITS = 64  # signs in one field
MAX_SIZE = 1024  # numbers in one block


@dataclass(frozen=True)
class Agreement(Family):
    """Blocks of `size` signs; those that agree with the input in at least `agreeing` positions are heavy.

    A block is an integer whose bits are the signs (1 for +1), with the first dimension as the most significant bit. It
    is sent in fields of 64 signs, in the order of the dimensions. Each dimension has two counters, for −1 and for +1.
    """

    name = "agreement"
    response_class = "hdr4me.channels.agreement.response:AgreementResponse"

    size: int
    agreeing: int

    def __post_init__(self) -> None:
        self.check_integer("size", 2, MAX_SIZE)
        self.check_integer("agreeing", self.size // 2 + 1, self.size)

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        return (Input("number", 2),) * self.size

    @property
    def n_outputs(self) -> int:
        return 1 << self.size

    @cached_property
    def n_heavy(self) -> int:
        return self.ends[self.size - self.agreeing]

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """The number of signs in each field."""
        full, rest = divmod(self.size, FIELD_BITS)
        return (FIELD_BITS,) * full + ((rest,) if rest else ())

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(1 << width) for width in self.widths)

    @property
    def n_counters(self) -> int:
        return 2 * self.size

    @property
    def per_report(self) -> int:
        return self.size

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """The numbers of blocks that differ from a given block in at most 0, 1, … b positions."""
        return tuple(accumulate(comb(self.size, t) for t in range(self.size + 1)))

    def joined(self, output: Sequence[int]) -> int:
        """The block in the fields of an output."""
        block = 0
        for width, number in zip(self.widths, output, strict=True):
            block = block << width | number
        return block

    def split(self, block: int) -> tuple[int, ...]:
        """The fields of a block."""
        left, found = self.size, []
        for width in self.widths:
            left -= width
            found.append(block >> left & ((1 << width) - 1))
        return tuple(found)

    def is_heavy(self, x: int, output: Sequence[int]) -> bool:
        return (x ^ self.joined(output)).bit_count() <= self.size - self.agreeing

    def differing(self, number: int) -> int:
        """The positions in which output `number` differs from the input, as bits, in a constant number of steps.

        Outputs that differ in t positions have the numbers from ends[t − 1] on, in the combinatorial number system.
        """
        t = sum([number >= end for end in self.ends[:-1]])
        number -= self.ends[t - 1] if t else 0
        found = 0
        for place in range(self.size - 1, -1, -1):
            ways = comb(place, t)  # number of choices in which all t positions are below this one
            included = number >= ways
            number -= ways if included else 0
            found = found << 1 | included
            t -= included
        return found

    def draw(self, x: int, heavy: bool, draws: Draws) -> tuple[int, ...]:
        inside, outside = draws.below(self.n_heavy), draws.below(self.n_outputs - self.n_heavy)
        return self.split(x ^ self.differing(inside if heavy else self.n_heavy + outside))

    def counters(self, output: Sequence[int]) -> Iterator[int]:
        block = self.joined(output)
        return (2 * j + (block >> (self.size - 1 - j) & 1) for j in range(self.size))

    def are_counts(self, counts: Sequence[int], n: int) -> bool:
        return all(counts[2 * j] + counts[2 * j + 1] == n for j in range(self.size))

    def shares(self, p: Fraction) -> tuple[Fraction, Fraction]:
        """P(a reported sign is +1) if the user's sign is +1, and if it is −1.

        Among the outputs that differ in t positions, the share 1 − t/b agrees in a given position.
        """
        k, heavy = self.n_heavy, self.size - self.agreeing + 1
        ways = [comb(self.size - 1, t) for t in range(self.size)]
        agree = p * Fraction(sum(ways[:heavy]), k) + (1 - p) * Fraction(sum(ways[heavy:]), self.n_outputs - k)
        return agree, 1 - agree

    def pair_mean(self, p: Fraction) -> Fraction:
        """E[a·b] for two signs of an output, each 1 if it agrees with the input and −1 if it differs.

        An output that differs in t of b positions has (b − 2t)² = b + b(b − 1)·a·b on average over pairs.
        """
        k, n, b = self.n_heavy, self.n_outputs, self.size
        squares = [comb(b, t) * (b - 2 * t) ** 2 for t in range(b + 1)]
        heavy = b - self.agreeing + 1
        mean = p * Fraction(sum(squares[:heavy]), k) + (1 - p) * Fraction(sum(squares[heavy:]), n - k)
        return (mean - b) / (b * (b - 1))

    def worst_pair(self) -> tuple[int, int]:
        return 0, self.n_outputs - 1

    def outputs(self) -> Iterator[tuple[int, ...]]:
        return map(self.split, range(self.n_outputs))
