"""What a table's reports say about the values behind them: the moments of its rows, inverted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hdr4me.mechanisms.exactness import BITS
from hdr4me.survey import Randomizer

__all__ = ["Moments"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """A randomizer's rows as probabilities, and what follows from them.

    >>> half = 1 << 31
    >>> rows = ((3 * half // 2, half // 2), (half // 2, 3 * half // 2))
    >>> moments = Moments(Randomizer("coin", 1.1, "value", (-2.0, 2.0), rows))
    >>> moments.row_variances.tolist(), moments.square_decoder.tolist()
    ([3.0, 3.0], [0.0, 0.0])
    """

    randomizer: Randomizer

    @cached_property
    def probabilities(self) -> Floats:
        return np.ldexp(np.array(self.randomizer.weights, np.float64), -BITS)

    @cached_property
    def decode(self) -> Floats:
        return np.array(self.randomizer.decode, np.float64)

    @cached_property
    def row_variances(self) -> Floats:
        """Var[decode | row]. For categories: of the indicator's estimator, (absent, present)."""
        if self.randomizer.kind == "category":
            q, p = self.probabilities[1, 0], self.probabilities[0, 0]
            return np.asarray(np.array([q * (1 - q), p * (1 - p)]) * (self.decode[0] - self.decode[1]) ** 2)
        means = self.probabilities @ self.decode
        centred = self.decode[None, :] - means[:, None]
        return np.asarray((self.probabilities * centred**2).sum(axis=1))

    @cached_property
    def square_decoder(self) -> Floats | None:
        """g with E[g(code) | t] at most t², by Δ²/4 or less (Δ the distance of two levels); None if there is none.

        Solves Σ_y P(y | level) g(y) = level² − Δ²/4 by weighted least norm, the weight of a cell being its mean
        probability, which keeps g's own variance small. A value between two levels is rounded at random, which adds
        at most Δ²/4 to its mean square: subtracting it makes g a lower bound for every value, so that a standard error
        which uses g is never too small. With two levels (Duchi) the bound says nothing, g = 0: reports of two kinds
        carry a mean and nothing else.
        """
        levels = np.array(self.randomizer.levels)
        target = levels**2 - 1.0 / (len(levels) - 1) ** 2
        mass = self.probabilities.mean(axis=0)
        scale = np.divide(1.0, np.sqrt(mass), out=np.zeros_like(mass), where=mass > 0)
        solution = np.linalg.lstsq(self.probabilities * scale, target, rcond=1e-12)[0] * scale
        exact = np.abs(self.probabilities @ solution - target).max() < 1e-7
        return solution if exact else None
