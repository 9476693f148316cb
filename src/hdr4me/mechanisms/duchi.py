"""Duchi et al.'s binary mechanism (2018)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hdr4me.mechanisms.law import Floats, Parts, UniformMixture


@dataclass(frozen=True)
class Duchi(UniformMixture):
    """Two reports, ±C with C = coth(ε/2); P(+C) = 1/2 + t/(2C).

    The mean is t, Var = C² − t², ρ = (C⁴ − t⁴)/C.

    >>> round(float(Duchi(epsilon=1.0).variance(0.5)), 6)
    4.432694
    """

    epsilon: float
    name = "duchi"

    @property
    def _gap(self) -> float:
        """C − 1 = 2/(e^ε − 1), kept apart: at large ε it is all that is left of C² − t² at the edges."""
        return 2 * math.exp(-self.epsilon) / -math.expm1(-self.epsilon)

    @property
    def bound(self) -> float:
        """C."""
        return 1 + self._gap

    @property
    def support(self) -> tuple[float, float]:
        """[−C, C]."""
        return (-self.bound, self.bound)

    def parts(self, t: Floats) -> Parts:
        """Atoms at +C and −C."""
        up, down = self._gap + (1 - t), self._gap + (1 + t)
        return Parts(
            weight=np.stack([down, up]) / (2 * self.bound),
            offset=np.stack([up, -down]),
            half_width=np.zeros((2, *t.shape)),
        )
