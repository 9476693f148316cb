"""The interface of a mechanism, and the two families of distributions that the paper's mechanisms belong to.

In both families, `UniformMixture` (bounded) and `AdditiveNoise` (unbounded), E[t*|t] is affine in the true value t, so
that calibration needs only the mean of the reports t*. Samples in floating point are not private: a survey deploys the
integer table that `Mechanism.exact` returns.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.channels.proof import check_epsilon
from hdr4me.errors import InvalidInput

if TYPE_CHECKING:
    from hdr4me.mechanisms.table import TableMechanism

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Calibration:
    """E[t*|t] = slope · t + intercept; calling it inverts this map for the mean of the reports."""

    slope: float
    intercept: float

    def __call__(self, mean: ArrayLike) -> Floats:
        """The unbiased estimate of the true mean from the mean of reports."""
        return (np.asarray(mean, dtype=np.float64) - self.intercept) / self.slope


class Parts(NamedTuple):
    """A mixture of uniform intervals; the first axis is that of the intervals, the others have the shape of t.

    Parameters
    ----------
    weight
        The probability of each interval.
    offset
        The center of the interval minus E[t*|t], which avoids cancellation if it is small.
    half_width
        Half the length of the interval; 0 for an atom.

    Examples
    --------
    >>> from hdr4me.mechanisms import mechanism
    >>> mechanism("duchi", epsilon=1.0).parts(np.zeros(1)).weight.ravel().tolist()
    [0.5, 0.5]
    """

    weight: Floats
    offset: Floats
    half_width: Floats


def probe_points(low: float, high: float) -> Floats:
    """The points at which a law is checked: both ends, an even grid, and random points."""
    even = np.linspace(0.0, 1.0, 65)
    anywhere = np.random.default_rng(20_260_117).random(64)
    return np.asarray(low + (high - low) * np.sort(np.concatenate([even, anywhere])))


def affine_mean(mean: Callable[[Floats], Any], domain: tuple[float, float], name: str) -> Calibration:
    """Slope and intercept of `mean` over the domain; an error if it is not affine at the probe points."""
    points = probe_points(*domain)
    at = np.asarray(mean(points), dtype=np.float64)
    slope = float((at[-1] - at[0]) / (points[-1] - points[0]))
    intercept = float(at[0] - slope * points[0])
    if not np.allclose(at, slope * points + intercept, rtol=1e-9, atol=1e-9 * max(1.0, abs(slope))):
        raise InvalidInput(f"mechanism = {name!r} cannot be calibrated: its mean is not affine in the value")
    return Calibration(slope, intercept)


class Mechanism(ABC):
    """How one value is perturbed under the budget `epsilon` of one value.

    >>> from hdr4me.mechanisms import mechanism
    >>> law = mechanism("duchi", epsilon=1.0)
    >>> float(law.mean(0.5)), float(law.bias(0.5))
    (0.5, 0.0)
    """

    name: str
    epsilon: float

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)

    @property
    def domain(self) -> tuple[float, float]:
        """The interval of true values."""
        return (-1.0, 1.0)

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """The smallest interval that holds every possible report."""

    @property
    def bounded(self) -> bool:
        """The paper's Bound(M): whether reports lie in a finite interval."""
        return all(math.isfinite(end) for end in self.support)

    @property
    def calibration(self) -> Calibration:
        """Slope and intercept of E[t*|t]; computed from `mean` and checked if a law overrides `mean`."""
        if type(self).mean is Mechanism.mean:
            return Calibration(1.0, 0.0)
        return affine_mean(self.mean, self.domain, self.name)

    def mean(self, t: ArrayLike) -> Floats:
        """E[t*|t]."""
        return self.calibration.slope * self._values(t) + self.calibration.intercept

    def bias(self, t: ArrayLike) -> Floats:
        """δ = E[t*|t] − t."""
        values = self._values(t)
        if type(self).mean is Mechanism.mean and type(self).calibration is Mechanism.calibration:
            return np.zeros_like(values)
        return np.asarray(self.mean(values), dtype=np.float64) - values

    @abstractmethod
    def variance(self, t: ArrayLike) -> Floats:
        """Var(t*|t)."""

    @abstractmethod
    def abs_third_moment(self, t: ArrayLike) -> Floats:
        """ρ = E|t* − E t*|³, the moment in the Berry–Esseen bound (Theorem 2)."""

    @abstractmethod
    def density(self, x: ArrayLike, t: ArrayLike) -> Floats:
        """The density of t* at x without atoms; x and t broadcast."""

    def atoms(self, t: ArrayLike) -> tuple[Floats, Floats]:
        """The atoms of the distribution and their masses, along the first axis."""
        shape = (0, *self._values(t).shape)
        return np.zeros(shape), np.zeros(shape)

    @abstractmethod
    def cdf(self, x: ArrayLike, t: ArrayLike) -> Floats:
        """P(t* ≤ x); x and t broadcast."""

    @abstractmethod
    def sample(self, t: ArrayLike, rng: np.random.Generator) -> Floats:
        """One t* for each t, for simulation only: floating-point reports are not private."""

    def exact(self) -> TableMechanism:
        """The discretization that is deployed: an integer table whose privacy is proven."""
        from hdr4me.mechanisms.discretize import discretized

        return discretized(self)

    def _values(self, t: ArrayLike) -> Floats:
        """`t` as an array; an error if a value is outside the domain."""
        values = np.asarray(t, dtype=np.float64)
        low, high = self.domain
        bad = values[~((values >= low) & (values <= high))]
        if bad.size:
            raise InvalidInput.of(
                "t", float(bad.flat[0]), f"{self.name} accepts values in [{low:g}, {high:g}]"
            )
        return values


