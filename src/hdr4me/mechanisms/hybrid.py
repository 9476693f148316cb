"""The Hybrid mechanism (Wang et al. 2019): Piecewise or Duchi, by the toss of a coin."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hdr4me.mechanisms.duchi import Duchi
from hdr4me.mechanisms.law import Floats, Parts, UniformMixture
from hdr4me.mechanisms.piecewise import Piecewise

_ROOT = 405 * math.sqrt(241)
EPSILON_STAR = math.log((-5 + 2 * (6353 - _ROOT) ** (1 / 3) + 2 * (6353 + _ROOT) ** (1 / 3)) / 27)
"""ε* = 0.6093…: below it Duchi alone is best."""


@dataclass(frozen=True)
class Hybrid(UniformMixture):
    """Piecewise with probability α = 1 − e^{−ε/2} if ε > ε* (else 0), Duchi otherwise.

    Both are unbiased, so Var and ρ are the mixtures of theirs; above ε* Var does not depend on t.

    >>> [round(float(Hybrid(epsilon=1.0).variance(t)), 6) for t in (0.0, 0.5, 1.0)]
    [4.288992, 4.288992, 4.288992]
    """

    epsilon: float
    name = "hybrid"

    @property
    def piecewise_share(self) -> float:
        """α, the probability of a Piecewise report."""
        return -math.expm1(-self.epsilon / 2) if self.epsilon > EPSILON_STAR else 0.0

    @property
    def components(self) -> tuple[Piecewise, Duchi]:
        """The two mechanisms, each under the whole ε."""
        return Piecewise(self.epsilon), Duchi(self.epsilon)

    @property
    def support(self) -> tuple[float, float]:
        """Piecewise's where it takes part, else Duchi's."""
        piecewise, duchi = self.components
        return piecewise.support if self.piecewise_share > 0 else duchi.support

    def parts(self, t: Floats) -> Parts:
        """The parts of both, weighted; Piecewise's left out where its share is nought."""
        piecewise, duchi = self.components
        if self.piecewise_share == 0:
            return duchi.parts(t)
        first, second = piecewise.parts(t), duchi.parts(t)
        # 1 − α is e^{−ε/2} itself, not the difference: it survives where 1 − α would round to nought.
        share, rest = self.piecewise_share, piecewise.background
        return Parts(
            weight=np.concatenate([share * first.weight, rest * second.weight]),
            offset=np.concatenate([first.offset, second.offset]),
            half_width=np.concatenate([first.half_width, second.half_width]),
        )
