"""The Laplace mechanism (section IV-A): t* = t + Lap(2/ε)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hdr4me.mechanisms.law import AdditiveNoise, Floats


@dataclass(frozen=True)
class Laplace(AdditiveNoise):
    """Noise of density exp(−|z|/λ)/2λ with λ = 2/ε, the width of [−1, 1] over ε.

    Var = 2λ² and ρ = 6λ³ (the paper prints 3λ³).
    """

    epsilon: float
    name = "laplace"

    @property
    def scale(self) -> float:
        """λ = 2/ε."""
        return 2.0 / self.epsilon

    @property
    def noise_variance(self) -> float:
        return 2 * self.scale**2

    @property
    def noise_abs_third_moment(self) -> float:
        return 6 * self.scale**3

    def noise_density(self, z: Floats) -> Floats:
        return np.exp(-z / self.scale) / (2 * self.scale)

    def noise_tail(self, z: Floats) -> Floats:
        return np.exp(-z / self.scale) / 2

    def noise_sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return rng.laplace(0.0, self.scale, shape)
