"""The population that a prediction is for: known values, a prior, or the worst case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hdr4me.errors import InvalidInput
from hdr4me.framework.laws import Law, bias_of, domain_of, peaks
from hdr4me.framework.moments import Floats
from hdr4me.mechanisms.priors import as_prior


@dataclass(frozen=True)
class Population:
    """Values and their shares along the last axis; a first axis, if there is one, runs over dimensions.

    If `finite`, the users have exactly these values, and their variance has the divisor n − 1. Otherwise the values are
    independent draws from this distribution.
    """

    values: Floats
    shares: Floats
    finite: bool

    def expect(self, f: Floats) -> Floats:
        """The mean over the population of a function's values at `values`."""
        return np.asarray(np.sum(self.shares * f, axis=-1))


def from_values(values: ArrayLike, probabilities: ArrayLike | None = None) -> Population:
    """A population with these values, in equal shares or with the given ones; 2-D: one row per dimension."""
    v = np.atleast_1d(_floats("values", values))
    if not np.isfinite(v).all():
        raise InvalidInput.of("values", float(v[~np.isfinite(v)][0]), "finite numbers")
    if v.size == 0 or v.ndim > 2:
        raise InvalidInput(f"values of shape {v.shape} are not allowed: finite numbers with one or two axes")
    if probabilities is None:
        p = np.full(v.shape[-1], 1.0 / v.shape[-1])
    else:
        p = _floats("probabilities", probabilities)
        _check_shares(p)
        if p.shape[-1] != v.shape[-1]:
            raise InvalidInput(f"probabilities of shape {p.shape} do not match values of shape {v.shape}")
    return Population(v, p, finite=True)


def from_frequencies(frequencies: ArrayLike) -> Population:
    """A categorical dimension: one row per category, with the value 1 for the share of users that have it, else 0."""
    f = np.atleast_1d(_floats("probabilities", frequencies))
    _check_shares(f)
    return Population(np.tile([0.0, 1.0], (f.size, 1)), np.stack([1.0 - f, f], axis=1), finite=True)


def _floats(name: str, given: ArrayLike) -> Floats:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):  # their messages, like `given`, may contain a value
        raise InvalidInput(
            f"{name} of type {type(given).__name__} are not allowed: numbers with one or two axes"
        ) from None


def _check_shares(p: Floats) -> None:
    if not np.all(p >= 0) or not np.allclose(np.sum(p, axis=-1), 1.0, rtol=0, atol=1e-9):
        raise InvalidInput.of("probabilities", p.tolist(), "non-negative numbers with sum 1")


_NODES, _WEIGHTS = (np.asarray(a) for a in np.polynomial.legendre.leggauss(5))


def from_prior(prior: Any, law: Law) -> Population:
    """Users drawn from a prior on the law's domain: "uniform" (by 5-point Gauss rules), or what `as_prior` accepts."""
    low, high = domain_of(law)
    if getattr(law, "points", None) is not None:
        raise InvalidInput("a prior is not allowed for a categorical mechanism: give frequencies")
    if isinstance(prior, str) and prior == "uniform":
        levels = getattr(law, "levels", None)
        edges = np.linspace(low, high, 17) if levels is None else np.asarray(levels, dtype=np.float64)
        middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
        values = (middle[:, None] + half[:, None] * _NODES).ravel()
        return Population(values, (half[:, None] * _WEIGHTS).ravel() / (high - low), finite=False)
    known = as_prior(prior, low, high)
    return Population(known.values, known.shares, finite=False)


def worst_case(law: Law, inverse_count: float, users: float, *, sampling: bool) -> Population:
    """The population of largest mean squared error: at most two distinct values.

    The error A·E[V] + (A − 1/n)·Var(μ) + (E δ)² (A = E[1/r]) is linear in the population for a given mean value, so an
    extreme population has two values. All pairs of a grid are tried, each with its best share (a quadratic).
    Without `sampling` (the paper's variance) the middle term is absent.
    """
    κ = max(inverse_count - 1.0 / users, 0.0) if sampling else 0.0
    grid = _grid(law, κ / inverse_count)
    μ = np.asarray(law.mean(grid), dtype=np.float64)
    δ = bias_of(law, grid)
    g = inverse_count * np.asarray(law.variance(grid), dtype=np.float64) + κ * μ**2
    # With share w on i and 1−w on j: w g_i + (1−w) g_j + (Eδ)² − κ (Eμ)², a quadratic a w² + b w + c.
    dμ, dδ = μ[:, None] - μ[None, :], δ[:, None] - δ[None, :]
    a = dδ**2 - κ * dμ**2
    b = g[:, None] - g[None, :] + 2 * dδ * δ[None, :] - 2 * κ * dμ * μ[None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = np.where(a < 0, np.clip(-b / (2 * a), 0.0, 1.0), 1.0)
    w = np.where(a + b > inner * (a * inner + b), 1.0, inner)
    score = np.maximum(w * (a * w + b), 0.0) + (g + δ**2 - κ * μ**2)[None, :]
    w = np.where(w * (a * w + b) > 0, w, 0.0)
    i, j = np.unravel_index(int(np.argmax(score)), score.shape)
    return Population(np.array([grid[i], grid[j]]), np.array([w[i, j], 1 - w[i, j]]), finite=True)


def _grid(law: Law, factor: float) -> Floats:
    points: Sequence[float] | None = getattr(law, "points", None)
    if points is not None:
        return np.asarray(points, dtype=np.float64)
    if getattr(law, "levels", None) is not None:
        return peaks(law, factor)
    return np.linspace(*domain_of(law), 65)
