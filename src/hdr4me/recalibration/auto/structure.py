"""Means with a declared structure, points of a curve or members of groups, averaged over the scales.

The model is x = μ + Φβ + residual + noise with β_k ~ N(0, τ²S_k), residual ~ N(0, ν²) and μ ~ N(center, m²). For a
curve, Φ are cosines of the position and S the spectrum of a kernel with length ℓ, squared-exponential or Matérn 5/2 (a
Gaussian process on a padded interval, Solin and Särkkä 2020), or waves on a ring, for hours of a day. For groups, Φ are
the indicators and S = 1 (random effects). τ, ν and ℓ have small grids; each combination is weighted by its evidence.

Φᵀ(ν² + s²)⁻¹Φ is diagonalized once for every (ν, ℓ).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logsumexp

from hdr4me.errors import InvalidInput
from hdr4me.recalibration.auto.posterior import Belief, Posterior, edged
from hdr4me.recalibration.inputs import Floats, check_elements, check_length

# Fewer points of a curve, or fewer groups, cannot be distinguished from no structure.
_FEWEST = 4
# All in units of half the domain's width.
_AMPLITUDES = np.array([0.03, 0.06, 0.12, 0.25, 0.5, 1.0])
_RESIDUALS = (0.0, 0.05, 0.2)
# Prior odds of the residuals: the evidence alone does not distinguish small residuals from none.
_RESIDUAL_ODDS = (9.0, 3.0, 1.0)
_OFFSET = 0.6
# In units of the range of positions; below the distance of neighbors a curve is the same as a residual.
_LENGTHS = np.array([0.008, 0.016, 0.03, 0.045, 0.065, 0.09, 0.12, 0.17, 0.25, 0.4, 0.8])
_PADDING = 0.05
# Beyond _MANY_POINTS half of the cosines save two thirds of the time, and the squared error is at most 5 % larger.
_MOST_COSINES, _MANY_POINTS, _FEWER_COSINES = 96, 5000, 48
_FEWEST_ON_A_RING = 8


class Structure(NamedTuple):
    """The position of each dimension on a curve (NaN: none) and the number of its group (−1: none)."""

    position: Floats
    group: NDArray[np.int64]

    def only(self, which: NDArray[Any]) -> Structure:
        """The structure of some dimensions."""
        return Structure(self.position[which], self.group[which])


def check_structure(order: ArrayLike | None, groups: Sequence[Any] | None, dims: int) -> Structure | None:
    """Positions and group numbers of every dimension, or None if neither is declared."""
    if order is None and groups is None:
        return None
    position = np.full(dims, np.nan) if order is None else _positions(order, dims)
    group = np.full(dims, -1, dtype=np.int64) if groups is None else _group_numbers(groups, dims)
    return Structure(position, group)


def _positions(order: ArrayLike, dims: int) -> Floats:
    try:
        positions = list(np.asarray(order, dtype=object))
        position = np.array([np.nan if p is None else float(p) for p in positions], dtype=np.float64)
    except (TypeError, ValueError) as error:
        rule = "it must have one number for each mean, or None for a mean without position"
        raise InvalidInput.of("order", order, rule) from error
    check_length("order", position.size, dims)
    absent = np.array([p is None for p in positions])
    check_elements(~absent & ~np.isfinite(position), "order", position, "it must be a finite number or None")
    return position


def _group_numbers(groups: Sequence[Any], dims: int) -> NDArray[np.int64]:
    rule = "it must have one label for each mean, or None for a mean without group"
    if isinstance(groups, str) or not hasattr(groups, "__len__"):
        raise InvalidInput.of("groups", groups, rule)
    labels = list(groups)
    check_length("groups", len(labels), dims)
    try:
        number = {label: i for i, label in enumerate(dict.fromkeys(x for x in labels if x is not None))}
    except TypeError as error:  # a label that cannot be hashed
        raise InvalidInput.of("groups", groups, rule) from error
    return np.array([-1 if x is None else number[x] for x in labels], dtype=np.int64)


class Fit(NamedTuple):
    """Posterior means and variances of a block, and its log evidence without the factors 1/(s_j√2π)."""

    mean: Floats
    variance: Floats
    log_evidence: float


class _Family(NamedTuple):
    """Kernels that share the columns `part` of Φ: the terms that do not depend on x, for each kernel and amplitude.

    `vectors` map the columns to the coordinates of the kernel (None for groups: they are the same).
    """

    part: slice
    vectors: Floats | None
    gain: Floats  # 1/(1/τ² + eigenvalue): kernels × amplitudes × eigenvalues
    ones: Floats  # the projected constant, kernels × eigenvalues
    scale: Floats  # the posterior variance of the offset, kernels × amplitudes
    log_det: Floats
    variance: Floats  # of what Φβ and the offset describe, kernels × amplitudes × 1, or × groups


class _Residual(NamedTuple):
    """The terms of one ν: 1/(ν² + s²), the share of the residual, its posterior variance, and the kernels."""

    precision: Floats
    kept: Floats
    own: Floats
    families: list[_Family]


@dataclass(frozen=True)
class Block:
    """Dimensions with one structure: their `index` among all dimensions, and Φ as waves or as group numbers."""

    index: NDArray[np.int64]
    center: float
    half: float
    cosines: Floats | None
    group: NDArray[np.int64]
    residuals: tuple[_Residual, ...]

    def fit(self, x: Floats) -> Fit:
        """The average over all members, for observations x of the dimensions of the block."""
        y = (x - self.center) / self.half
        odds = np.log(np.array(_RESIDUAL_ODDS) / sum(_RESIDUAL_ODDS))
        found = [self._members(r, y, odd) for r, odd in zip(self.residuals, odds.tolist(), strict=True)]
        number = sum(evidence.size for evidence, _, _ in found[0])
        total = float(logsumexp(np.concatenate([e.ravel() for part in found for e, _, _ in part])))
        mean, variance = np.zeros(y.size), np.zeros(y.size)
        for r, part in zip(self.residuals, found, strict=True):
            share, offset, within = 0.0, 0.0, np.zeros(1)
            together = np.zeros(self.group.max() + 1 if self.cosines is None else self.cosines.shape[1])
            for family, (evidence, x1, cx) in zip(r.families, part, strict=True):
                w = np.exp(evidence - total)
                level = w * family.scale * x1
                share += float(w.sum())
                offset += float(level.sum())
                within = within + np.einsum("ka,kaj->j", w, family.variance)
                weighted = np.einsum("ka,kaj->kj", w, family.gain) * cx
                weighted -= np.einsum("ka,kaj->kj", level, family.gain) * family.ones
                # From the coordinates of the kernels to the columns of Φ.
                own = family.vectors
                together[family.part] += (
                    weighted.sum(axis=0) if own is None else np.einsum("kij,kj->i", own, weighted)
                )
            curve = offset + (together[self.group] if self.cosines is None else self.cosines @ together)
            mean += curve + r.kept * (share * y - curve)
            variance += (1 - r.kept) ** 2 * (within[self.group] if self.cosines is None else within[0])
            variance += share * r.own
        return Fit(self.center + self.half * mean, self.half**2 * variance, total - float(np.log(number)))

    def plain_log_evidence(self, x: Floats) -> float:
        """The log evidence, comparable with that of `fit`, of no structure at all: x = μ + residual + noise.

        In comparison with a model in which most means are 0, few points that differ look like a curve.
        """
        y = (x - self.center) / self.half
        noise = 1 / self.residuals[0].precision
        found = []
        for ν in (0.0, *_AMPLITUDES.tolist()):
            variance = ν**2 + noise
            total, level = float(np.sum(1 / variance)), float(np.sum(y / variance))
            fitted = _OFFSET**2 / (1 + _OFFSET**2 * total) * level**2
            log_det = float(np.log(variance / noise).sum()) + float(np.log1p(_OFFSET**2 * total))
            found.append(-0.5 * (float(np.sum(y**2 / variance)) - fitted + log_det))
        return float(logsumexp(found)) - float(np.log(len(found)))

    def _members(self, r: _Residual, y: Floats, log_odds: float) -> list[tuple[Floats, Floats, Floats]]:
        """For each family: log evidence and the constant's inner product with y (kernels × amplitudes), projected y."""
        weighted, whole, level = r.precision * y, r.precision @ y**2, r.precision @ y
        px: Any = (
            np.bincount(self.group, weights=weighted) if self.cosines is None else self.cosines.T @ weighted
        )
        out = []
        for family in r.families:
            mine = px[family.part]
            cx = mine[None, :] if family.vectors is None else np.einsum("kij,i->kj", family.vectors, mine)
            x1 = level - np.einsum("kaj,kj->ka", family.gain, family.ones * cx)
            xx = whole - np.einsum("kaj,kj->ka", family.gain, cx**2)
            evidence = log_odds - 0.5 * (xx - family.scale * x1**2 + family.log_det)
            out.append((evidence, x1, cx))
        return out


