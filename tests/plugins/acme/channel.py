"""A channel of its own kind: categories on a ladder, a neighbor is more likely than one far away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from hdr4me.channels import Channel, Draws, Field, Input

_ONE = 1 << 32


@dataclass(frozen=True)
class Ladder(Channel):
    """Rung x is reported as y with weight `near` if |x − y| ≤ 1 and `far` otherwise, on a ring of `size` rungs.

    The report is two numbers, y // 2 and y % 2, so that nothing takes it for a single byte.
    """

    kind = "ladder"

    epsilon: float
    size: int
    far: int
    mechanism: str = "ladder"
    likelihood_ratio: Fraction = field(init=False)

    def __post_init__(self) -> None:
        rest = _ONE - (self.size - 3) * self.far
        if self.size < 4 or rest % 3 or rest // 3 <= self.far:
            raise ValueError("near weights are whole and larger than the far one")
        object.__setattr__(self, "likelihood_ratio", Fraction(rest // 3, self.far))
        self.check()

    @classmethod
    def within(cls, epsilon: float, size: int) -> Ladder:
        """The widest difference that ε allows."""
        from hdr4me.channels.proof import exp_lower

        ratio = exp_lower(epsilon)
        least = int(_ONE / (3 * ratio + size - 3)) + 1
        for far in range(least, least + 3):
            rest = _ONE - (size - 3) * far
            if rest % 3 == 0 and Fraction(rest, 3 * far) <= ratio:
                return cls(epsilon, size, far)
        raise ValueError(f"no whole weights for {size} rungs")

    @property
    def near(self) -> int:
        return (_ONE - (self.size - 3) * self.far) // 3

    @property
    def inputs(self) -> tuple[Input, ...]:
        return (Input("category", self.size),)

    @property
    def fields(self) -> tuple[Field, ...]:
        return Field((self.size + 1) // 2), Field(2)

    @property
    def n_counters(self) -> int:
        return self.size

    @property
    def per_report(self) -> int:
        return 1

    def _close(self, x: int, y: int) -> bool:
        return (x - y) % self.size in (0, 1, self.size - 1)

    def sample(self, x: int, draws: Draws) -> tuple[int, ...]:
        word, total, found = draws.bits(32), 0, -1
        for y in range(self.size):
            found += word >= total
            total += self.near if self._close(x, y) else self.far
        return divmod(found, 2)

    def is_output(self, output: Sequence[int]) -> bool:
        return super().is_output(output) and 2 * output[0] + output[1] < self.size

    def probability(self, x: int, output: Sequence[int]) -> Fraction:
        return Fraction(self.near if self._close(x, 2 * output[0] + output[1]) else self.far, _ONE)

    def counters(self, output: Sequence[int]) -> Iterator[int]:
        return iter((2 * output[0] + output[1],))

    def worst_pair(self) -> tuple[int, int]:
        return 0, 2

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "epsilon": self.epsilon, "size": self.size, "far": self.far}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Ladder:
        return cls(**document)
