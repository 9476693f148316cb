"""The posterior of every mean under a weighted list of priors: means, spreads, intervals, shares.

Dimensions fall in two groups. *Coarse* ones have a standard error of at least 1.5 cells: their posterior is a list of
cell probabilities, averaged over every prior. *Fine* ones see only the few cells around their observation, where
the moments are integrated exactly inside each cell; they are so well known that averaging the priors first
makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from hdr4me.recalibration.cells import Cells, Floats, Sample
from hdr4me.recalibration.edges import Edged
from hdr4me.recalibration.hierarchy import Prior

__all__ = ["Belief", "Posterior", "Summary"]

_CHUNK = 512
# With more dimensions than this their priors are averaged first. Either the unknowns of the prior are known
# well by then, or a single observation says so little that posterior and prior agree: no difference in both.
_MANY = 5000


class Belief(NamedTuple):
    """Dimensions that a declared structure describes, what it says of each, and how probable it is."""

    where: NDArray[np.int64]
    curve: Edged
    probability: float
    """Beside the exchangeable account."""
    confirmed: float
    """Beside that account and beside means that differ without any structure."""

    def part(self, rows: slice) -> Belief:
        """The same for some of its dimensions."""
        return self._replace(where=self.where[rows], curve=self.curve.part(rows))


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
        # What lies in the first or the last cell is mostly at the very end of the domain: half a cell away.
        inside[[1, -1]] = self.cells.width**2 / 4
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

    def interval(self, level: float, beliefs: Sequence[Belief] = ()) -> tuple[Floats, Floats]:
        """Equal-tailed credible intervals under the spread's odds; for fine dimensions x ± z·s.

        Where a structure is believed with probability p, the posterior is the mixture of both in this proportion.
        """
        low, high = np.empty(self.distinct.x.size), np.empty(self.distinct.x.size)
        tails = (0.5 * (1 - level), 0.5 * (1 + level))
        for part, x, s in self._rows(fine=False):
            cdf = self._cdf(x, s)
            low[part], high[part] = (_invert(cdf, self.cells.edges, tail) for tail in tails)
        # Finer than the cells, the prior is not resolved: the observation's own interval is the honest one.
        fine = self._fine
        half = float(ndtri(tails[1])) * self.distinct.s[fine]
        low[fine] = np.clip(self.distinct.x[fine] - half, self.cells.low, self.cells.high)
        high[fine] = np.clip(self.distinct.x[fine] + half, self.cells.low, self.cells.high)
        lower, upper = low[self.inverse], high[self.inverse]
        for belief in beliefs:
            for i in range(0, belief.where.size, _CHUNK):
                rows = slice(i, i + _CHUNK)
                at = belief.where[rows]
                lower[at], upper[at] = self._mixed(belief.part(rows), tails, (lower[at], upper[at]))
        return lower, upper

    def _mixed(
        self, belief: Belief, tails: tuple[float, float], alone: tuple[Floats, Floats]
    ) -> tuple[Floats, Floats]:
        """The same for some dimensions with a structure; fine ones follow the likelier of the two."""
        place = self.inverse[belief.where]
        p, curve, edges = belief.probability, belief.curve, self.cells.edges
        exchangeable = self._cdf(self.distinct.x[place], self.distinct.s[place])
        cdf = (1 - p) * exchangeable + p * curve.below(edges)
        found = [_invert(cdf, edges, tail) for tail in tails]
        # The spike at the upper end is no slope inside the last cell.
        found = [np.where(1 - p * curve.at_high < t, edges[-1], f) for f, t in zip(found, tails, strict=True)]
        normal = [np.clip(curve.m + float(ndtri(tail)) * curve.sd, edges[0], edges[-1]) for tail in tails]
        fine = self._fine[place]
        rest = normal if p > 0.5 else alone
        lower, upper = (np.where(fine, r, f) for r, f in zip(rest, found, strict=True))
        return lower, upper

    def _cdf(self, x: Floats, s: Floats) -> Floats:
        """P(θ ≤ edge) for every edge of the cells; the spike at the null has the width that data could tell."""
        distance = np.abs(self.cells.middles - self.cells.null)[None, :]
        p = _probabilities(self.cells.likelihood(x, s), self._averaged(self.spread_prior))
        near = distance <= np.maximum(self._reach(s), self.cells.width)[:, None]
        spread = p[:, 1:] + p[:, :1] * near / near.sum(axis=1, keepdims=True)
        cdf = np.zeros((x.size, self.cells.n_cells + 1))
        np.cumsum(spread, axis=1, out=cdf[:, 1:])
        return np.asarray(cdf / cdf[:, -1:])

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