def _family(
    part: slice, vectors: Floats | None, eigenvalues: Floats, ones: Floats, total: float, log_ratio: float
) -> _Family:
    """The terms of every kernel (rows of `eigenvalues` and `ones`) and amplitude; `total` is Σ_j 1/(ν² + s_j²)."""
    τ = _AMPLITUDES[:, None]
    gain = 1 / (1 / τ**2 + eigenvalues[:, None, :])
    one = total - np.einsum("kaj,kj->ka", gain, ones**2)
    scale = _OFFSET**2 / (1 + _OFFSET**2 * one)
    log_det = log_ratio + np.log1p(τ**2 * eigenvalues[:, None, :]).sum(axis=2) + np.log1p(_OFFSET**2 * one)
    # Given the offset β has variance `gain` and follows it by −gain·ones; so curve = (1 − Φ·gain·ones)·offset + Φβ₀.
    if vectors is None:
        variance = gain + scale[:, :, None] * (1 - gain * ones[:, None, :]) ** 2
    else:
        # Every point of a curve has the average, weighted by 1/(ν² + s_j²): the weighted ΦᵀΦ is diagonal.
        own = np.einsum("kaj,kj->ka", gain, eigenvalues)
        pull = total - np.einsum("kaj,kj->ka", 2 * gain - gain**2 * eigenvalues[:, None, :], ones**2)
        variance = ((own + scale * pull) / total)[:, :, None]
    return _Family(part, vectors, gain, ones, scale, log_det, variance)


