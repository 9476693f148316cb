"""The Piecewise mechanism (Wang et al. 2019; section IV-A), PM-SUB with another width, and the Hybrid with Duchi."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hdr4me.mechanisms.duchi import Duchi
from hdr4me.mechanisms.law import Floats, Parts, UniformMixture

_ROOT = 405 * math.sqrt(241)
EPSILON_STAR = math.log((-5 + 2 * (6353 - _ROOT) ** (1 / 3) + 2 * (6353 + _ROOT) ** (1 / 3)) / 27)  # 0.6093…


def _band(t: Floats, weight: tuple[float, float], beyond: float, half_width: tuple[float, float]) -> Parts:
    """Uniform on a wide interval about 0 with the first weight, else uniform on a band about t + beyond·t."""
    weights, widths = (np.stack([np.full_like(t, x) for x in both]) for both in (weight, half_width))
    return Parts(weights, np.stack([-t, beyond * t]), widths)


@dataclass(frozen=True)
class Piecewise(UniformMixture):
    """With probability α = e^{−ε/2} uniform on [−Q, Q] for any t, else uniform on a band about t·(Q+1)/2.

    Q = coth(ε/4) and the band's half-width is h = (Q−1)/2 = 1/(e^{ε/2} − 1); the mean is t.
    Var = t²/(s−1) + (s+3)/(3(s−1)²) with s = e^{ε/2} (the paper prints t for t² and e^{ε/2+3} for s+3).
    """

    epsilon: float
    name = "piecewise"

    @property
    def background(self) -> float:
        """α, the probability that the report does not depend on t."""
        return math.exp(-self.epsilon / 2)

    @property
    def half_width(self) -> float:
        """h, half the width of the band."""
        return self.background / -math.expm1(-self.epsilon / 2)

    @property
    def bound(self) -> float:
        return 1 + 2 * self.half_width

    def parts(self, t: Floats) -> Parts:
        h = self.half_width
        return _band(t, (self.background, -math.expm1(-self.epsilon / 2)), h, (self.bound, h))


@dataclass(frozen=True)
class PMSub(UniformMixture):
    """With probability (τ+1)/(τ+e^ε) uniform on [−A, A], else uniform on a band about t·(e^ε+τ)/(e^ε−1).

    τ = e^{ε/3}; τ = e^{ε/2} would be Piecewise. The band's half-width is h = (e^ε+τ)/(τ(e^ε−1)) and A = (τ+1)h; the
    mean is t. Var = t²(τ+1)/(e^ε−1) + (e^ε+τ)((τ+1)³+e^ε−1)/(3τ²(e^ε−1)²) (Zhao et al. 2020).
    """

    epsilon: float
    name = "pm_sub"

    @property
    def _stretch(self) -> float:
        """(e^ε+τ)/(e^ε−1), the center of the band as a multiple of t."""
        return (1 + math.exp(-2 * self.epsilon / 3)) / -math.expm1(-self.epsilon)

    @property
    def bound(self) -> float:
        return self._stretch + self._stretch * math.exp(-self.epsilon / 3)

    def parts(self, t: Floats) -> Parts:
        """Uses (e^ε+τ)/(e^ε−1) − 1 = (τ+1)/(e^ε−1), which has no cancellation."""
        light, rest = math.exp(-2 * self.epsilon / 3), -math.expm1(-self.epsilon)
        both = light + math.exp(-self.epsilon)
        h = self._stretch * math.exp(-self.epsilon / 3)
        return _band(t, (both / (1 + light), rest / (1 + light)), both / rest, (self.bound, h))


@dataclass(frozen=True)
class Hybrid(UniformMixture):
    """Piecewise with probability α = 1 − e^{−ε/2} if ε > ε* = 0.6093… (else 0), Duchi otherwise (Wang et al. 2019).

    Both are unbiased, so Var and ρ are the mixtures of theirs; above ε* Var does not depend on t.
    """

    epsilon: float
    name = "hybrid"

    @property
    def piecewise_share(self) -> float:
        """α, the probability of a Piecewise report."""
        return -math.expm1(-self.epsilon / 2) if self.epsilon > EPSILON_STAR else 0.0

    @property
    def components(self) -> tuple[Piecewise, Duchi]:
        """The two mechanisms, each under the full ε."""
        return Piecewise(self.epsilon), Duchi(self.epsilon)

    @property
    def support(self) -> tuple[float, float]:
        piecewise, duchi = self.components
        return piecewise.support if self.piecewise_share > 0 else duchi.support

    def parts(self, t: Floats) -> Parts:
        """The weighted parts of both mechanisms; those of Piecewise only if its share is positive."""
        piecewise, duchi = self.components
        if self.piecewise_share == 0:
            return duchi.parts(t)
        first, second = piecewise.parts(t), duchi.parts(t)
        # 1 − α is computed as e^{−ε/2}, because the difference would round to 0 for large ε.
        first = first._replace(weight=self.piecewise_share * first.weight)
        second = second._replace(weight=piecewise.background * second.weight)
        return Parts(*map(np.concatenate, zip(first, second, strict=True)))
