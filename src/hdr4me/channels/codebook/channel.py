"""Codewords as outputs: a vector in a ball is answered by a seed and a codeword; standard library only.

A seed determines K codewords, vectors of independent and nearly normal numbers. The k codewords with the largest inner
products with the input are heavy. Each report has its own random seed, which is sent with it, so that the mean of the
heavy codewords has the direction of the input. The ranking may use floats, because k is fixed and privacy follows from
the fraction of the k-subset response.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from math import sqrt
from operator import mul
from statistics import NormalDist

from hdr4me.channels.channel import Draws, Field, Input
from hdr4me.channels.k_subset import Family

N_LEVELS = 256  # levels of a codeword's numbers; a tally counts the levels of each coordinate
MAX_LENGTH = 4096
MAX_CODEWORDS = 65536
PRECISION = 21  # bits of a coordinate of an input

_WIDTH = 1 / 28  # of a level, in standard deviations
_64 = (1 << 64) - 1


def mix(counter: int) -> int:
    """64 bits from a counter: the output of SplitMix64 at this position of its sequence."""
    z = counter * 0x9E3779B97F4A7C15 & _64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _64
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _64
    return z ^ z >> 31


@cache
def thresholds() -> tuple[int, ...]:
    """The first of the 65,536 half words of each level, and 65,536: level l is the l-th of 256 normal bins.

    The levels are symmetric: l and 255 − l are equally likely.
    """
    law, half = NormalDist(), N_LEVELS // 2
    lower = [round(65536 * law.cdf((level - half) * _WIDTH)) for level in range(half)]
    return (*lower, 32768, *(65536 - first for first in reversed(lower)))


@cache
def values() -> tuple[float, ...]:
    """The value of each level: the mean of a normal number in its bin; 0 for an unused level."""
    law, ends = NormalDist(), thresholds()
    density = [0.0 if end in (0, 65536) else law.pdf(law.inv_cdf(end / 65536)) for end in ends]
    return tuple(
        (density[level] - density[level + 1]) * 65536 / (ends[level + 1] - ends[level])
        if ends[level + 1] > ends[level]
        else 0.0
        for level in range(N_LEVELS)
    )


@cache
def word_levels() -> bytes:
    """The level of each half word."""
    ends = thresholds()
    return b"".join(bytes([level]) * (ends[level + 1] - ends[level]) for level in range(N_LEVELS))


@cache
def _word_values() -> tuple[float, ...]:
    return tuple(map(values().__getitem__, word_levels()))


def lifted(vector: Sequence[float]) -> list[float]:
    """A vector of the ball, lifted to the sphere by one more coordinate √(1 − |x|²)."""
    return [*vector, sqrt(max(0.0, 1.0 - sum(map(mul, vector, vector))))]


@dataclass(frozen=True)
class Codebook(Family):
    """`codewords` vectors for each seed, of which the `heavy` vectors nearest in direction to the input are heavy.

    An input is a vector of the ball of norm 1 in `length` dimensions, its coordinates rounded to `precision` bits. It
    is lifted to the sphere in one dimension more, so that the mean of an output is linear in the vector, not only in
    its direction. Number i of codeword c under seed s is the level of half word i mod 4 of
    mix(2^32·s + 2^16·c + ⌊i/4⌋). Each coordinate has a counter for each level.
    """

    name = "codebook"
    response_class = "hdr4me.channels.codebook.response:CodebookResponse"

    length: int
    codewords: int
    heavy: int
    seed_bits: int = 32
    precision: int = PRECISION

    def __post_init__(self) -> None:
        self.check_integer("length", 1, MAX_LENGTH)
        self.check_integer("codewords", 2, MAX_CODEWORDS)
        self.check_integer("heavy", 1, self.codewords // 2)
        self.check_integer("seed_bits", 1, 32)
        self.check_integer("precision", 2, PRECISION)

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        return (Input("vector", 1 << self.precision * self.length),)

    @property
    def n_outputs(self) -> int:
        return self.codewords << self.seed_bits

    @property
    def n_heavy(self) -> int:
        return self.heavy << self.seed_bits

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        return Field(1 << self.seed_bits), Field(self.codewords)

    @property
    def n_counters(self) -> int:
        return N_LEVELS * self.length

    @property
    def per_report(self) -> int:
        return self.length

    @property
    def device_cost(self) -> int:
        return self.codewords * (self.length + 1)

    @property
    def one(self) -> int:
        """The digit of a coordinate of 1, relative to the middle."""
        return (1 << self.precision - 1) - 1

    def number(self, vector: Sequence[float]) -> int:
        """The input of a vector in the unit ball: its coordinates as digits, the first being the most significant."""
        found = 0
        for x in vector:
            found = found << self.precision | round(x * self.one) + self.one
        return found

    def vector(self, x: int) -> list[float]:
        """The vector of an input."""
        mask, bits = (1 << self.precision) - 1, self.precision
        digits = [x >> bits * place & mask for place in range(self.length - 1, -1, -1)]
        return [digit / self.one - 1.0 for digit in digits]

    def codeword(self, seed: int, index: int) -> tuple[int, ...]:
        """The half words of a codeword, whose levels are its numbers; one more than the coordinates of the vector."""
        n_words = self.length // 4 + 1
        first = seed << 32 | index << 16
        words = struct.pack(f"<{n_words}Q", *[mix(first + w) for w in range(n_words)])
        return struct.unpack(f"<{4 * n_words}H", words)[: self.length + 1]

    def order(self, x: int, seed: int) -> list[int]:
        """The codewords in decreasing order of their inner product with the input; ties by index."""
        target, number = lifted(self.vector(x)), _word_values().__getitem__
        scores = [
            -sum(map(mul, map(number, self.codeword(seed, index)), target)) for index in range(self.codewords)
        ]
        return sorted(range(self.codewords), key=scores.__getitem__)

    def is_heavy(self, x: int, output: Sequence[int]) -> bool:
        return output[1] in self.order(x, output[0])[: self.heavy]

    def draw(self, x: int, heavy: bool, draws: Draws) -> tuple[int, ...]:
        """Draws a seed and two ranks, and uses one of the ranks.

        All K codewords are compared with the input. Under a random seed their order is uniform for every input.
        """
        seed = draws.bits(self.seed_bits)
        inside, outside = draws.below(self.heavy), draws.below(self.codewords - self.heavy)
        return seed, self.order(x, seed)[inside if heavy else self.heavy + outside]

    def counters(self, output: Sequence[int]) -> Iterator[int]:
        levels = word_levels()
        words = self.codeword(output[0], output[1])[: self.length]
        return (N_LEVELS * j + levels[word] for j, word in enumerate(words))

    def are_counts(self, counts: Sequence[int], n: int) -> bool:
        return all(sum(counts[N_LEVELS * j : N_LEVELS * (j + 1)]) == n for j in range(self.length))

    def shares(self, p: Fraction) -> tuple[Fraction, Fraction]:
        """P(an output is heavy) for its own input, and under the uniform distribution of outputs."""
        return p, Fraction(self.heavy, self.codewords)

    def worst_pair(self) -> tuple[int, int]:
        """The two ends of the first axis: codewords near one are far from the other."""
        rest = [0.0] * (self.length - 1)
        return self.number([1.0, *rest]), self.number([-1.0, *rest])

    def outputs(self) -> Iterator[tuple[int, ...]]:
        seeds = range(1 << self.seed_bits)
        return ((seed, index) for seed in seeds for index in range(self.codewords))