def block(
    index: NDArray[np.int64],
    s: Floats,
    low: float,
    high: float,
    *,
    position: Floats | None,
    group: Any = None,
) -> Block:
    """Points of one curve at these positions, open or closed like a day; or members of groups, numbered from 0."""
    half = 0.5 * (high - low)
    waves, kernels = (None, []) if position is None else _waves(position)
    residuals = []
    for ν in _RESIDUALS:
        noise = (s / half) ** 2
        variance = ν**2 + noise
        precision, ratio = 1 / variance, float(np.log(variance / noise).sum())
        total, families = float(precision.sum()), []
        if waves is None:
            sums: Any = np.bincount(group, weights=precision)[None, :]
            families.append(_family(slice(None), None, sums, sums, total, ratio))
        else:
            gram, ones = waves.T @ (precision[:, None] * waves), waves.T @ precision
            for part, roots in kernels:
                values, vectors = np.linalg.eigh(roots[:, :, None] * gram[part, part] * roots[:, None, :])
                vectors = roots[:, :, None] * vectors
                projected = np.einsum("kij,i->kj", vectors, ones[part])
                families.append(_family(part, vectors, np.maximum(values, 0.0), projected, total, ratio))
        residuals.append(_Residual(precision, ν**2 / variance, ν**2 * noise / variance, families))
    group = np.zeros(index.size, np.int64) if group is None else group
    return Block(index, 0.5 * (low + high), half, waves, group, tuple(residuals))


def _waves(position: Floats) -> tuple[Floats, list[tuple[slice, Floats]]]:
    """Cosines on a padded interval and waves on a ring; for each its columns, and the root of S, a kernel a row."""
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
    made: list[tuple[slice, Floats]] = []
    start = 0
    for columns, wave in families:
        kernels = []
        for length in lengths:
            for spectrum in (np.exp(-0.5 * (length * wave) ** 2), (1 + (length * wave) ** 2 / 5) ** -3.0):
                kernels.append(np.sqrt(spectrum / float(np.mean(columns**2 @ spectrum))))
        made.append((slice(start, start + wave.size), np.array(kernels)))
        start += wave.size
    return np.concatenate([columns for columns, _ in families], axis=1), made


def blocks(structure: Structure, s: Floats, low: float, high: float) -> list[Block]:
    """One curve for each group with positions, and one block for all groups without; too small blocks are omitted."""
    out: list[Block] = []
    on_curve = np.isfinite(structure.position)
    for number in np.unique(structure.group[on_curve]).tolist():
        index = np.flatnonzero(on_curve & (structure.group == number))
        if np.unique(structure.position[index]).size >= _FEWEST:
            out.append(block(index, s[index], low, high, position=structure.position[index]))
    index = np.flatnonzero(~on_curve & (structure.group >= 0))
    _, group = np.unique(structure.group[index], return_inverse=True)
    if index.size and _FEWEST <= int(group.max()) + 1 < index.size:
        out.append(block(index, s[index], low, high, position=None, group=group))
    return out


def structured(parts: Sequence[Block], posterior: Posterior, x: Floats) -> list[Belief]:
    """The posterior of each block's dimensions under its structure, which has even prior odds."""
    complete = any(part.index.size == x.size for part in parts)
    alone = np.empty(0) if complete or not parts else posterior.log_marginal()
    out = []
    for part in parts:
        found = part.fit(x[part.index])
        rival = posterior.log_evidence if complete else float(alone[part.index].sum())
        curve = edged(found.mean, found.variance, posterior.cells.low, posterior.cells.high)
        plain = part.plain_log_evidence(x[part.index])
        probability, confirmed = (
            float(expit(found.log_evidence - other)) for other in (rival, np.logaddexp(rival, plain))
        )
        out.append(Belief(part.index, curve, probability, confirmed))
    return out
