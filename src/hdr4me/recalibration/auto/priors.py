"""Hierarchical Bayes for the normal means θ̂_j ~ N(θ̄_j, σ_j²) on a bounded domain.

Five models of the distribution of the means, weighted by their evidence:

- *null*: every mean is the null value (0);
- *centered*: θ_j = null with probability w, otherwise N(null, t²) truncated to the domain; w and t unknown;
- *free*: the same around an unknown center;
- *smooth* and *sharp*: any distribution on the domain, by maximum likelihood.

The first three are integrated over their unknowns; the evidence of the shapes has a penalty for theirs (`_shapes`). Two
sets of prior odds are used with the same evidence. The *estimate* has strong odds on the null, so that under large
noise it does not follow a noisy common offset. The *spread* (standard deviations, intervals) has no odds on the null,
because an interval has to cover a real offset too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, ndtr

from hdr4me.recalibration.auto.posterior import Cells, Posterior, Prior, Sample, compress, distinct_pairs
from hdr4me.recalibration.inputs import Floats

_ESTIMATE_ODDS = {"null": 0.944, "centered": 0.05, "free": 0.003, "smooth": 0.0015, "sharp": 0.0015}
_SPREAD_ODDS = {"null": 0.0, "centered": 0.4, "free": 0.4, "smooth": 0.2, "sharp": 0.002}

# Spike and slab: the grid of hyper-parameters is refined around the points within this log likelihood of the best.
_ZOOMS = 6
_NEGLIGIBLE = np.log(1e-4)
_POINTS_CENTER, _POINTS_WIDTH, _POINTS_SPIKE = 13, 7, 9
_WIDTH_SCALE = 0.125  # A share of the width of the domain: half of the prior is on narrower slabs.
# Free shapes: pseudo-dimensions of the base shape, steps of EM, and the least initial mass of a cell.
_PSEUDO_DIMENSIONS = 1.0
_EM_STEPS = 120
_EMS_STEPS = 40
_LEAST = 1e-3


class Family(NamedTuple):
    """The log evidence of a family of priors, integrated over its unknowns, and its members with weight."""

    log_evidence: float
    prior: Prior


def fit_posterior(
    x: Floats, s: Floats, low: float, high: float, null: float, *, odds: Mapping[str, float] | None = None
) -> Posterior:
    """Fit every model to observations x_j with standard errors s_j > 0; the result does not depend on their order."""
    first, inverse = distinct_pairs(x, s)
    distinct = Sample(x[first], s[first], np.bincount(inverse).astype(np.float64))
    cells = Cells.for_noise(low, high, null, s)
    sample = compress(distinct)
    likelihood = cells.likelihood(sample.x, sample.s)
    only_null = np.zeros((1, cells.n_cells + 1))
    only_null[0, 0] = 1.0
    with np.errstate(divide="ignore"):
        null_evidence = float(sample.weight @ np.log(likelihood[:, 0]))
    families = {
        "null": Family(null_evidence, Prior(only_null, np.zeros(1))),
        "centered": spike_and_slab(cells, sample, likelihood, centered=True),
        "free": spike_and_slab(cells, sample, likelihood, centered=False),
    }
    families |= _shapes(cells, sample, likelihood, families["free"].prior)
    estimate, probabilities, evidence = _average(families, odds or _ESTIMATE_ODDS)
    spread, *_ = _average(families, _SPREAD_ODDS)
    return Posterior(cells, distinct, inverse, estimate, spread, probabilities, evidence)


def _slabs(cells: Cells, center: Floats, width: Floats) -> Floats:
    """Cell masses of N(c, t²) truncated to the domain; (len(c)·len(t), K)."""
    c, t = (a.ravel()[:, None] for a in np.meshgrid(center, width, indexing="ij"))
    z = (cells.edges - c) / t
    mass = np.abs(np.diff(ndtr(np.where(c > 0.5 * (cells.low + cells.high), z, -z)), axis=1))
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))


def spike_and_slab(cells: Cells, sample: Sample, likelihood: Floats, *, centered: bool) -> Family:
    """Integrate over the center (unless `centered` on the null), the width t and the weight w of the spike.

    Uniform priors: the center on the domain, u = t/(t + scale) and w on [0, 1]. The grid is refined to the part with
    posterior mass.
    """
    scale = _WIDTH_SCALE * (cells.high - cells.low)
    box = start = np.array([[cells.low, cells.high], [0.0, 1.0], [0.0, 1.0]])
    points = (1 if centered else _POINTS_CENTER, _POINTS_WIDTH, _POINTS_SPIKE)
    atom, rest = likelihood[:, :1], likelihood[:, 1:]
    for zoom in range(1, _ZOOMS + 1):
        center, u, w = (
            low + (high - low) * (np.arange(n) + 0.5) / n for (low, high), n in zip(box, points, strict=True)
        )
        center = np.array([cells.null]) if centered else center
        slabs = _slabs(cells, center, np.maximum(scale * u / (1 - u), 0.25 * cells.width))
        slab_likelihood = rest @ slabs.T
        mixed = w[:, None, None] * atom + (1 - w)[:, None, None] * slab_likelihood
        with np.errstate(divide="ignore"):
            log_likelihood = (sample.weight @ np.log(mixed)).reshape(w.size, center.size, u.size)
        top = float(log_likelihood.max())
        keep = log_likelihood > top + _NEGLIGIBLE
        steps = (box[:, 1] - box[:, 0]) / points
        new = box.copy()
        for axis, where, values in ((0, 1, center), (1, 2, u), (2, 0, w)):
            if points[axis] == 1:
                continue
            held = values[keep.any(axis=tuple({0, 1, 2} - {where}))]
            new[axis] = np.clip([held.min() - steps[axis], held.max() + steps[axis]], *box[axis])
        shrunk = np.prod((new[:, 1] - new[:, 0]) / (box[:, 1] - box[:, 0]))
        if zoom == _ZOOMS or shrunk > 0.5:
            break
        box = new
    volume = np.log(np.prod((box[:, 1] - box[:, 0]) / (start[:, 1] - start[:, 0])))
    evidence = float(logsumexp(log_likelihood)) - np.log(log_likelihood.size) + volume
    kept = np.argwhere(keep)
    shapes = np.empty((len(kept), cells.n_cells + 1))
    shapes[:, 0] = w[kept[:, 0]]
    shapes[:, 1:] = (1 - w[kept[:, 0]])[:, None] * slabs[kept[:, 1] * u.size + kept[:, 2]]
    weights = log_likelihood[keep] - logsumexp(log_likelihood[keep])
    return Family(evidence, Prior(shapes, weights))


def smoother(cells: Cells, bandwidth: float) -> Floats:
    """The K×K matrix of a normal kernel between cells, reflected at the ends of the domain."""
    middles = cells.middles
    h = min(bandwidth, cells.high - cells.low)
    kernel = np.zeros((cells.n_cells, cells.n_cells))
    for image in (middles, 2 * cells.low - middles, 2 * cells.high - middles):
        kernel += np.exp(-0.5 * ((image[None, :] - middles[:, None]) / h) ** 2)
    return np.asarray(kernel / kernel.sum(axis=1, keepdims=True))


def free_shape(
    sample: Sample, likelihood: Floats, base: Floats, *, iterations: int, smoothing: Floats | None = None
) -> Floats:
    """The shape G that EM finds from the shape `base`, with `smoothing` after every step (Silverman's EMS) or without.

    Unsmoothed, it is the maximum-likelihood mixture of Kiefer and Wolfowitz with pseudo-dimensions of the base added.
    """
    total = float(sample.weight.sum()) + _PSEUDO_DIMENSIONS
    shape = base.copy()
    for _ in range(iterations):
        responsibility = shape * ((sample.weight / (likelihood @ shape)) @ likelihood)
        shape = (responsibility + _PSEUDO_DIMENSIONS * base) / total
        if smoothing is not None:
            shape[1:] = shape[1:] @ smoothing
    return shape


def _shapes(cells: Cells, sample: Sample, likelihood: Floats, start: Prior) -> dict[str, Family]:
    """One sharp and two smooth shapes; the evidence of each has a penalty of ½·log d for every unknown.

    A sharp shape has k = exp(H(θ̂) − H(noise)) values and their weights, 2k + 2 unknowns (Schwarz). A smooth shape with
    bandwidth h distinguishes k·σ/√(σ² + h²) intervals and has that many + 3 unknowns.
    """
    base = start.average
    # EM keeps empty cells empty, and an outlier may need one.
    base = (1 - _LEAST) * base + _LEAST / base.size
    d = float(sample.weight.sum())
    noise = float(np.exp(sample.weight @ np.log(sample.s) / d))
    middles, cell_mass = cells.middles, base[1:] / base[1:].sum()
    wide = 0.9 * float(np.sqrt(cell_mass @ (middles - cell_mass @ middles) ** 2)) * d**-0.2

    def member(bandwidth: float | None) -> tuple[Floats, float]:
        if bandwidth is None:
            shape = free_shape(sample, likelihood, base, iterations=_EM_STEPS)
        else:
            kernel = smoother(cells, max(bandwidth, cells.width))
            shape = free_shape(sample, likelihood, base, iterations=_EMS_STEPS, smoothing=kernel)
        fit = float(sample.weight @ np.log(likelihood @ shape))
        # The likelihood omits 1/(s√2π), so the entropy of the noise is 1/2 per observation.
        values = max(float(np.exp(-fit / d - 0.5)), 1.0)
        unknowns = 2 * values + 2 if bandwidth is None else values * noise / np.hypot(noise, bandwidth) + 3
        return shape, fit - 0.5 * unknowns * float(np.log(d))

    sharp, sharp_evidence = member(None)
    smooth = [member(wide / 3), member(wide)]
    logs = np.array([evidence for _, evidence in smooth])
    total = float(logsumexp(logs))
    return {
        "smooth": Family(total - float(np.log(2)), Prior(np.array([g for g, _ in smooth]), logs - total)),
        "sharp": Family(sharp_evidence, Prior(sharp[None, :], np.zeros(1))),
    }


def _average(families: dict[str, Family], odds: Mapping[str, float]) -> tuple[Prior, dict[str, float], float]:
    """The members as one weighted list, the weight of each model, and the log evidence of all together.

    The members with the smallest weights, together below 0.5 %, are dropped.
    """
    with np.errstate(divide="ignore"):
        raw = {name: family.log_evidence + float(np.log(odds[name])) for name, family in families.items()}
    total = float(logsumexp(list(raw.values())))
    shapes = np.concatenate([family.prior.shapes for family in families.values()])
    logs = np.concatenate([f.prior.log_weights + (raw[name] - total) for name, f in families.items()])
    order = np.argsort(-logs, kind="stable")
    mass = np.cumsum(np.exp(logs[order]))
    keep = np.sort(order[: int(np.searchsorted(mass, 0.995)) + 1])
    prior = Prior(shapes[keep], logs[keep] - float(logsumexp(logs[keep])))
    return prior, {name: float(np.exp(w - total)) for name, w in raw.items()}, total
