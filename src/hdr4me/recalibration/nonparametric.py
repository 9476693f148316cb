"""The non-parametric part: a prior of free shape on the cells, found by maximum likelihood and held back.

Sharp: maximises Σ_j log m_j(G) + α Σ_k B_k log G_k by EM, B a base shape: the maximum-likelihood mixture of
Kiefer and Wolfowitz with α pseudo-dimensions of the base added, so that nothing the base allows is ruled out.
Smooth: the same with the cells smoothed by a normal kernel after every step (Silverman's EMS).
"""

from __future__ import annotations

import numpy as np

from hdr4me.recalibration.cells import Cells, Floats, Sample

__all__ = ["free_shape", "smoother"]


def smoother(cells: Cells, bandwidth: float) -> Floats:
    """The K×K matrix that spreads each cell's mass by a normal kernel, folded back at the domain's ends."""
    middles = cells.middles
    span = cells.high - cells.low
    kernel = np.zeros((cells.n_cells, cells.n_cells))
    for image in (middles, 2 * cells.low - middles, 2 * cells.high - middles):
        kernel += np.exp(-0.5 * ((image[None, :] - middles[:, None]) / min(bandwidth, span)) ** 2)
    return np.asarray(kernel / kernel.sum(axis=1, keepdims=True))


def free_shape(
    sample: Sample,
    likelihood: Floats,
    base: Floats,
    *,
    strength: float,
    iterations: int,
    smoothing: Floats | None = None,
) -> Floats:
    """The shape after EM from `base`; unsmoothed, no step can lower the penalised likelihood."""
    total = float(sample.weight.sum()) + strength
    shape = base.copy()
    for _ in range(iterations):
        responsibility = shape * ((sample.weight / (likelihood @ shape)) @ likelihood)
        shape = (responsibility + strength * base) / total
        if smoothing is not None:
            shape[1:] = shape[1:] @ smoothing
    return shape
