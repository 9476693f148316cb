"""Hadamard response, the only baseline whose report is not that of another channel; standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from hdr4me.channels.channel import Draws
from hdr4me.channels.k_subset import Family

MAX_SIZE = 4096  # the largest number of categories of a baseline


@dataclass(frozen=True)
class Hadamard(Family):
    """Hadamard response (Acharya, Sun and Zhang 2019): `blocks` blocks of outputs, each with a Hadamard matrix.

    Category x belongs to block x mod blocks and to row x // blocks + 1 of its matrix. Its heavy outputs are those of
    its block with the entry +1 in this row. One block is the variant of the authors for a small ε.
    """

    name = "hadamard"
    response_class = "hdr4me.channels.baselines.response:HadamardResponse"

    size: int
    blocks: int

    def __post_init__(self) -> None:
        self.check_integer("size", 2, MAX_SIZE)
        self.check_integer("blocks", 1, self.size)

    @cached_property
    def width(self) -> int:
        """The number of outputs of a block: a power of 2 above the number of its categories."""
        return 1 << (-(-self.size // self.blocks)).bit_length()

    @property
    def n_outputs(self) -> int:
        return self.blocks * self.width

    @property
    def n_heavy(self) -> int:
        return self.width // 2

    def block_and_row(self, x: int) -> tuple[int, int]:
        """The block and the row of a category."""
        return x % self.blocks, x // self.blocks + 1

    def is_heavy(self, x: int, output: Sequence[int]) -> bool:
        block, row = self.block_and_row(x)
        return output[0] // self.width == block and (output[0] % self.width & row).bit_count() % 2 == 0

    def draw(self, x: int, heavy: bool, draws: Draws) -> tuple[int, ...]:
        """All bits of a column but one are drawn; the bit at the first 1 of the row gives the entry its sign.

        A light output is in the same half of a block, or in one of the other blocks.
        """
        block, row = self.block_and_row(x)
        inside, outside = draws.below(self.n_heavy), draws.below(self.n_outputs - self.n_heavy)
        free = inside if heavy else outside % self.n_heavy
        low = (row & -row) - 1  # the bits below the first 1 of the row
        column = (free & low) | (free & ~low) << 1
        column |= (low + 1) * (((column & row).bit_count() + (not heavy)) % 2)
        other = outside - self.n_heavy
        elsewhere = other + (self.width if other >= block * self.width else 0)
        return (elsewhere if not heavy and other >= 0 else block * self.width + column,)

    def shares(self, p: Fraction) -> tuple[Fraction, Fraction]:
        """P(an output supports x) of users with x, and the mean of this probability over the other categories."""
        light = (1 - p) / (self.n_outputs - self.n_heavy)
        beside = p / 2 + light * self.n_heavy / 2
        q = beside * self.share_beside + light * self.n_heavy * (1 - self.share_beside)
        return p, q

    @cached_property
    def share_beside(self) -> Fraction:
        """The share of the pairs of different categories that belong to one block."""
        full, more = divmod(self.size, self.blocks)
        pairs = more * (full + 1) * full + (self.blocks - more) * full * (full - 1)
        return Fraction(pairs, self.size * (self.size - 1))
