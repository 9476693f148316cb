"""The posterior of every mean under a weighted list of priors: means, spreads, intervals, shares.

Dimensions fall in two groups. *Coarse* ones have a standard error of at least 1.5 cells: their posterior is a list of
cell probabilities, averaged over every prior. *Fine* ones see only the few cells around their observation, where
the moments are integrated exactly inside each cell; they are so well known that averaging the priors first
makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from hdr4me.recalibration.cells import Cells, Floats, Sample
from hdr4me.recalibration.hierarchy import Prior

__all__ = ["Posterior", "Summary"]

_CHUNK = 512
# With more dimensions than this their priors are averaged first. Either the unknowns of the prior are known
# well by then, or a single observation says so little that posterior and prior agree: no difference in both.
_MANY = 5000


class Summary(NamedTuple):
    """One number per dimension."""

    mean: Floats
    """E θ_j under the estimate's odds: the estimate."""
    spread_mean: Floats
    """E θ_j under the spread's odds."""
    spread_square: Floats
    """E θ_j² under the spread's odds."""
    signal: Floats
    """P(|θ_j − null| > s_j) under the spread's odds."""

    def expected_error(self, estimate: Floats) -> Floats:
        """E(θ_j − estimate_j)² under the spread's odds, for any estimate."""
        return np.maximum(self.spread_square - 2 * estimate * self.spread_mean + estimate**2, 0.0)


