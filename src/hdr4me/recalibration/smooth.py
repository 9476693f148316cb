"""Means with a declared structure: points of a curve, or members of groups; averaged over every size of both.

The model is x = μ + Φβ + residual + noise with β_k ~ N(0, τ²S_k), residual ~ N(0, ν²) and μ ~ N(centre, m²). For a
curve, Φ are cosines of the position and S the spectrum of a squared-exponential kernel with length ℓ (a Gaussian
process on a padded interval, Solin and Särkkä 2020), or waves on a ring, for hours of a day. For groups, Φ are the
indicators and S = 1 (random effects). τ, ν and ℓ run through small grids; each member is weighted by its evidence.

Φᵀ(ν² + s²)⁻¹Φ is diagonalised once for every (ν, ℓ), so that new observations with the same standard errors cost one
product with Φ for each ν.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from hdr4me.recalibration.cells import Floats

__all__ = ["Block", "Fit", "curve_block", "group_block"]

# All in units of half the domain's width.
_AMPLITUDES = np.array([0.03, 0.06, 0.12, 0.25, 0.5, 1.0])
_RESIDUALS = (0.0, 0.05, 0.2)
_OFFSET = 0.6
# In units of the curve's range of positions; below the distance of neighbours a curve is no other than a residual.
_LENGTHS = np.array([0.008, 0.016, 0.03, 0.045, 0.065, 0.09, 0.12, 0.17, 0.25, 0.4, 0.8])
_PADDING = 0.05
_MOST_COSINES, _MANY_POINTS, _FEWER_COSINES = 96, 5000, 48
_FEWEST_ON_A_RING = 8


class Fit(NamedTuple):
    """Posterior means of a block, and the log of its evidence, the factors 1/(s_j√2π) left out."""

    mean: Floats
    log_evidence: float


class _Residual(NamedTuple):
    """What one ν needs: 1/(ν² + s²), the share of the residual, and for each ℓ the eigenvalues and vectors."""

    precision: Floats
    kept: Floats
    log_ratio: float
    eigen: list[tuple[Floats, Floats | None]]


@dataclass(frozen=True)
class Block:
    """Dimensions that a structure holds together: `index` in the whole, Φ as cosines or as group numbers."""

    index: NDArray[np.int64]
    centre: float
    half: float
    cosines: Floats | None
    group: NDArray[np.int64]
    residuals: tuple[_Residual, ...]

    def fit(self, x: Floats) -> Fit:
        """The average over all members for observations x of the block's own dimensions."""
        y = (x - self.centre) / self.half
        pieces: list[tuple[Floats, Floats, list[Floats]]] = []
        for r in self.residuals:
            px, p1 = self._project(r.precision * y), self._project(r.precision)
            sums = (float(r.precision @ y**2), float(r.precision @ y), float(r.precision.sum()))
            parts = [_members(px, p1, sums, r.log_ratio, *pair) for pair in r.eigen]
            pieces.append(
                (
                    np.stack([p[0] for p in parts]),
                    np.stack([p[1] for p in parts]),
                    [p[2] for p in parts],
                )
            )
        evidence = np.stack([p[0] for p in pieces])
        total = float(logsumexp(evidence))
        weight = np.exp(evidence - total)
        mean = np.zeros(y.size)
        for r, w, (_, offset, coefficients) in zip(self.residuals, weight, pieces, strict=True):
            together = sum(wl @ c for wl, c in zip(w, coefficients, strict=True))
            curve = float((w * offset).sum()) + self._spread(np.asarray(together))
            mean += curve + r.kept * (w.sum() * y - curve)
        return Fit(self.centre + self.half * mean, total - float(np.log(evidence.size)))

    def _project(self, y: Floats) -> Floats:
        if self.cosines is not None:
            return self.cosines.T @ y
        return np.bincount(self.group, weights=y).astype(np.float64)

    def _spread(self, coefficients: Floats) -> Floats:
        return coefficients[self.group] if self.cosines is None else self.cosines @ coefficients


