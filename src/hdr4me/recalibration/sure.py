"""The soft threshold that Stein's unbiased risk estimate would choose."""

from __future__ import annotations

import numpy as np

from hdr4me.recalibration.cells import Floats

__all__ = ["sure_threshold"]


def sure_threshold(x: Floats, s: Floats) -> float:
    """The τ in [0, √(2 log d)] with the least SURE(τ) = Σ s_j²[1 − 2·1(|z_j| ≤ τ) + min(z_j², τ²)], z = x/s.

    The threshold of dimension j is τ·s_j. SURE is unbiased for the total squared error at any fixed τ, and
    between two neighbouring |z_j| it only grows, so the |z_j| themselves and 0 are all that need trying.

    >>> sure_threshold(np.array([0.1, -0.3, 0.2, 9.0]), np.ones(4))
    0.3
    """
    z = np.abs(x / s)
    order = np.lexsort((s, z))
    z, v = z[order], s[order] ** 2
    total = v.sum()
    below, squares = np.cumsum(v), np.cumsum(v * z**2)
    risk = total - 2 * below + squares + z**2 * (total - below)
    τ, risk = np.concatenate([[0.0], z]), np.concatenate([[total], risk])
    allowed = τ <= max(np.sqrt(2 * np.log(max(x.size, 2))), 0.0)
    return float(τ[allowed][np.argmin(risk[allowed])])