@dataclass(frozen=True)
class Posterior:
    """Fitted once, evaluated on demand, one distinct pair (x, s) at a time."""

    cells: Cells
    distinct: Sample
    inverse: NDArray[np.int64]
    estimate_prior: Prior
    spread_prior: Prior
    probabilities: dict[str, float]
    """The weight of each account in the estimate."""
    log_evidence: float = 0.0
    """Log of ∏_j ∫ exp(−(x_j − θ)²/2s_j²) under all accounts together: the factor 1/(s_j√2π) is left out."""

    @cached_property
    def _fine(self) -> NDArray[np.bool_]:
        return self.distinct.s < 1.5 * self.cells.width

    def _rows(self, fine: bool) -> Iterator[tuple[NDArray[np.int64], Floats, Floats]]:
        rows = np.flatnonzero(self._fine == fine)
        for i in range(0, rows.size, _CHUNK):
            part = rows[i : i + _CHUNK]
            yield part, self.distinct.x[part], self.distinct.s[part]

    def _reach(self, s: Floats) -> Floats:
        """A spike is only known to be narrower than what these data could tell from a point.

        Σ z² of d dimensions betrays an extra variance τ² once τ²/s² exceeds about z·√(2/d); a 90 % interval
        reaches to zτ, z = 1.645.
        """
        return np.asarray(1.645**1.5 * s * (2.0 / self.distinct.weight.sum()) ** 0.25)

    def summary(self) -> Summary:
        """Means, second moments and the share of signal, all dimensions."""
        out = np.empty((4, self.distinct.x.size))
        priors = [self._averaged(p) for p in (self.estimate_prior, self.spread_prior)]
        values = np.concatenate([[self.cells.null], self.cells.middles])
        inside = np.where(np.arange(values.size) > 0, self.cells.width**2 / 12, 0.0)
        powers = np.stack([values, values**2 + inside], axis=1)
        away = np.abs(values - self.cells.null)
        for part, x, s in self._rows(fine=False):
            likelihood = self.cells.likelihood(x, s)
            out[0, part] = _probabilities(likelihood, priors[0]) @ values
            p = _probabilities(likelihood, priors[1])
            out[1:3, part] = (p @ powers).T
            out[3, part] = (p * (away > s[:, None])).sum(axis=1)
        for part, x, s in self._rows(fine=True):
            for i, prior in enumerate((self.estimate_prior, self.spread_prior)):
                mean, square = self.cells.window_moments(x, s, np.exp(prior.log_weights) @ prior.shapes)
                out[i, part] = mean
            out[2, part] = square
            out[3, part] = np.abs(mean - self.cells.null) > s
        out[0] = np.clip(out[0], self.cells.low, self.cells.high)
        out[3] = np.clip(out[3], 0.0, 1.0)
        return Summary(*(row[self.inverse] for row in out))

    @cached_property
    def mean(self) -> Floats:
        """E θ_j under the estimate's odds alone: what `summary` calls mean, at half the price."""
        out = np.empty(self.distinct.x.size)
        values = np.concatenate([[self.cells.null], self.cells.middles])
        prior = self._averaged(self.estimate_prior)
        for part, x, s in self._rows(fine=False):
            out[part] = _probabilities(self.cells.likelihood(x, s), prior) @ values
        shape = np.exp(self.estimate_prior.log_weights) @ self.estimate_prior.shapes
        for part, x, s in self._rows(fine=True):
            out[part] = self.cells.window_moments(x, s, shape)[0]
        return np.clip(out, self.cells.low, self.cells.high)[self.inverse]

    def log_marginal(self) -> Floats:
        """Each dimension's own share of the evidence under the averaged prior, 1/(s√2π) left out."""
        prior = np.exp(self.estimate_prior.log_weights) @ self.estimate_prior.shapes
        out = np.empty(self.distinct.x.size)
        for fine in (False, True):
            for part, x, s in self._rows(fine=fine):
                out[part] = np.log(np.maximum(self.cells.likelihood(x, s) @ prior, 1e-290))
        return out[self.inverse]

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Equal-tailed credible intervals under the spread's odds; for fine dimensions x ± z·s."""
        low, high = np.empty(self.distinct.x.size), np.empty(self.distinct.x.size)
        distance = np.abs(self.cells.middles - self.cells.null)[None, :]
        prior = self._averaged(self.spread_prior)
        for part, x, s in self._rows(fine=False):
            p = _probabilities(self.cells.likelihood(x, s), prior)
            near = distance <= np.maximum(self._reach(s), self.cells.width)[:, None]
            spread = p[:, 1:] + p[:, :1] * near / near.sum(axis=1, keepdims=True)
            cdf = np.zeros((x.size, self.cells.n_cells + 1))
            np.cumsum(spread, axis=1, out=cdf[:, 1:])
            cdf /= cdf[:, -1:]
            low[part] = _invert(cdf, self.cells.edges, 0.5 * (1 - level))
            high[part] = _invert(cdf, self.cells.edges, 0.5 * (1 + level))
        # Finer than the cells, the prior is not resolved: the observation's own interval is the honest one.
        fine = self._fine
        half = float(ndtri(0.5 * (1 + level))) * self.distinct.s[fine]
        low[fine] = np.clip(self.distinct.x[fine] - half, self.cells.low, self.cells.high)
        high[fine] = np.clip(self.distinct.x[fine] + half, self.cells.low, self.cells.high)
        return low[self.inverse], high[self.inverse]

    def _averaged(self, prior: Prior) -> Prior:
        if self.distinct.x.size <= _MANY:
            return prior
        return Prior((np.exp(prior.log_weights) @ prior.shapes)[None, :], np.zeros(1))


def _probabilities(likelihood: Floats, prior: Prior) -> Floats:
    """Posterior probabilities of atom and cells: likelihood · Σ_h p_h·G_h/m_h, m_h the prior's own marginal."""
    if len(prior.shapes) == 1:
        p = likelihood * prior.shapes
    else:
        # Where one prior's marginal underflows, its weight (earned on this dimension too) is nothing.
        marginal = np.maximum(likelihood @ prior.shapes.T, 1e-290)
        p = likelihood * ((np.exp(prior.log_weights) / marginal) @ prior.shapes)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _invert(cdf: Floats, edges: Floats, probability: float) -> Floats:
    """Where each row's piecewise linear distribution function reaches the probability."""
    k = np.clip((cdf < probability).sum(axis=1), 1, edges.size - 1)
    row = np.arange(len(cdf))
    below, above = cdf[row, k - 1], cdf[row, k]
    share = (probability - below) / np.maximum(above - below, 1e-300)
    return np.asarray(edges[k - 1] + np.clip(share, 0.0, 1.0) * (edges[k] - edges[k - 1]))
