"""HDR4ME with L1: the soft threshold (Lemma 4, Theorem 3)."""

from __future__ import annotations

import numpy as np

from hdr4me.recalibration.cells import Floats

__all__ = ["soft_threshold"]


def soft_threshold(means: Floats, weights: Floats) -> Floats:
    """θ*_j = sign(θ̂_j)·max(|θ̂_j| − λ_j, 0): argmin of ½(θ − θ̂)² + λ|θ|, in one step.

    Harms as soon as |θ̄|/σ exceeds 1.28, 1.05 or 1.006 (z = 1, 2, 3): a dimension whose signal passes the
    threshold is still moved by all of it, so the error tends to σ²(1 + z²).

    >>> soft_threshold(np.array([3.0, -0.5, -2.0]), np.array([1.0, 1.0, 1.0]))
    array([ 2., -0., -1.])
    """
    return np.asarray(np.sign(means) * np.maximum(np.abs(means) - weights, 0.0))
