"""PM-SUB (Zhao et al. 2020): the Piecewise mechanism with the band of a near-optimal width."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hdr4me.mechanisms.law import Floats, Parts, UniformMixture


@dataclass(frozen=True)
class PMSub(UniformMixture):
    """With probability (τ+1)/(τ+e^ε) uniform on [−A, A], else uniform on a band about t·(e^ε+τ)/(e^ε−1).

    τ = e^{ε/3}; τ = e^{ε/2} would be Piecewise. The band's half-width is h = (e^ε+τ)/(τ(e^ε−1)) and A = (τ+1)h; the
    mean is t. Var = t²(τ+1)/(e^ε−1) + (e^ε+τ)((τ+1)³+e^ε−1)/(3τ²(e^ε−1)²).

    >>> round(float(PMSub(epsilon=4.0).variance(0.5)), 6)
    0.09945
    """

    epsilon: float
    name = "pm_sub"

    @property
    def _stretch(self) -> float:
        """(e^ε+τ)/(e^ε−1): how far the band's centre is beyond t, as a factor."""
        return (1 + math.exp(-2 * self.epsilon / 3)) / -math.expm1(-self.epsilon)

    @property
    def background(self) -> float:
        """(τ+1)/(τ+e^ε), the probability that the report says nothing about t."""
        down = math.exp(-2 * self.epsilon / 3)
        return (down + math.exp(-self.epsilon)) / (1 + down)

    @property
    def half_width(self) -> float:
        """h, half the width of the band."""
        return self._stretch * math.exp(-self.epsilon / 3)

    @property
    def bound(self) -> float:
        """A, the largest report."""
        return self._stretch + self.half_width

    @property
    def support(self) -> tuple[float, float]:
        """[−A, A]."""
        return (-self.bound, self.bound)

    def parts(self, t: Floats) -> Parts:
        """The background, centred on 0, and the band; (e^ε+τ)/(e^ε−1) − 1 = (τ+1)/(e^ε−1) without cancellation."""
        beyond = (math.exp(-2 * self.epsilon / 3) + math.exp(-self.epsilon)) / -math.expm1(-self.epsilon)
        band = -math.expm1(-self.epsilon) / (1 + math.exp(-2 * self.epsilon / 3))
        return Parts(
            weight=np.stack([np.full_like(t, self.background), np.full_like(t, band)]),
            offset=np.stack([-t, beyond * t]),
            half_width=np.stack([np.full_like(t, self.bound), np.full_like(t, self.half_width)]),
        )
