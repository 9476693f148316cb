"""Spike and slab, with its hyper-parameters integrated out on a grid that zooms to where they matter.

θ_j = null with probability w, otherwise N(c, t²) truncated to the domain. The grid over (c, u, w), with
u = t/(t + scale), starts on the whole box and shrinks to the part that holds the posterior, so that
100 dimensions and 100,000 are served by the same few hundred points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp, ndtr

from hdr4me.recalibration.cells import Cells, Floats, Sample

__all__ = ["Family", "Prior", "spike_and_slab"]

_ZOOMS = 6
_NEGLIGIBLE = np.log(1e-4)
_POINTS_CENTRE, _POINTS_WIDTH, _POINTS_SPIKE = 13, 7, 9
_WIDTH_SCALE = 0.125  # of the domain's width: half of the prior lies on slabs narrower than this


class Prior(NamedTuple):
    """Distributions over atom and cells (one a row), and the logarithm of each one's weight."""

    shapes: Floats
    log_weights: Floats


class Family(NamedTuple):
    """What integrating a family of priors out yields: its log evidence, and the members that matter."""

    log_evidence: float
    prior: Prior


def _slabs(cells: Cells, centre: Floats, width: Floats) -> Floats:
    """Cell masses of N(c, t²) truncated to the domain; (len(c)·len(t), K)."""
    c, t = (a.ravel()[:, None] for a in np.meshgrid(centre, width, indexing="ij"))
    z = (cells.edges - c) / t
    mass = np.abs(np.diff(ndtr(np.where(c > 0.5 * (cells.low + cells.high), z, -z)), axis=1))
    return np.asarray(mass / mass.sum(axis=1, keepdims=True))


def _middles(low: float, high: float, n: int) -> Floats:
    return low + (high - low) * (np.arange(n) + 0.5) / n


def spike_and_slab(cells: Cells, sample: Sample, likelihood: Floats, *, centred: bool) -> Family:
    """Integrate centre (unless `centred` on the null), width and spike weight out.

    Prior: centre uniform on the domain, u and w uniform on [0, 1].
    """
    scale = _WIDTH_SCALE * (cells.high - cells.low)
    start = np.array([[cells.low, cells.high], [0.0, 1.0], [0.0, 1.0]])
    points = (1 if centred else _POINTS_CENTRE, _POINTS_WIDTH, _POINTS_SPIKE)
    box = start.copy()
    atom, rest = likelihood[:, :1], likelihood[:, 1:]
    zoom = 0
    while True:
        centre = np.array([cells.null]) if centred else _middles(box[0, 0], box[0, 1], points[0])
        u = _middles(box[1, 0], box[1, 1], points[1])
        w = _middles(box[2, 0], box[2, 1], points[2])
        slabs = _slabs(cells, centre, np.maximum(scale * u / (1 - u), 0.25 * cells.width))
        slab_likelihood = rest @ slabs.T
        mixed = w[:, None, None] * atom + (1 - w)[:, None, None] * slab_likelihood
        with np.errstate(divide="ignore"):
            log_likelihood = (sample.weight @ np.log(mixed)).reshape(w.size, centre.size, u.size)
        top = float(log_likelihood.max())
        keep = log_likelihood > top + _NEGLIGIBLE
        steps = (box[:, 1] - box[:, 0]) / points
        new = box.copy()
        for axis, where, values in ((0, 1, centre), (1, 2, u), (2, 0, w)):
            if points[axis] == 1:
                continue
            along = keep.any(axis=tuple({0, 1, 2} - {where}))
            held = values[along]
            new[axis] = (
                max(held.min() - steps[axis], box[axis, 0]),
                min(held.max() + steps[axis], box[axis, 1]),
            )
        zoom += 1
        shrunk = np.prod((new[:, 1] - new[:, 0]) / (box[:, 1] - box[:, 0]))
        if zoom >= _ZOOMS or shrunk > 0.5:
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
