"""The prediction of θ̂ − θ̄ before anybody sends anything (section IV-B: Lemmas 2 and 3, Theorem 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from hdr4me.errors import InvalidInput
from hdr4me.framework import enhancement
from hdr4me.framework.covariance import Spectrum
from hdr4me.framework.norm import SquaredNorm
from hdr4me.framework.supremum import joint_tolerance, log_probability_within

__all__ = ["Deviation"]

Floats = NDArray[np.float64]
Variance = Literal["exact", "paper"]


@dataclass(frozen=True, eq=False)
class Deviation:
    """θ̂_j − θ̄_j ~ N(bias_j, variance_j), one coordinate per mean (or frequency).

    Coordinates that are alike are held once, with their number in `counts`. What is returned per
    coordinate is a plain number when all are alike, and otherwise an array with one entry for each.

    Dependence: reports of different dimensions are perturbed independently. With m < d they share one draw of who
    reports what, which makes the errors of dimensions whose values are correlated correlated too; frequencies of one
    dimension always are (see `covariance`). `mse_law` and `norm_law` count that where the values are known. The joint
    probabilities below are products over coordinates: for unbiased jointly normal deviations such a product is a
    lower bound of the joint probability whatever the correlation (Šidák), so that they err on the careful side.

    Parameters
    ----------
    biases, variances
        Of each class of coordinates that are alike.
    counts
        How many coordinates each class has.
    reports_per_dimension
        How many reports a dimension has on average.
    berry_esseens
        For each class, the bound of the distance from the normal law (Theorem 2).
    kind
        "exact", or "paper": which variance was asked for.
    spectrum
        How deviations depend on one another, where the values are known.

    Examples
    --------
    >>> import hdr4me as hd
    >>> found = hd.deviation(hd.mechanism("duchi", epsilon=1.0), n_users=10_000, n_dims=4, n_sampled=4)
    >>> found.n_coordinates, bool(found.probability_within(0.1) > 0.9)
    (4, True)
    """

    biases: Floats
    variances: Floats
    counts: NDArray[np.int64]
    reports_per_dimension: float
    berry_esseens: Floats
    kind: Variance
    spectrum: Spectrum | None = None

    def _out(self, per_class: Floats) -> Floats:
        """One number when all coordinates are alike, else one per coordinate."""
        if per_class.size == 1:
            return per_class.reshape(())[()]
        return np.repeat(per_class, self.counts)

    @property
    def n_coordinates(self) -> int:
        """How many means and frequencies are estimated: d when every dimension is numeric."""
        return int(self.counts.sum())

    @property
    def bias(self) -> Floats:
        """δ_j = E θ̂_j − θ̄_j."""
        return self._out(self.biases)

    @property
    def variance(self) -> Floats:
        """σ_j² = Var θ̂_j."""
        return self._out(self.variances)

    @property
    def sd(self) -> Floats:
        """σ_j."""
        return self._out(np.sqrt(self.variances))

    @property
    def berry_esseen(self) -> Floats:
        """Theorem 2: the largest difference between the true and the normal distribution function."""
        return self._out(self.berry_esseens)

    @property
    def mse(self) -> float:
        """E (1/d) Σ_j (θ̂_j − θ̄_j)² = the mean of σ_j² + δ_j²."""
        return float(np.sum(self.counts * (self.variances + self.biases**2)) / self.n_coordinates)

    @property
    def mse_law(self) -> SquaredNorm:
        """The distribution of the MSE: mean, sd, cdf, quantile."""
        return self._squared(1.0 / self.n_coordinates)

    @property
    def norm_law(self) -> SquaredNorm:
        """The distribution of ‖θ̂ − θ̄‖₂: mean, sd, cdf, quantile."""
        return self._squared(1.0, root=True)

    def _squared(self, scale: float, *, root: bool = False) -> SquaredNorm:
        known = self.spectrum
        if known is not None:
            return SquaredNorm(known.shift, known.spread, known.counts, scale, root)
        counts = self.counts.astype(np.float64)
        return SquaredNorm(self.biases, np.sqrt(self.variances), counts, scale, root)

    def logpdf(self, deviation: ArrayLike) -> float:
        """Logarithm of Theorem 1's d-dimensional density at a deviation vector (a number: the same in each).

        Raises
        ------
        InvalidInput
            If the vector has another length than there are coordinates.
        """
        x = np.asarray(deviation, dtype=np.float64)
        if x.ndim > 1 or (x.ndim == 1 and x.size != self.n_coordinates):
            raise InvalidInput(
                f"deviation of shape {x.shape} is not allowed: one number or {self.n_coordinates}"
            )
        δ, v = np.repeat(self.biases, self.counts), np.repeat(self.variances, self.counts)
        return float(np.sum(-0.5 * (np.log(2 * np.pi * v) + (x - δ) ** 2 / v)))

    def pdf(self, deviation: ArrayLike) -> float:
        """Theorem 1's density itself; it under- or overflows honestly, `logpdf` does not."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.exp(self.logpdf(deviation)))

    def marginal_pdf(self, x: ArrayLike, coordinate: int = 0) -> Floats:
        """The density of one coordinate's deviation at each x (what the case study draws)."""
        c = self._class_of(coordinate)
        z = np.asarray(x, dtype=np.float64) - self.biases[c]
        return np.asarray(np.exp(-0.5 * z**2 / self.variances[c]) / np.sqrt(2 * np.pi * self.variances[c]))

    def marginal_cdf(self, x: ArrayLike, coordinate: int = 0) -> Floats:
        """P(θ̂_j − θ̄_j ≤ x) for one coordinate."""
        c = self._class_of(coordinate)
        return np.asarray(ndtr((np.asarray(x, np.float64) - self.biases[c]) / np.sqrt(self.variances[c])))

    def _class_of(self, coordinate: int) -> int:
        return int(np.searchsorted(np.cumsum(self.counts), coordinate, side="right"))

    def probability_within(self, tolerance: ArrayLike) -> Floats:
        """P(|θ̂_j − θ̄_j| ≤ ξ_j) per coordinate, for one ξ or one per coordinate (Table II)."""
        δ, σ, ξ, _ = self._aligned(tolerance)
        return self._back(np.exp(log_probability_within(δ, σ, ξ)))

    def log_joint_probability_within(self, tolerance: ArrayLike) -> float:
        """Logarithm of P(every |θ̂_j − θ̄_j| ≤ ξ_j) = ∫_S f (section IV-B), in log space throughout."""
        δ, σ, ξ, k = self._aligned(tolerance)
        return float(np.sum(k * log_probability_within(δ, σ, ξ)))

    def joint_probability_within(self, tolerance: ArrayLike) -> float:
        """P(every |θ̂_j − θ̄_j| ≤ ξ_j)."""
        return float(np.exp(self.log_joint_probability_within(tolerance)))

    def tolerance(self, probability: float, *, jointly: bool = False) -> float:
        """The smallest common ξ kept with this probability: by each coordinate alone, or by all at once.

        Raises
        ------
        InvalidInput
            If the probability is not between 0 and 1.
        """
        if not 0 < probability < 1:
            raise InvalidInput.of("probability", probability, "it must lie between 0 and 1")
        σ = np.sqrt(self.variances)
        if jointly:
            return joint_tolerance(self.biases, σ, self.counts, probability)
        return max(joint_tolerance(b, s, 1, probability) for b, s in zip(self.biases, σ, strict=True))

    def probability_some_exceed(self, threshold: ArrayLike) -> float:
        """P(some coordinate deviates by more): what Theorems 3 and 4 print (thresholds 1 and 2)."""
        δ, σ, τ, k = self._aligned(threshold)
        return enhancement.probability_some_exceed(δ, σ, τ, counts=k)

    def probability_all_exceed(self, threshold: ArrayLike) -> float:
        """P(every coordinate deviates by more): the premise that the proofs of Theorems 3 and 4 use."""
        δ, σ, τ, k = self._aligned(threshold)
        return enhancement.probability_all_exceed(δ, σ, τ, counts=k)

    def _aligned(self, tolerance: ArrayLike) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
        """Biases, sds, tolerances and counts of equal length: per class for one ξ, per coordinate for many."""
        ξ = np.asarray(tolerance, dtype=np.float64)
        if np.any(np.isnan(ξ)) or np.any(ξ < 0):
            raise InvalidInput.of("tolerance", tolerance, "numbers >= 0")
        σ = np.sqrt(self.variances)
        if ξ.ndim == 0:
            return self.biases, σ, ξ, self.counts
        if ξ.shape != (self.n_coordinates,):
            raise InvalidInput(f"tolerance of shape {ξ.shape} is not allowed: one, or {self.n_coordinates}")
        ones = np.ones(self.n_coordinates, dtype=np.int64)
        return np.repeat(self.biases, self.counts), np.repeat(σ, self.counts), ξ, ones

    def _back(self, result: Floats) -> Floats:
        return self._out(result) if result.shape == self.biases.shape else result
