"""A law with |t| in it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hdr4me as hd

Floats = NDArray[np.float64]
_A, _B = 0.2, 0.5


@dataclass(frozen=True)
class Shy(hd.Mechanism):
    """Reports −C, 0 and C with P(0|t) = 1 − b − a|t| and C = 1/((a + b)·tanh(ε/2)); private from ε = 0.6 on."""

    epsilon: float
    name = "shy"

    @property
    def bound(self) -> float:
        return 1 / ((_A + _B) * math.tanh(self.epsilon / 2))

    @property
    def support(self) -> tuple[float, float]:
        return -self.bound, self.bound

    def _law(self, t: Any) -> tuple[Floats, Floats]:
        values = self._values(t)
        away = _B + _A * np.abs(values)
        signed = values / self.bound
        places = np.stack([np.full_like(values, x) for x in (-self.bound, 0.0, self.bound)])
        return places, np.stack([(away - signed) / 2, 1 - away, (away + signed) / 2])

    def variance(self, t: Any) -> Floats:
        values = self._values(t)
        return np.asarray(self.bound**2 * (_B + _A * np.abs(values)) - values**2)

    def abs_third_moment(self, t: Any) -> Floats:
        places, mass = self._law(t)
        return np.asarray((mass * np.abs(places - self._values(t)) ** 3).sum(axis=0))

    def density(self, x: Any, t: Any) -> Floats:
        return np.zeros(np.broadcast(np.asarray(x), np.asarray(t)).shape)

    def atoms(self, t: Any) -> tuple[Floats, Floats]:
        return self._law(t)

    def cdf(self, x: Any, t: Any) -> Floats:
        points, values = np.broadcast_arrays(np.asarray(x, np.float64), self._values(t))
        places, mass = self._law(values)
        return np.asarray(np.where(places <= points, mass, 0.0).sum(axis=0))

    def sample(self, t: Any, rng: np.random.Generator) -> Floats:
        places, mass = self._law(t)
        u = rng.random(mass.shape[1:])
        which = (u > mass[0]).astype(int) + (u > mass[0] + mass[1])
        return np.take_along_axis(places, which[None], axis=0)[0]

    def exact(self) -> Any:
        return hd.exact(self)
