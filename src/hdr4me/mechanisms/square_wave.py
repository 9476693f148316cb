"""The Square wave mechanism (Li et al. 2020; section IV-A)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc

from hdr4me.channels.proof import check_epsilon
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.law import Calibration, Floats, Parts, UniformMixture

_SERIES = [(-1) ** k / math.factorial(k) for k in range(2, 20)]


def _excess(x: float) -> float:
    """x − 1 + e^{−x}, by its series for small x to avoid cancellation."""
    if x >= 0.5:
        return x + math.expm1(-x)
    return x * x * math.fsum(c * x**k for k, c in enumerate(_SERIES))


@dataclass(frozen=True)
class SquareWave(UniformMixture):
    """With probability a uniform within b of t, else uniform on the domain widened by b on each side.

    On [0, 1] (its own domain): b = (εe^ε − e^ε + 1) / (2e^ε(e^ε − 1 − ε)), E[t*|t] = at + (1−a)/2 with
    a = 1 − (1−e^{−ε})/ε. It is biased: δ = (1−a)(1/2 − t). On another domain all lengths scale with its width.
    """

    epsilon: float
    domain: tuple[float, float] = (0.0, 1.0)
    name = "square_wave"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if tuple(self.domain) not in ((0.0, 1.0), (-1.0, 1.0)):
            raise InvalidInput(f"domain = {self.domain!r} is not allowed: use (0, 1) or (-1, 1)")

    @property
    def half_width(self) -> float:
        """b on the unit interval; e^ε − 1 − ε = e^ε P(2, ε), P the incomplete gamma function, avoids cancellation."""
        return _excess(self.epsilon) * math.exp(-self.epsilon) / (2 * float(gammainc(2.0, self.epsilon)))

    @property
    def shrink(self) -> float:
        """1 − a, the probability that the report does not depend on t."""
        return -math.expm1(-self.epsilon) / self.epsilon

    @property
    def calibration(self) -> Calibration:
        return Calibration(_excess(self.epsilon) / self.epsilon, self.shrink * self._middle)

    @property
    def support(self) -> tuple[float, float]:
        margin = self.half_width * self._width
        return (self.domain[0] - margin, self.domain[1] + margin)

    def bias(self, t: ArrayLike) -> Floats:
        return self.shrink * (self._middle - self._values(t))

    def parts(self, t: Floats) -> Parts:
        slope, b = self.calibration.slope, self.half_width
        return Parts(
            weight=np.stack([np.full_like(t, self.shrink), np.full_like(t, slope)]),
            offset=np.stack([slope * (self._middle - t), self.shrink * (t - self._middle)]),
            half_width=self._width * np.stack([np.full_like(t, 0.5 + b), np.full_like(t, b)]),
        )

    @property
    def _middle(self) -> float:
        return (self.domain[0] + self.domain[1]) / 2

    @property
    def _width(self) -> float:
        return self.domain[1] - self.domain[0]
