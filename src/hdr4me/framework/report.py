"""The variance of one report: its mean over a prior, and the largest that any population can give."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.framework.laws import Law, domain_of
from hdr4me.mechanisms.priors import Prior

__all__ = ["largest_variance", "mean_variance", "peaks"]

Floats = NDArray[np.float64]

# Gauss–Legendre: exact for the polynomials that the laws' variances are between their kinks
_NODES, _WEIGHTS = (np.asarray(a) for a in np.polynomial.legendre.leggauss(8))


def mean_variance(law: Any, prior: Prior) -> float:
    """V̄ = E Var(t*|t) for t drawn from the prior, for a law or a table on [−1, 1].

    >>> from hdr4me.mechanisms import mechanism
    >>> from hdr4me.mechanisms.priors import as_prior
    >>> round(mean_variance(mechanism("duchi", epsilon=1.0), as_prior("uniform")), 6)  # C² − 1/3
    4.349361
    """
    if not prior.uniform:
        return float(prior.shares @ np.asarray(law.variance(prior.values), dtype=np.float64))
    own = getattr(law, "mean_variance", None)
    if own is not None:
        return float(own() if callable(own) else own)
    halves = np.concatenate([(_NODES - 1) / 2, (_NODES + 1) / 2])  # |t| has a kink at 0
    return (
        float(np.concatenate([_WEIGHTS, _WEIGHTS]) @ np.asarray(law.variance(halves), dtype=np.float64)) / 4
    )


def largest_variance(law: Any, factor: ArrayLike) -> Floats:
    """sup_t Var(t*|t) + κ·t² for each κ in `factor`: no population of an unbiased report has more V̄ + κS².

    V̄ + κS² = E[V(t) + κt²] − κ(E t)², which a population half at t and half at −t attains where V is even.

    >>> from hdr4me.mechanisms import mechanism
    >>> largest_variance(mechanism("duchi", epsilon=1.0), [0.0, 1.0]).round(6).tolist()  # C² at 0; C² anywhere
    [4.682694, 4.682694]
    """
    κ = np.atleast_1d(np.asarray(factor, dtype=np.float64))
    levels = getattr(law, "levels", None)
    if levels is None:
        t = np.linspace(*domain_of(law), 129)
        grid = np.asarray(law.variance(t), dtype=np.float64)
        return np.asarray((grid + κ[:, None] * t**2).max(axis=1))
    return np.array([float((law.variance(t) + k * t**2).max()) for k in κ for t in (peaks(law, k),)])


def peaks(law: Law, factor: float) -> Floats:
    """A table's levels, and where between two of them Var(t*|t) + κt² is largest.

    E[t*²|t] is linear between levels, so that Var + κt² = E[t*²|t] − (1−κ)t² is a parabola with its peak at
    slope/(2(1−κ)).
    """
    levels = np.asarray(law.levels, dtype=np.float64)  # type: ignore[attr-defined]
    second = np.asarray(law.variance(levels), dtype=np.float64) + np.asarray(law.mean(levels)) ** 2
    if factor >= 1:
        return levels
    slope = np.diff(second) / np.diff(levels)
    return np.union1d(levels, np.clip(slope / (2 * (1 - factor)), levels[:-1], levels[1:]))
