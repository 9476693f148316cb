"""What a table's reports say about the values behind them: the moments of its rows, inverted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Table
from hdr4me.channels.proof import BITS

__all__ = ["Moments", "row_variances"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """The rows of a number's table as probabilities, and what follows from them.

    `name` is the decoder that is meant: "value", "value 2" of a pair, "present" of an optional number. With `less`, so
    many times "present" are taken off: value − R·present is what the mean R of an optional number rests on.

    >>> half = 1 << 31
    >>> rows = ((3 * half // 2, half // 2), (half // 2, 3 * half // 2))
    >>> moments = Moments(Table("coin", 1.1, {"value": (-2.0, 2.0)}, rows))
    >>> moments.row_variances.tolist(), moments.rounding
    ([3.0, 3.0], 1.0)
    """

    table: Table
    name: str = "value"
    less: float = 0.0

    @cached_property
    def probabilities(self) -> Floats:
        return np.ldexp(np.array(self.table.weights, np.float64), -BITS)

    @cached_property
    def decode(self) -> Floats:
        return self._of(self.table.decoders)

    @cached_property
    def levels(self) -> Floats:
        """What the decoder stands for in each row."""
        return self._of(self.table.targets)

    def _of(self, numbers: Mapping[str, Sequence[float]]) -> Floats:
        found = np.array(numbers[self.name], np.float64)
        if self.less:
            found -= self.less * np.array(numbers[self.name.replace("value", "present")], np.float64)
        return found

    @cached_property
    def row_variances(self) -> Floats:
        """Var[decode | row]."""
        return row_variances(self.table.weights, self.decode)

    @cached_property
    def decoders(self) -> tuple[Floats, Floats] | None:
        """(g, h) with E[g(code) | level] = level² and E[h(code) | level] = Var[decode | level]; None if there are none.

        Both by weighted least norm, the weight of a cell being its mean probability, which keeps their own variance
        small: where the noise is the same at every level, h is that constant and no estimate at all. A value between
        two levels is rounded at random, which adds to its mean square what `rounding` bounds.
        """
        targets = np.stack([self.levels**2, self.row_variances], axis=1)
        mass = self.probabilities.mean(axis=0)
        scale = np.divide(1.0, np.sqrt(mass), out=np.zeros_like(mass), where=mass > 0)
        solution = np.linalg.lstsq(self.probabilities * scale, targets, rcond=1e-12)[0] * scale[:, None]
        gap = np.abs(self.probabilities @ solution - targets).max(axis=0)
        exact = (gap < 1e-7 * (1.0 + np.abs(targets).max(axis=0))).all()
        return (solution[:, 0], solution[:, 1]) if exact else None

    @property
    def rounding(self) -> float:
        """The largest variance of the random rounding to a level: Δ²/4, Δ = 2/(L − 1) the distance of two levels.

        Whether a number is there is not rounded.
        """
        if self.name.startswith("present"):
            return 0.0
        number = int(self.name.partition(" ")[2] or 1) - 1
        take = self.table.takes[number]
        return 1.0 / (take.size - (take.reads == "optional") - 1) ** 2


def row_variances(weights: Sequence[Sequence[int]], decode: Floats) -> Floats:
    """Var[decode | row] of integer rows."""
    probabilities = np.ldexp(np.array(weights, np.float64), -BITS)
    centred = decode[None, :] - (probabilities @ decode)[:, None]
    return np.asarray((probabilities * centred**2).sum(axis=1))
