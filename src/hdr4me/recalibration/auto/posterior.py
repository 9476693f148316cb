"""The posterior of every mean under a weighted list of priors: means, variances, intervals.

The support of a prior is an atom at the null value and K equal cells, each of uniform density. *Coarse* dimensions have
a standard error of at least 1.5 cells: their posterior is a list of cell probabilities, averaged over every prior.
*Fine* ones use only the cells around their observation, inside which the moments are integrated exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from hdr4me.recalibration.inputs import Floats

_ROOT_2PI = float(np.sqrt(2 * np.pi))
# Observations farther than this many standard errors outside the domain are moved there, to avoid underflow.
FARTHEST = 8.0
_WINDOW = 13
# Levels of noise: at least 40 dimensions each, at most 6, and only if the standard errors differ by half.
_FEWEST_PER_LEVEL, _MOST_LEVELS, _UNEQUAL = 40, 6, 1.5
# The prior probability of a mean at either end of the domain, for means with a declared structure.
SPIKE = 0.15
_CHUNK = 512
# With more dimensions the priors are averaged first; the difference is negligible.
_MANY = 5000


class Sample(NamedTuple):
    """Observations x_b with standard errors s_b > 0, each with the weight of `weight_b` dimensions."""

    x: Floats
    s: Floats
    weight: Floats


class Prior(NamedTuple):
    """Distributions over the atom and the cells (one in each row), and the logarithm of each weight."""

    shapes: Floats
    log_weights: Floats

    @property
    def average(self) -> Floats:
        """The weighted average of the distributions."""
        return np.asarray(np.exp(self.log_weights) @ self.shapes)


@dataclass(frozen=True)
class Cells:
    """`n_cells` equal cells between low and high, and an atom at `null`."""

    low: float
    high: float
    null: float
    n_cells: int

    @classmethod
    def for_noise(cls, low: float, high: float, null: float, s: Floats) -> Cells:
        """Cells about a third of the smaller standard errors wide; between 40 and 256 of them."""
        fine = float(np.quantile(s, 0.1)) / 3
        return cls(low, high, null, int(np.clip(np.ceil((high - low) / fine), 40, 256)))

    @property
    def width(self) -> float:
        """The width of a cell."""
        return (self.high - self.low) / self.n_cells

    @property
    def edges(self) -> Floats:
        """The K+1 edges."""
        return np.linspace(self.low, self.high, self.n_cells + 1)

    @property
    def middles(self) -> Floats:
        """The K middles."""
        return 0.5 * (self.edges[1:] + self.edges[:-1])

    def likelihood(self, x: Floats, s: Floats) -> Floats:
        """Average of exp(−(x−θ)²/2s²) over the atom (column 0) and over each cell."""
        x = np.clip(x, self.low - FARTHEST * s, self.high + FARTHEST * s)
        out = np.empty((x.size, self.n_cells + 1))
        out[:, 0] = np.exp(-0.5 * ((x - self.null) / s) ** 2)
        out[:, 1:] = self._inside(x, (self.edges - x[:, None]) / s[:, None])
        out[:, 1:] *= (_ROOT_2PI * s / self.width)[:, None]
        return out

    def window_moments(self, x: Floats, s: Floats, shape: Floats) -> tuple[Floats, Floats]:
        """E θ and E θ² given x under the prior `shape`, for s below 1.5 cells: from the 27 cells around x."""
        x = np.clip(x, self.low - FARTHEST * s, self.high + FARTHEST * s)
        size = min(2 * _WINDOW + 1, self.n_cells)
        middle = np.floor((x - self.low) / self.width).astype(np.int64)
        at = np.clip(middle - _WINDOW, 0, self.n_cells - size)[:, None] + np.arange(size + 1)
        z = (self.edges[at] - x[:, None]) / s[:, None]
        density = shape[1:][at[:, :-1]] / self.width
        mass = density * self._inside(x, z) * s[:, None]
        φ, σ = normal_density(z), s[:, None]
        # ∫ (θ−x) and (θ−x)² against the normal of each cell, in units of s.
        first = -density * np.diff(φ, axis=1) * σ**2
        second = mass * σ**2 - density * np.diff(z * φ, axis=1) * σ**3
        atom = shape[0] * np.exp(-0.5 * ((x - self.null) / s) ** 2) / _ROOT_2PI
        # Without prior mass near the observation, the posterior is N(x, s²).
        total = mass.sum(axis=1) + atom
        lost = total < 1e-200
        total = np.where(lost, 1.0, total)
        p = atom / total
        m1, m2 = first.sum(axis=1) / total, second.sum(axis=1) / total
        mean = np.where(lost, x, (1 - p) * x + m1 + p * self.null)
        square = (1 - p) * x**2 + 2 * x * m1 + m2 + p * self.null**2
        return mean, np.where(lost, x**2 + s**2, square)

    def _inside(self, x: Floats, z: Floats) -> Floats:
        """Φ(b) − Φ(a) between neighboring z, computed in the left tail for precision."""
        flip = np.where(x < 0.5 * (self.low + self.high), -1.0, 1.0)[:, None]
        return np.abs(np.diff(ndtr(flip * z), axis=1))


def normal_density(z: Floats) -> Floats:
    """The density of the standard normal."""
    return np.asarray(np.exp(-0.5 * z**2) / _ROOT_2PI)


def distinct_pairs(a: Floats, b: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One index for each distinct pair, in order, and the position of each element among the pairs."""
    order = np.lexsort((b, a))
    new = np.ones(a.size, dtype=bool)
    new[1:] = (np.diff(a[order]) != 0) | (np.diff(b[order]) != 0)
    inverse = np.empty(a.size, dtype=np.int64)
    inverse[order] = np.cumsum(new) - 1
    return order[new], inverse


