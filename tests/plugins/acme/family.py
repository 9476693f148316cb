"""A family of outputs for the k-subset response: neighbors on a ring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from hdr4me.channels import Draws
from hdr4me.channels.k_subset import Family


@dataclass(frozen=True)
class Window(Family):
    """Outputs on a ring of `size`: the `width` outputs from the category on are heavy."""

    name = "window"

    size: int
    width: int

    @property
    def n_outputs(self) -> int:
        return self.size

    @property
    def n_heavy(self) -> int:
        return self.width

    def is_heavy(self, x: int, output: Sequence[int]) -> bool:
        return (output[0] - x) % self.size < self.width

    def draw(self, x: int, heavy: bool, draws: Draws) -> tuple[int, ...]:
        inside, outside = draws.below(self.width), draws.below(self.size - self.width)
        return ((x + (inside if heavy else self.width + outside)) % self.size,)

    def shares(self, p: Fraction) -> tuple[Fraction, Fraction]:
        return p, Fraction(1, self.size)
