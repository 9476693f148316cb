"""James and Stein's shrinkage, positive part, with unequal standard errors."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from hdr4me.recalibration.cells import Floats

__all__ = ["james_stein"]


def james_stein(x: Floats, s: Floats, *, towards_mean: bool) -> Floats:
    """θ*_j = c + (1 − s_j²/(A + s_j²))·(x_j − c), c = 0 or the weighted grand mean (Efron and Morris).

    A ≥ 0 solves Σ_j (x_j − c)²/(A + s_j²) = d − 2 (d − 3 with c estimated); no root means A = 0. With equal s
    this is the positive-part James–Stein estimator c + (1 − (d−2)s²/Σ(x−c)²)₊·(x − c), which is never worse than
    x in total for d ≥ 3. Below three (four) dimensions nothing is changed.

    >>> x = np.array([1.0, -2.0, 3.0, 1.0])
    >>> james_stein(x, np.ones(4), towards_mean=False).round(6)   # 1 − 2/15
    array([ 0.866667, -1.733333,  2.6     ,  0.866667])
    """
    freedom = x.size - (3 if towards_mean else 2)
    if freedom <= 0:
        return x.copy()

    def centre(A: float) -> float:
        w = 1 / (A + s**2)
        return float(w @ x / w.sum()) if towards_mean else 0.0

    def excess(A: float) -> float:
        return float(np.sum((x - centre(A)) ** 2 / (A + s**2))) - freedom

    top = float(np.sum((x - centre(0.0)) ** 2)) / freedom + 1e-300
    root = (
        float(brentq(excess, 0.0, 2 * top, xtol=1e-300, rtol=1e-14))
        if excess(0.0) > 0 > excess(2 * top)
        else 0.0
    )
    c = centre(root)
    return np.asarray(c + root / (root + s**2) * (x - c))
