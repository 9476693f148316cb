"""The Piecewise mechanism (Wang et al. 2019; section IV-A)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hdr4me.mechanisms.law import Floats, Parts, UniformMixture


@dataclass(frozen=True)
class Piecewise(UniformMixture):
    """With probability α = e^{−ε/2} uniform on [−Q, Q] whatever t is, else uniform on a band about t·(Q+1)/2.

    Q = coth(ε/4) and the band's half-width is h = (Q−1)/2 = 1/(e^{ε/2} − 1); the mean is t.
    Var = t²/(s−1) + (s+3)/(3(s−1)²) with s = e^{ε/2} (the paper prints t for t² and e^{ε/2+3} for s+3).

    >>> round(float(Piecewise(epsilon=1.0).variance(0.5)), 6)
    4.067477
    """

    epsilon: float
    name = "piecewise"

    @property
    def background(self) -> float:
        """α, the probability that the report says nothing about t."""
        return math.exp(-self.epsilon / 2)

    @property
    def half_width(self) -> float:
        """(Q−1)/2 = e^{−ε/2}/(1 − e^{−ε/2})."""
        return self.background / -math.expm1(-self.epsilon / 2)

    @property
    def bound(self) -> float:
        """Q, the largest report."""
        return 1 + 2 * self.half_width

    @property
    def support(self) -> tuple[float, float]:
        """[−Q, Q]."""
        return (-self.bound, self.bound)

    def parts(self, t: Floats) -> Parts:
        """The background, centred on 0, and the band, centred on t(Q+1)/2 = t + t(Q−1)/2."""
        h = self.half_width
        return Parts(
            weight=np.stack(
                [np.full_like(t, self.background), np.full_like(t, -math.expm1(-self.epsilon / 2))]
            ),
            offset=np.stack([-t, h * t]),
            half_width=np.stack([np.full_like(t, self.bound), np.full_like(t, h)]),
        )
