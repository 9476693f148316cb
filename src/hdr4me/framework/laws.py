"""The moments that the framework needs of a mechanism: `mean`, `variance` and `abs_third_moment`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from hdr4me.channels import Channel
from hdr4me.errors import InvalidInput
from hdr4me.framework.moments import Floats
from hdr4me.mechanisms.law import Mechanism, affine_mean, probe_points
from hdr4me.mechanisms.priors import Prior

# Gauss–Legendre is exact: the laws' variances are piecewise polynomials.
_NODES, _WEIGHTS = (np.asarray(a) for a in np.polynomial.legendre.leggauss(8))


@runtime_checkable
class Law(Protocol):
    """The three moments of t* given t, vectorized over t; an attribute `domain` is used if there is one."""

    def mean(self, t: ArrayLike, /) -> Any:
        """E[t*|t]."""

    def variance(self, t: ArrayLike, /) -> Any:
        """Var(t*|t)."""

    def abs_third_moment(self, t: ArrayLike, /) -> Any:
        """E|t* − E t*|³."""


@dataclass(frozen=True)
class EntryLaw:
    """One entry of a frequency vector, t = 1 if the user has the category: Var and E|t* − t|³ at t = 0 and at t = 1."""

    variances: tuple[float, float]
    thirds: tuple[float, float]
    domain: tuple[float, float] = (0.0, 1.0)
    points: tuple[float, ...] = (0.0, 1.0)

    @classmethod
    def of(cls, channel: Channel) -> EntryLaw:
        """Of a category whose frequency is estimated from reports by this channel."""
        marginal = channel.response.marginal()
        away = np.abs(marginal.decoders["value"] - marginal.targets["value"][:, None])
        variances, thirds = ((marginal.rows * away**k).sum(axis=1).tolist() for k in (2, 3))
        return cls(tuple(variances), tuple(thirds))

    def mean(self, t: ArrayLike, /) -> Floats:
        return np.asarray(t, dtype=np.float64)

    def variance(self, t: ArrayLike, /) -> Floats:
        return np.asarray(np.where(np.asarray(t) > 0, self.variances[1], self.variances[0]))

    def abs_third_moment(self, t: ArrayLike, /) -> Floats:
        return np.asarray(np.where(np.asarray(t) > 0, self.thirds[1], self.thirds[0]))


@dataclass(frozen=True)
class _Calibrated:
    """The unbiased report (t* − intercept)/slope."""

    law: Any
    slope: float
    domain: tuple[float, float]
    levels: Any

    def mean(self, t: ArrayLike, /) -> Floats:
        return np.asarray(t, dtype=np.float64)

    def variance(self, t: ArrayLike, /) -> Floats:
        return np.asarray(self.law.variance(t) / self.slope**2)

    def abs_third_moment(self, t: ArrayLike, /) -> Floats:
        return np.asarray(self.law.abs_third_moment(t) / abs(self.slope) ** 3)


def as_law(mechanism: object) -> Law:
    """The law of a mechanism, or of one frequency if it is a channel for categories."""
    if isinstance(mechanism, Channel):
        return EntryLaw.of(mechanism)
    if not isinstance(mechanism, Law):
        missing = [m for m in ("mean", "variance", "abs_third_moment") if not hasattr(mechanism, m)]
        raise InvalidInput.of(
            "mechanism",
            mechanism,
            f"it must have mean, variance and abs_third_moment (missing: {', '.join(missing)})",
        )
    if not (isinstance(mechanism, Mechanism) and type(mechanism).__module__.startswith("hdr4me.")):
        probe(mechanism)
    return mechanism


def domain_of(law: object) -> tuple[float, float]:
    """The law's domain; [−1, 1] if it has none."""
    low, high = getattr(law, "domain", (-1.0, 1.0))
    return float(low), float(high)


def bias_of(law: Law, t: Floats) -> Floats:
    """δ(t) = E[t*|t] − t, by the law's own `bias` if it has one, which avoids cancellation."""
    own = getattr(law, "bias", None)
    return np.asarray(own(t) if callable(own) else law.mean(t) - t, dtype=np.float64)


