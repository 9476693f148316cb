"""James and Stein's shrinkage, positive part, for equal and for unequal standard errors."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from hdr4me.recalibration.cells import Floats

__all__ = ["james_stein"]


def james_stein(x: Floats, s: Floats, *, towards_mean: bool) -> Floats:
    """θ*_j = c + (1 − K·a_j/Σ a_k²(x_k − c)²)₊·(x_j − c), c = 0 or the weighted grand mean.

    K = Σ s_k²a_k − 2·max s_k²a_k (3 with c estimated). For weights a that do not depend on the data and c = 0,
    Stein's identity bounds the total error by Σs_k² whatever the s_k are (Berger 1976; Tan 2015). Here a_j =
    s_j²/(A + s_j²) points in the direction of the Bayes rule for a prior variance A, which is Efron and Morris's: A
    solves Σ_j (x_j − c)²/(A + s_j²) = d − 2 (d − 3). The largest s_j²a_j are cut down where a few noisy dimensions
    would leave K ≤ 0. Equal s give the textbook c + (1 − (d−2)s²/Σ(x−c)²)₊·(x − c). Below three (four) dimensions
    nothing is changed.

    >>> x = np.array([1.0, -2.0, 3.0, 1.0])
    >>> james_stein(x, np.ones(4), towards_mean=False).round(6)   # 1 − 2/15
    array([ 0.866667, -1.733333,  2.6     ,  0.866667])
    """
    lost = 3 if towards_mean else 2
    if x.size <= lost:
        return x.copy()
    A, c = _prior_variance(x, s, x.size - lost, towards_mean)
    v = s**2
    a = _direction(v, A, lost)
    total = float(np.sum(a**2 * (x - c) ** 2))
    strength = float(v @ a) - lost * float((v * a).max())
    if strength <= 0:
        return x.copy()
    factor = np.maximum(1 - strength * a / total, 0.0) if total > 0 else np.zeros_like(x)
    return np.asarray(c + factor * (x - c))


def _prior_variance(x: Floats, s: Floats, freedom: int, towards_mean: bool) -> tuple[float, float]:
    """Efron and Morris's A ≥ 0 and the centre that goes with it."""

    def centre(A: float) -> float:
        w = 1 / (A + s**2)
        return float(w @ x / w.sum()) if towards_mean else 0.0

    def excess(A: float) -> float:
        return float(np.sum((x - centre(A)) ** 2 / (A + s**2))) - freedom

    top = float(np.sum((x - centre(0.0)) ** 2)) / freedom + 1e-300
    inside = excess(0.0) > 0 > excess(2 * top)
    A = float(brentq(excess, 0.0, 2 * top, xtol=1e-300, rtol=1e-12)) if inside else 0.0
    return A, centre(A)


def _direction(v: Floats, A: float, lost: int) -> Floats:
    """a_j = v_j/(A + v_j) with v_j·a_j cut where that makes K²/Σa²(A + v), the expected gain, the largest."""
    a = v / (A + v)
    b = np.sort(v * a)[::-1]
    if b[0] <= b[-1] * (1 + 1e-9):
        return a
    # With the k largest cut down to the k-th: K = (k − lost)·b_k + (sum of the others).
    tail = b.sum() - np.cumsum(b)
    k = np.arange(1, b.size + 1)
    strength = np.maximum((k - lost) * b + tail, 0.0)
    tries = np.unique(np.geomspace(1, b.size, min(b.size, 24)).astype(np.int64)) - 1
    gains = [
        strength[i] ** 2 / float(np.sum(np.minimum(v * a, b[i]) ** 2 / v**2 * (A + v)))
        for i in tries.tolist()
    ]
    cap = b[tries[int(np.argmax(gains))]]
    return np.asarray(np.minimum(v * a, cap) / v)
