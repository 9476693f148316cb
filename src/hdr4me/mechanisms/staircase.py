"""SCDF (Soria-Comas and Domingo-Ferrer 2013) and Staircase (Geng et al. 2015): noise in geometric steps.

One family: the density is flat on [−w, w] and falls by the factor q = e^{−ε} every 2 units beyond. With
P₀ the mass of the flat top, r = q / (w(1−q)) and k = w − 1,

    P₀  = 1 / (1 + 2r)
    Var = P₀ [w²/3 + r (2k² + 2/3 + 8k/(1−q) + 8(1+q)/(1−q)²)]
    ρ   = P₀ [w³/4 + r (2k³ + 2k + (12k²+4)/(1−q) + 24k(1+q)/(1−q)² + 16(1+4q+q²)/(1−q)³)]

The members differ only in w. Each also provides log w, because w underflows for ε in the thousands.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import gammainc, log_expit

from hdr4me.channels.proof import check_epsilon
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.law import AdditiveNoise, Floats


class StaircaseFamily(AdditiveNoise):
    """Noise with a flat top of half-width w and steps of width 2, each e^{−ε} times as high as the previous one."""

    @property
    @abstractmethod
    def log_top(self) -> float:
        """log w."""

    @property
    def top(self) -> float:
        """w, the half-width of the flat top."""
        return math.exp(self.log_top)

    @property
    def step_ratio(self) -> float:
        """q = e^{−ε}."""
        return math.exp(-self.epsilon)

    @property
    def _rest(self) -> float:
        """1 − q."""
        return -math.expm1(-self.epsilon)

    @property
    def _r(self) -> float:
        """q / (w(1−q)), half of the mass of the steps divided by the mass of the top."""
        return math.exp(-self.epsilon - self.log_top) / self._rest

    @property
    def top_mass(self) -> float:
        """P₀ = P(|N| ≤ w)."""
        return 1 / (1 + 2 * self._r)

    @property
    def noise_variance(self) -> float:
        w, q, u, r, k = self.top, self.step_ratio, self._rest, self._r, self.top - 1
        steps = 2 * k**2 + 2 / 3 + 8 * k / u + 8 * (1 + q) / u**2
        return self.top_mass * (w**2 / 3 + r * steps)

    @property
    def noise_abs_third_moment(self) -> float:
        w, q, u, r, k = self.top, self.step_ratio, self._rest, self._r, self.top - 1
        steps = 2 * k**3 + 2 * k + (12 * k**2 + 4) / u + 24 * k * (1 + q) / u**2
        return self.top_mass * (w**3 / 4 + r * (steps + 16 * (1 + 4 * q + q**2) / u**3))

    def noise_density(self, z: Floats) -> Floats:
        """A flat top, then geometric steps; a top that underflows is treated as absent."""
        step = np.floor(np.maximum(z - self.top, 0.0) / 2)
        tail = (1 - self.top_mass) * self._rest * np.exp(-self.epsilon * step) / 4
        flat = self.top_mass / (2 * self.top) if self.top > 0 else 0.0
        return np.where(z <= self.top, flat, tail)

    def noise_tail(self, z: Floats) -> Floats:
        beyond = np.maximum(z - self.top, 0.0) / 2
        step = np.floor(beyond)
        outside = np.exp(-self.epsilon * step) * (1 - (beyond - step) * self._rest)
        inside = 1 - z / self.top if self.top > 0 else np.zeros_like(z)
        steps = (1 - self.top_mass) / 2
        return np.where(z <= self.top, steps + self.top_mass / 2 * inside, steps * outside)

    def noise_sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """The top or a step (whose index is the integer part of an exponential variate), then a uniform point in it."""
        step = np.floor(rng.exponential(1 / self.epsilon, shape))
        place = rng.random(shape)
        size = np.where(rng.random(shape) < self.top_mass, self.top * place, self.top + 2 * (step + place))
        return np.where(rng.random(shape) < 0.5, -size, size)


@dataclass(frozen=True)
class SCDF(StaircaseFamily):
    """w = 2(1 − q − εq) / (ε(1 − q))."""

    epsilon: float
    name = "scdf"

    @property
    def log_top(self) -> float:
        """1 − (1+ε)e^{−ε} is the incomplete gamma function of order 2, without cancellation at small ε."""
        return math.log(2 * float(gammainc(2.0, self.epsilon)) / (self.epsilon * self._rest))


@dataclass(frozen=True)
class Staircase(StaircaseFamily):
    """The top that minimizes E|N| (`variant="l1"`) or Var N (`variant="variance"`).

    l1: w = 2/(1 + e^{ε/2}). variance: w = 2[(q(1+q)/2)^{1/3} − q]/(1 − q).
    """

    epsilon: float
    variant: Literal["l1", "variance"] = "l1"
    name = "staircase"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if self.variant not in ("l1", "variance"):
            raise InvalidInput(f"variant = {self.variant!r} is not allowed: use 'l1' or 'variance'")

    @property
    def log_top(self) -> float:
        if self.variant == "l1":
            return math.log(2) + float(log_expit(-self.epsilon / 2))
        # cube = log of (q(1+q)/2)^{1/3}; the difference with q is computed in the exponent.
        cube = (math.log1p(-self._rest / 2) - self.epsilon) / 3
        return math.log(2) + cube + math.log(-math.expm1(-cube - self.epsilon)) - math.log(self._rest)
