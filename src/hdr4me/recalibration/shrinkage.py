"""Shrinkage rules that are not in the paper: James–Stein, the SURE threshold, projections on the simplex."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from hdr4me.framework.normal import tolerance_for
from hdr4me.recalibration.inputs import Floats, check_probability


def james_stein(x: Floats, s: Floats, *, towards_mean: bool) -> Floats:
    """θ*_j = c + (1 − K·a_j/Σ a_k²(x_k − c)²)₊·(x_j − c), c = 0 or the weighted grand mean.

    K = Σ s_k²a_k − 2·max s_k²a_k (3 with c estimated); with constant a and c = 0 the total error is at most Σs_k²
    (Berger 1976; Tan 2015). Here a_j = s_j²/(A + s_j²) with Efron and Morris's prior variance A, the solution of
    Σ_j (x_j − c)²/(A + s_j²) = d − 2 (d − 3). The largest s_j²a_j are reduced where a few noisy dimensions make K ≤ 0.
    Equal s give the textbook rule. Below three (four) dimensions the means are unchanged.
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
    """Efron and Morris's A ≥ 0 and the center that goes with it."""

    def center(A: float) -> float:
        w = 1 / (A + s**2)
        return float(w @ x / w.sum()) if towards_mean else 0.0

    def excess(A: float) -> float:
        return float(np.sum((x - center(A)) ** 2 / (A + s**2))) - freedom

    top = float(np.sum((x - center(0.0)) ** 2)) / freedom + 1e-300
    inside = excess(0.0) > 0 > excess(2 * top)
    A = float(brentq(excess, 0.0, 2 * top, xtol=1e-300, rtol=1e-12)) if inside else 0.0
    return A, center(A)


def _direction(v: Floats, A: float, lost: int) -> Floats:
    """a_j = v_j/(A + v_j), with v_j·a_j capped so that the expected gain K²/Σa²(A + v) is largest."""
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


def sure_threshold(x: Floats, s: Floats) -> float:
    """The τ in [0, √(2 log d)] with the least SURE(τ) = Σ s_j²[1 − 2·1(|z_j| ≤ τ) + min(z_j², τ²)], z = x/s.

    The threshold of dimension j is τ·s_j. Between neighboring |z_j| SURE increases, so 0 and the |z_j| suffice.
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


def norm_sub(frequencies: Floats) -> Floats:
    """The nearest point of the simplex: f_k = max(f̂_k − δ, 0) with δ such that the sum is one.

    This Euclidean projection never moves away from a true distribution.
    """
    falling = -np.sort(-frequencies, kind="stable")
    δ = (np.cumsum(falling) - 1) / np.arange(1, falling.size + 1)
    last = int(np.flatnonzero(falling - δ > 0)[-1])
    out = np.maximum(frequencies - δ[last], 0.0)
    return np.asarray(out / out.sum())


def base_cut(frequencies: Floats, standard_errors: Floats, confidence: float = 0.95) -> Floats:
    """Set frequencies that are not significant to equal shares of the mass that the other categories leave.

    The cut is at z·σ_k with a one-sided z, simultaneous over the categories. Kept frequencies that sum to more than one
    are projected on the simplex.
    """
    p = check_probability("confidence", confidence)
    keep = frequencies > float(tolerance_for(1.0, 2 * p ** (1 / frequencies.size) - 1)) * standard_errors
    out = np.where(keep, frequencies, 0.0)
    left = 1.0 - float(out.sum())
    if left >= 0 and not keep.all():
        out[~keep] = left / (~keep).sum()
        return out
    out[keep] = norm_sub(frequencies[keep])
    return out