def calibrate(law: Law) -> Law:
    """The law of the calibrated report; needs E[t*|t] affine in t, which is checked on a grid and at random points."""
    found = affine_mean(law.mean, domain_of(law), str(getattr(law, "name", law)))
    own = getattr(law, "calibration", None)
    if own is not None and not np.allclose(
        (own.slope, own.intercept), (found.slope, found.intercept), rtol=1e-7, atol=1e-9
    ):
        raise InvalidInput(
            f"mechanism = {law!r} cannot be calibrated: its calibration {own} differs from the one of its mean, {found}"
        )
    # The law's own calibration is more precise than one from the means at both ends.
    known = found if own is None else own
    if known.slope == 0.0:
        raise InvalidInput(
            f"mechanism = {law!r} cannot be calibrated: its reports do not depend on the value"
        )
    if known.slope == 1.0 and known.intercept == 0.0:
        return law
    return _Calibrated(law, float(known.slope), domain_of(law), getattr(law, "levels", None))


def probe(law: Law) -> None:
    """Reject a law with impossible moments: Lyapunov's inequality requires E|t* − E t*|³ ≥ Var^{3/2}."""
    name = getattr(law, "name", law)
    points = np.asarray(getattr(law, "points", None) or probe_points(*domain_of(law)), dtype=np.float64)
    moments = {}
    for what in ("mean", "variance", "abs_third_moment"):
        moments[what] = np.asarray(getattr(law, what)(points), dtype=np.float64)
        if moments[what].shape != points.shape or not np.isfinite(moments[what]).all():
            raise InvalidInput.of(
                "mechanism", name, f"its {what}(t) must return one finite number for each value"
            )
    if (moments["variance"] < 0).any():
        raise InvalidInput.of("mechanism", name, "its variance must not be negative")
    if (moments["abs_third_moment"] < moments["variance"] ** 1.5 * (1 - 1e-6)).any():
        raise InvalidInput.of("mechanism", name, "its abs_third_moment must be at least variance^1.5")


def mean_variance(law: Any, prior: Prior) -> float:
    """V̄ = E Var(t*|t) for t drawn from the prior, for a law or a table on [−1, 1]."""
    if not prior.uniform:
        return float(prior.shares @ np.asarray(law.variance(prior.values), dtype=np.float64))
    own = getattr(law, "mean_variance", None)
    if own is not None:
        return float(own() if callable(own) else own)
    halves = np.concatenate([(_NODES - 1) / 2, (_NODES + 1) / 2])  # |t| has a kink at 0
    return float(np.tile(_WEIGHTS, 2) @ np.asarray(law.variance(halves), dtype=np.float64)) / 4


def largest_variance(law: Any, factor: ArrayLike) -> Floats:
    """sup_t Var(t*|t) + κ·t² for each κ in `factor`, the largest V̄ + κS² of any population for an unbiased report.

    V̄ + κS² = E[V(t) + κt²] − κ(E t)², which a population half at t and half at −t attains where V is even.
    """
    κ = np.atleast_1d(np.asarray(factor, dtype=np.float64))
    levels = getattr(law, "levels", None)
    if levels is None:
        t = np.linspace(*domain_of(law), 129)
        grid = np.asarray(law.variance(t), dtype=np.float64)
        return np.asarray((grid + κ[:, None] * t**2).max(axis=1))
    return np.array([float((law.variance(t) + k * t**2).max()) for k in κ for t in (peaks(law, k),)])


def peaks(law: Law, factor: float) -> Floats:
    """A table's levels, and the maxima between two of them of the parabola Var(t*|t) + κt² = E[t*²|t] − (1−κ)t²."""
    levels = np.asarray(law.levels, dtype=np.float64)  # type: ignore[attr-defined]
    second = np.asarray(law.variance(levels), dtype=np.float64) + np.asarray(law.mean(levels)) ** 2
    if factor >= 1:
        return levels
    slope = np.diff(second) / np.diff(levels)
    return np.union1d(levels, np.clip(slope / (2 * (1 - factor)), levels[:-1], levels[1:]))