def compress(sample: Sample, limit: int = 400) -> Sample:
    """At most about `limit` weighted observations: averages over bins of s/8 by 5 % of s, or coarser."""
    x, s, weight = sample
    if x.size <= limit:
        return sample
    step = 1.0
    while True:
        level = np.rint(np.log(s) / (0.05 * step))
        place = np.rint(x / (np.exp(level * 0.05 * step) * step / 8))
        _, inverse = distinct_pairs(level, place)
        total = np.bincount(inverse, weights=weight).astype(np.float64)
        if total.size <= limit or step >= 8:
            break
        step *= 1.5
    return Sample(
        np.bincount(inverse, weights=x * weight) / total,
        np.exp(np.bincount(inverse, weights=np.log(s) * weight) / total),
        total,
    )


def noise_levels(s: Floats) -> list[NDArray[np.int64]]:
    """Dimensions by level of standard error, at least 40 in each; one level if the errors hardly differ."""
    number = min(s.size // _FEWEST_PER_LEVEL, _MOST_LEVELS)
    order = np.argsort(s, kind="stable")
    if number < 2 or np.quantile(s, 0.9) < _UNEQUAL * np.quantile(s, 0.1):
        return [order]
    rising = s[order]
    cuts: list[int] = []
    for level in np.array_split(rising, number)[:-1]:
        cut = int(np.searchsorted(rising, level[-1], "right"))
        if cut - (cuts[-1] if cuts else 0) >= _FEWEST_PER_LEVEL and s.size - cut >= _FEWEST_PER_LEVEL:
            cuts.append(cut)
    return np.split(order, cuts)


class Edged(NamedTuple):
    """The posterior of each mean: N(m, sd²) truncated to [low, high], and the shares of the two ends."""

    m: Floats
    sd: Floats
    low: float
    high: float
    at_low: Floats
    at_high: Floats

    @property
    def mean(self) -> Floats:
        """E θ."""
        a, b = (self.low - self.m) / self.sd, (self.high - self.m) / self.sd
        slope = (normal_density(a) - normal_density(b)) / _between(a, b)
        inside = np.clip(self.m + self.sd * slope, self.low, self.high)
        return np.asarray(inside + self.at_low * (self.low - inside) + self.at_high * (self.high - inside))

    def below(self, θ: Floats) -> Floats:
        """P(mean ≤ θ) for a row of points of the domain, one row for each mean."""
        m, sd = self.m[:, None], self.sd[:, None]
        a = (self.low - m) / sd
        part = _between(a, (θ - m) / sd) / _between(a, (self.high - m) / sd)
        inside = (1 - self.at_low - self.at_high)[:, None] * np.minimum(part, 1.0)
        return np.asarray(self.at_low[:, None] + inside + self.at_high[:, None] * (θ >= self.high))


def edged(mean: Floats, variance: Floats, low: float, high: float) -> Edged:
    """Combine estimates N(mean, variance) with a prior that has a spike at each end of the domain, uniform between."""
    sd = np.sqrt(np.maximum(variance, 1e-18 * (high - low) ** 2))
    m = np.clip(mean, low - FARTHEST * sd, high + FARTHEST * sd)
    a, b = (low - m) / sd, (high - m) / sd
    ends = [SPIKE * normal_density(z) / sd for z in (a, b)]
    total = ends[0] + ends[1] + (1 - 2 * SPIKE) / (high - low) * _between(a, b)
    return Edged(m, sd, low, high, ends[0] / total, ends[1] / total)


def _between(a: Floats, b: Floats) -> Floats:
    """Φ(b) − Φ(a) for a ≤ b, computed in the tail for precision."""
    flip = a > 0
    return np.asarray(np.maximum(ndtr(np.where(flip, -a, b)) - ndtr(np.where(flip, -b, a)), 1e-300))


class Belief(NamedTuple):
    """Dimensions that a declared structure describes, their posterior under it, and its probability."""

    where: NDArray[np.int64]
    curve: Edged
    probability: float
    """In comparison with the exchangeable model."""
    confirmed: float
    """In comparison with the exchangeable model and with means that differ without structure."""

    def part(self, rows: slice) -> Belief:
        """The belief about some of its dimensions."""
        curve = Edged._make(a[rows] if isinstance(a, np.ndarray) else a for a in self.curve)
        return self._replace(where=self.where[rows], curve=curve)


class Summary(NamedTuple):
    """For each dimension E θ_j, E θ_j² and P(|θ_j − null| > s_j), under the odds of the spread."""

    spread_mean: Floats
    spread_square: Floats
    signal: Floats

    def expected_error(self, estimate: Floats) -> Floats:
        """E(θ_j − estimate_j)² under the odds of the spread, for any estimate."""
        return np.maximum(self.spread_square - 2 * estimate * self.spread_mean + estimate**2, 0.0)


@dataclass(frozen=True)
class Posterior:
    """A fitted posterior, evaluated for each distinct pair (x, s)."""

    cells: Cells
    distinct: Sample
    inverse: NDArray[np.int64]
    estimate_prior: Prior
    spread_prior: Prior
    probabilities: dict[str, float]
    """The weight of each model in the estimate."""
    log_evidence: float = 0.0
    """Log of ∏_j ∫ exp(−(x_j − θ)²/2s_j²) under all models together, without the factors 1/(s_j√2π)."""

    @cached_property
    def _fine(self) -> NDArray[np.bool_]:
        return self.distinct.s < 1.5 * self.cells.width

    def _rows(self, fine: bool) -> Iterator[tuple[NDArray[np.int64], Floats, Floats]]:
        rows = np.flatnonzero(self._fine == fine)
        for i in range(0, rows.size, _CHUNK):
            part = rows[i : i + _CHUNK]
            yield part, self.distinct.x[part], self.distinct.s[part]

    @property
    def _values(self) -> Floats:
        return np.concatenate([[self.cells.null], self.cells.middles])

    def summary(self) -> Summary:
        """First and second moments under the odds of the spread, and the share of signal."""
        out = np.empty((3, self.distinct.x.size))
        cells, prior, values = self.cells, self._averaged(self.spread_prior), self._values
        inside = np.where(np.arange(values.size) > 0, cells.width**2 / 12, 0.0)
        # Mass in the first or last cell is mostly at the end of the domain, half a cell away.
        inside[[1, -1]] = cells.width**2 / 4
        powers = np.stack([values, values**2 + inside], axis=1)
        away = np.abs(values - cells.null)
        for part, x, s in self._rows(fine=False):
            p = _probabilities(cells.likelihood(x, s), prior)
            out[:2, part] = (p @ powers).T
            out[2, part] = (p * (away > s[:, None])).sum(axis=1)
        for part, x, s in self._rows(fine=True):
            out[0, part], out[1, part] = cells.window_moments(x, s, self.spread_prior.average)
            out[2, part] = np.abs(out[0, part] - cells.null) > s
        out[2] = np.clip(out[2], 0.0, 1.0)
        return Summary(*(row[self.inverse] for row in out))

    @cached_property
    def mean(self) -> Floats:
        """E θ_j under the odds of the estimate."""
        out = np.empty(self.distinct.x.size)
        prior, values = self._averaged(self.estimate_prior), self._values
        for part, x, s in self._rows(fine=False):
            out[part] = _probabilities(self.cells.likelihood(x, s), prior) @ values
        for part, x, s in self._rows(fine=True):
            out[part] = self.cells.window_moments(x, s, self.estimate_prior.average)[0]
        return np.clip(out, self.cells.low, self.cells.high)[self.inverse]

    def log_marginal(self) -> Floats:
        """The log evidence of each dimension under the averaged prior, without 1/(s√2π)."""
        prior = self.estimate_prior.average
        out = np.empty(self.distinct.x.size)
        for fine in (False, True):
            for part, x, s in self._rows(fine=fine):
                out[part] = np.log(np.maximum(self.cells.likelihood(x, s) @ prior, 1e-290))
        return out[self.inverse]

    def interval(self, level: float, beliefs: Sequence[Belief] = ()) -> tuple[Floats, Floats]:
        """Equal-tailed credible intervals under the odds of the spread, with structures; fine dimensions: x ± z·s."""
        low, high = np.empty(self.distinct.x.size), np.empty(self.distinct.x.size)
        tails = (0.5 * (1 - level), 0.5 * (1 + level))
        for part, x, s in self._rows(fine=False):
            cdf = self._cdf(x, s)
            low[part], high[part] = (_invert(cdf, self.cells.edges, tail) for tail in tails)
        # The cells do not resolve the prior at this scale.
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
        """The intervals of some dimensions with a structure; fine ones follow the more probable model."""
        place = self.inverse[belief.where]
        p, curve, edges = belief.probability, belief.curve, self.cells.edges
        exchangeable = self._cdf(self.distinct.x[place], self.distinct.s[place])
        cdf = (1 - p) * exchangeable + p * curve.below(edges)
        found = [_invert(cdf, edges, tail) for tail in tails]
        # The spike at the upper end is a jump, not a slope inside the last cell.
        found = [np.where(1 - p * curve.at_high < t, edges[-1], f) for f, t in zip(found, tails, strict=True)]
        normal = [np.clip(curve.m + float(ndtri(tail)) * curve.sd, edges[0], edges[-1]) for tail in tails]
        fine = self._fine[place]
        rest = normal if p > 0.5 else alone
        lower, upper = (np.where(fine, r, f) for r, f in zip(rest, found, strict=True))
        return lower, upper

    def _cdf(self, x: Floats, s: Floats) -> Floats:
        """P(θ ≤ edge) for every edge of the cells.

        The spike at the null gets the width up to which these data cannot distinguish it from a point: Σ z² of d
        dimensions reveals an extra variance τ² once τ²/s² exceeds about z·√(2/d), z = 1.645; an interval reaches zτ.
        """
        reach = 1.645**1.5 * s * (2.0 / self.distinct.weight.sum()) ** 0.25
        distance = np.abs(self.cells.middles - self.cells.null)[None, :]
        p = _probabilities(self.cells.likelihood(x, s), self._averaged(self.spread_prior))
        near = distance <= np.maximum(reach, self.cells.width)[:, None]
        spread = p[:, 1:] + p[:, :1] * near / near.sum(axis=1, keepdims=True)
        cdf = np.zeros((x.size, self.cells.n_cells + 1))
        np.cumsum(spread, axis=1, out=cdf[:, 1:])
        return np.asarray(cdf / cdf[:, -1:])

    def _averaged(self, prior: Prior) -> Prior:
        return prior if self.distinct.x.size <= _MANY else Prior(prior.average[None, :], np.zeros(1))


def _probabilities(likelihood: Floats, prior: Prior) -> Floats:
    """Posterior probabilities of atom and cells: likelihood · Σ_h p_h·G_h/m_h, m_h the prior's own marginal."""
    if len(prior.shapes) == 1:
        p = likelihood * prior.shapes
    else:
        # A prior with an underflowing marginal has a negligible weight.
        marginal = np.maximum(likelihood @ prior.shapes.T, 1e-290)
        p = likelihood * ((np.exp(prior.log_weights) / marginal) @ prior.shapes)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _invert(cdf: Floats, edges: Floats, probability: float) -> Floats:
    """The point where the piecewise linear distribution function of each row reaches the probability."""
    k = np.clip((cdf < probability).sum(axis=1), 1, edges.size - 1)
    row = np.arange(len(cdf))
    below, above = cdf[row, k - 1], cdf[row, k]
    share = (probability - below) / np.maximum(above - below, 1e-300)
    return np.asarray(edges[k - 1] + np.clip(share, 0.0, 1.0) * (edges[k] - edges[k - 1]))