class UniformMixture(Mechanism):
    """A law that is a mixture of uniform intervals and atoms for each t; a subclass defines `parts` and `bound`.

    >>> @dataclass(frozen=True)
    ... class Corners(UniformMixture):
    ...     epsilon: float
    ...     name = "corners"
    ...     @property
    ...     def bound(self):
    ...         return 1 / math.tanh(self.epsilon / 2)
    ...     def parts(self, t):
    ...         weight = np.stack([1 - t / self.bound, 1 + t / self.bound]) / 2
    ...         return Parts(weight, np.stack([-self.bound - t, self.bound - t]), np.zeros_like(weight))
    >>> round(float(Corners(epsilon=1.0).variance(0.0)), 4)
    4.6827
    """

    @property
    def bound(self) -> float:
        """The largest report of a law whose support is symmetric about 0."""
        raise NotImplementedError

    @property
    def support(self) -> tuple[float, float]:
        return (-self.bound, self.bound)

    @abstractmethod
    def parts(self, t: Floats) -> Parts:
        """The intervals for these values; weights sum to one along the first axis."""

    def variance(self, t: ArrayLike) -> Floats:
        """Σ w (o² + h²/3), a sum of positive terms without cancellation."""
        weight, offset, half = self.parts(self._values(t))
        return np.asarray((weight * (offset**2 + half**2 / 3)).sum(axis=0))

    def abs_third_moment(self, t: ArrayLike) -> Floats:
        """Σ w E|o + hU|³ with U uniform on [−1, 1]."""
        weight, offset, half = self.parts(self._values(t))
        o = np.abs(offset)
        astride = o < half
        h = np.where(astride, half, 1.0)
        inside = (o**4 + 6 * o**2 * h**2 + h**4) / (4 * h)
        outside = o**3 + o * half**2
        return np.asarray((weight * np.where(astride, inside, outside)).sum(axis=0))

    def density(self, x: ArrayLike, t: ArrayLike) -> Floats:
        weight, distance, half = self._around(x, t)
        h = np.where(half > 0, half, 1.0)
        inside = (np.abs(distance) <= half) & (half > 0)
        return np.asarray(np.where(inside, weight / (2 * h), 0.0).sum(axis=0))

    def atoms(self, t: ArrayLike) -> tuple[Floats, Floats]:
        values = self._values(t)
        weight, offset, half = self.parts(values)
        narrow = np.array([bool(np.all(h == 0)) for h in half])
        return (self.mean(values) + offset)[narrow], weight[narrow]

    def cdf(self, x: ArrayLike, t: ArrayLike) -> Floats:
        weight, distance, half = self._around(x, t)
        h = np.where(half > 0, half, 1.0)
        share = np.where(half > 0, np.clip((distance + half) / (2 * h), 0.0, 1.0), distance >= 0)
        return np.asarray((weight * share).sum(axis=0))

    def sample(self, t: ArrayLike, rng: np.random.Generator) -> Floats:
        values = self._values(t)
        weight, offset, half = self.parts(values)
        left = rng.random(values.shape)
        chosen_offset, chosen_half = offset[-1], half[-1]
        for w, o, h in zip(weight[:-1], offset[:-1], half[:-1], strict=True):
            here = (left >= 0) & (left < w)
            chosen_offset = np.where(here, o, chosen_offset)
            chosen_half = np.where(here, h, chosen_half)
            left = left - w
        place = rng.uniform(-1.0, 1.0, values.shape)
        return np.asarray(self.mean(values) + chosen_offset + chosen_half * place)

    def _around(self, x: ArrayLike, t: ArrayLike) -> Parts:
        """The parts, with the distance of x from each center instead of the offset."""
        points, values = np.broadcast_arrays(np.asarray(x, dtype=np.float64), self._values(t))
        weight, offset, half = self.parts(values)
        return Parts(weight, (points - self.mean(values)) - offset, half)


class AdditiveNoise(Mechanism):
    """t* = t + N with N symmetric about 0 and independent of t (the paper's Bound(M) = 0).

    A subclass defines the five members that begin with `noise_`, as `hdr4me.mechanisms.laplace` does.

    >>> from hdr4me.mechanisms import mechanism
    >>> isinstance(mechanism("laplace", epsilon=1.0), AdditiveNoise)
    True
    """

    @property
    def support(self) -> tuple[float, float]:
        return (-math.inf, math.inf)

    @property
    @abstractmethod
    def noise_variance(self) -> float:
        """Var N."""

    @property
    @abstractmethod
    def noise_abs_third_moment(self) -> float:
        """E|N|³."""

    @abstractmethod
    def noise_density(self, z: Floats) -> Floats:
        """The density of N at |z| = `z` ≥ 0."""

    @abstractmethod
    def noise_tail(self, z: Floats) -> Floats:
        """P(N > z) at z ≥ 0."""

    @abstractmethod
    def noise_sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Independent draws of N."""

    def variance(self, t: ArrayLike) -> Floats:
        return np.full_like(self._values(t), self.noise_variance)

    def abs_third_moment(self, t: ArrayLike) -> Floats:
        return np.full_like(self._values(t), self.noise_abs_third_moment)

    def density(self, x: ArrayLike, t: ArrayLike) -> Floats:
        return self.noise_density(np.abs(np.asarray(x, dtype=np.float64) - self._values(t)))

    def cdf(self, x: ArrayLike, t: ArrayLike) -> Floats:
        z = np.asarray(x, dtype=np.float64) - self._values(t)
        tail = self.noise_tail(np.abs(z))
        return np.where(z < 0, tail, 1 - tail)

    def sample(self, t: ArrayLike, rng: np.random.Generator) -> Floats:
        values = self._values(t)
        return values + self.noise_sample(values.shape, rng)
