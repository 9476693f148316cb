"""Duchi et al.'s binary mechanism (2018), and Three-outputs (Zhao et al. 2020), which adds a third report, zero."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hdr4me.mechanisms.law import Floats, Parts, UniformMixture

# 1.7095…: from here on P(0 | t = 0) is as large as privacy allows
_EPSILON_PRIME = math.log((3 + math.sqrt(65)) / 2)


@dataclass(frozen=True)
class Duchi(UniformMixture):
    """Two reports, ±C with C = coth(ε/2); P(+C) = 1/2 + t/(2C).

    The mean is t, Var = C² − t², ρ = (C⁴ − t⁴)/C.
    """

    epsilon: float
    name = "duchi"

    @property
    def _gap(self) -> float:
        """C − 1 = 2/(e^ε − 1), computed separately: for large ε it determines C² − t² at t = ±1."""
        return 2 * math.exp(-self.epsilon) / -math.expm1(-self.epsilon)

    @property
    def bound(self) -> float:
        return 1 + self._gap

    def parts(self, t: Floats) -> Parts:
        up, down = self._gap + (1 - t), self._gap + (1 + t)
        weight = np.stack([down, up]) / (2 * self.bound)
        return Parts(weight, np.stack([up, -down]), np.zeros((2, *t.shape)))


@dataclass(frozen=True)
class ThreeOutputs(UniformMixture):
    """Reports −C, 0 and C. P(0|t) falls from a at t = 0 to a·e^{−ε} at |t| = 1, linearly in |t|.

    P(±C|t) = (1 − P(0|t) ± t/C)/2 with C = (1+e^{−ε})/((1−e^{−ε})(1−a·e^{−ε})), so the mean is t and
    Var = C²(1 − P(0|t)) − t², which is largest inside the domain. The share a is the one of least largest variance: 0
    up to ε = ln 2, e^ε/(e^ε+2) from ε = 1.7095 on, and the root of a cubic between them.
    """

    epsilon: float
    name = "three_outputs"

    @cached_property
    def zero_share(self) -> float:
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
        return light / (1 + light) if self.epsilon >= _EPSILON_PRIME else 1 - self.zero_share

    @property
    def _gap(self) -> float:
        """C − 1 = q(2 + a(1−q))/((1−q)(1−aq)) with q = e^{−ε}, without cancellation."""
        q, a = math.exp(-self.epsilon), self.zero_share
        return q * (2 + a * (1 - q)) / (-math.expm1(-self.epsilon) * (1 - a * q))

    @property
    def bound(self) -> float:
        return 1 + self._gap

    def parts(self, t: Floats) -> Parts:
        """Atoms at C, −C and, where a > 0, at 0.

        The weight of the far end, (1 − P(0) − |t|/C)/2, is of the order e^{−ε} at |t| = 1. With 1 − P(0) =
        (1−a) + a(1−q)|t| it is [(C−1)(1−P(0)) + (1−a)(1−|t|) − aq|t|]/2C, where only terms of that order are left.
        """
        q, a, rest, size = math.exp(-self.epsilon), self.zero_share, self._rest, np.abs(t)
        away = rest + a * -math.expm1(-self.epsilon) * size
        far = (self._gap * away + rest * (1 - size) - a * q * size) / (2 * self.bound)
        near = (self.bound * away + size) / (2 * self.bound)
        zero = a * ((1 - size) + q * size)
        weight = np.stack([np.where(t >= 0, near, far), np.where(t >= 0, far, near), zero])
        offset = np.stack([self._gap + (1 - t), -(self._gap + (1 + t)), -t])
        used = 3 if a > 0 else 2
        return Parts(weight[:used], offset[:used], np.zeros((used, *t.shape)))
