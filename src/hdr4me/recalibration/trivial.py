"""The two baselines that belong beside every re-calibration: all zeros, and clipping."""

from __future__ import annotations

import numpy as np

from hdr4me.recalibration.cells import Floats

__all__ = ["clip", "zeros"]


def zeros(means: Floats) -> Floats:
    """θ* = 0, what L1 and L2 tend to as the noise grows. Harmful iff |θ̄| > σ.

    >>> zeros(np.array([0.3, -4.0]))
    array([0., 0.])
    """
    return np.zeros_like(means)


def clip(means: Floats, low: float, high: float) -> Floats:
    """The nearest point of the domain: never harmful, whatever the noise.

    >>> clip(np.array([0.3, -4.0]), -1.0, 1.0)
    array([ 0.3, -1. ])
    """
    return np.clip(means, low, high)