def _members(
    px: Floats,
    p1: Floats,
    sums: tuple[float, float, float],
    log_ratio: float,
    eigenvalues: Floats,
    vectors: Floats | None,
) -> tuple[Floats, Floats, Floats]:
    """Log evidence, offset and coefficients of Φ for every amplitude τ."""
    cx, c1 = (px, p1) if vectors is None else (vectors.T @ px, vectors.T @ p1)
    h = 1 / (1 / _AMPLITUDES[:, None] ** 2 + eigenvalues)
    xx, x1, one = sums[0] - h @ cx**2, sums[1] - h @ (c1 * cx), sums[2] - h @ c1**2
    scale = _OFFSET**2 / (1 + _OFFSET**2 * one)
    log_det = log_ratio + np.log1p(_AMPLITUDES[:, None] ** 2 * eigenvalues).sum(axis=1)
    log_det += np.log1p(_OFFSET**2 * one)
    offset = scale * x1
    β = h * (cx - offset[:, None] * c1)
    return -0.5 * (xx - scale * x1**2 + log_det), offset, β if vectors is None else β @ vectors.T


def curve_block(index: NDArray[np.int64], position: Floats, s: Floats, low: float, high: float) -> Block:
    """Dimensions that are points of one curve, at these positions: an open curve, or one that closes like a day."""
    half = 0.5 * (high - low)
    waves, roots = _waves(position)
    residuals = []
    for precision, kept, ratio in _noises(s / half):
        gram = waves.T @ (precision[:, None] * waves)
        eigen: list[tuple[Floats, Floats | None]] = []
        for part, root in roots:
            values, vectors = np.linalg.eigh(root[:, None] * gram[part, part] * root)
            spread = np.zeros((len(gram), root.size))
            spread[part] = root[:, None] * vectors
            eigen.append((np.maximum(values, 0.0), spread))
        residuals.append(_Residual(precision, kept, ratio, eigen))
    middle = 0.5 * (low + high)
    return Block(index, middle, half, waves, np.zeros(index.size, np.int64), tuple(residuals))


def _waves(position: Floats) -> tuple[Floats, list[tuple[slice, Floats]]]:
    """Cosines on a padded interval and waves on a ring; for each length the columns it uses and the root of S."""
    n, span = position.size, float(np.ptp(position))
    u = (position - position.min()) / (span if span > 0 else 1.0)
    lengths = _LENGTHS[_LENGTHS >= min(0.7 / max(n - 1, 1), _LENGTHS[-1])]
    most = _MOST_COSINES if n <= _MANY_POINTS else _FEWER_COSINES
    open_wave = np.pi * np.arange(1, min(int(1.2 * n) + 2, most) + 1) / (1 + 2 * _PADDING)
    families = [(np.sqrt(2.0) * np.cos((u[:, None] + _PADDING) * open_wave), open_wave)]
    if _FEWEST_ON_A_RING <= n <= _MANY_POINTS:
        # A ring is closed by one more step of the mean distance.
        ring = 2 * np.pi * np.arange(1, min(n // 2, most // 2) + 1) * (n - 1) / n
        angles = u[:, None] * ring
        both = np.concatenate([np.cos(angles), np.sin(angles)], axis=1) * np.sqrt(2.0)
        families.append((both, np.concatenate([ring, ring])))
    roots: list[tuple[slice, Floats]] = []
    start = 0
    for columns, wave in families:
        for length in lengths:
            spectrum = np.exp(-0.5 * (length * wave) ** 2)
            spectrum /= float(np.mean(columns**2 @ spectrum))
            roots.append((slice(start, start + wave.size), np.sqrt(spectrum)))
        start += wave.size
    return np.concatenate([columns for columns, _ in families], axis=1), roots


def group_block(
    index: NDArray[np.int64], group: NDArray[np.int64], s: Floats, low: float, high: float
) -> Block:
    """Dimensions that belong to groups, numbered from 0 without a gap."""
    half, middle = 0.5 * (high - low), 0.5 * (low + high)
    residuals = [
        _Residual(precision, kept, ratio, [(np.bincount(group, weights=precision).astype(np.float64), None)])
        for precision, kept, ratio in _noises(s / half)
    ]
    return Block(index, middle, half, None, group, tuple(residuals))


def _noises(s: Floats) -> list[tuple[Floats, Floats, float]]:
    """For every ν: 1/(ν² + s²), ν²/(ν² + s²), and the log of ∏(ν² + s²)/s²."""
    out = []
    for ν in _RESIDUALS:
        variance = ν**2 + s**2
        out.append((1 / variance, ν**2 / variance, float(np.log(variance / s**2).sum())))
    return out
