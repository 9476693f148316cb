"""Three-outputs (Zhao et al. 2020): Duchi's two reports and a third, nought."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hdr4me.mechanisms.law import Floats, Parts, UniformMixture

_EPSILON_PRIME = math.log((3 + math.sqrt(65)) / 2)
"""1.7095…: from here on the probability of nought at t = 0 is as large as privacy allows."""


@dataclass(frozen=True)
class ThreeOutputs(UniformMixture):
    """Reports −C, 0 and C. P(0|t) falls from a at t = 0 to a·e^{−ε} at |t| = 1, linearly in |t|.

    P(±C|t) = (1 − P(0|t) ± t/C)/2 with C = (1+e^{−ε})/((1−e^{−ε})(1−a·e^{−ε})), so the mean is t and
    Var = C²(1 − P(0|t)) − t², which is largest inside the domain. The share a is the one of least largest variance: 0
    up to ε = ln 2, e^ε/(e^ε+2) from ε = 1.7095 on, and the root of a cubic between them.

    >>> round(float(ThreeOutputs(epsilon=2.0).variance(0.0)), 6)
    0.460022
    """

    epsilon: float
    name = "three_outputs"

    @cached_property
    def nought(self) -> float:
        """a = P(0|t = 0)."""
        if self.epsilon <= math.log(2):
            return 0.0
        if self.epsilon >= _EPSILON_PRIME:
            return 1 / (1 + 2 * math.exp(-self.epsilon))
        e = math.exp(self.epsilon)
        d0 = e**4 + 14 * e**3 + 50 * e**2 - 2 * e + 25
        d1 = -2 * e**6 - 42 * e**5 - 270 * e**4 - 404 * e**3 - 918 * e**2 + 30 * e - 250
        angle = math.pi / 3 + math.acos(-d1 / (2 * d0**1.5)) / 3
        return -(-(e**2) - 4 * e - 5 + 2 * math.sqrt(d0) * math.cos(angle)) / 6

    @property
    def _rest(self) -> float:
        """1 − a."""
        light = 2 * math.exp(-self.epsilon)
        return light / (1 + light) if self.epsilon >= _EPSILON_PRIME else 1 - self.nought

    @property
    def _gap(self) -> float:
        """C − 1 = q(2 + a(1−q))/((1−q)(1−aq)) with q = e^{−ε}: nothing cancels."""
        q, a = math.exp(-self.epsilon), self.nought
        return q * (2 + a * (1 - q)) / (-math.expm1(-self.epsilon) * (1 - a * q))

    @property
    def bound(self) -> float:
        """C."""
        return 1 + self._gap

    @property
    def support(self) -> tuple[float, float]:
        """[−C, C]."""
        return (-self.bound, self.bound)

    def parts(self, t: Floats) -> Parts:
        """Atoms at C, −C and, where a > 0, at 0.

        The weight of the far end, (1 − P(0) − |t|/C)/2, is of the order e^{−ε} at |t| = 1. With 1 − P(0) =
        (1−a) + a(1−q)|t| it is [(C−1)(1−P(0)) + (1−a)(1−|t|) − aq|t|]/2C, where only terms of that order are left.
        """
        q, a, rest, size = math.exp(-self.epsilon), self.nought, self._rest, np.abs(t)
        away = rest + a * -math.expm1(-self.epsilon) * size
        far = (self._gap * away + rest * (1 - size) - a * q * size) / (2 * self.bound)
        near = (self.bound * away + size) / (2 * self.bound)
        zero = a * ((1 - size) + q * size)
        weight = np.stack([np.where(t >= 0, near, far), np.where(t >= 0, far, near), zero])
        offset = np.stack([self._gap + (1 - t), -(self._gap + (1 + t)), -t])
        used = 3 if a > 0 else 2
        return Parts(weight[:used], offset[:used], np.zeros((used, *t.shape)))
