"""The simplex: projections of frequencies on the distributions."""

from __future__ import annotations

import numpy as np

from hdr4me.framework.normal import tolerance_for
from hdr4me.recalibration.cells import Floats
from hdr4me.recalibration.inputs import check_probability

__all__ = ["base_cut", "norm_sub"]


def norm_sub(frequencies: Floats, variances: Floats | float = 1.0) -> Floats:
    """The nearest point of the simplex: f_k = max(f̂_k − δ·v_k, 0) with δ such that the sum is one.

    With equal v (norm-sub) it is the Euclidean projection, which can never move away from a true distribution. With
    variances v it is the projection in their metric: a well-known frequency moves less.

    >>> norm_sub(np.array([0.7, 0.5, -0.2]))
    array([0.6, 0.4, 0. ])
    """
    v = np.broadcast_to(np.asarray(variances, dtype=np.float64), frequencies.shape)
    # A frequency known exactly must still give way if nothing else can: a billionth of the largest variance.
    v = np.maximum(v, 1e-9 * v.max()) if v.max() > 0 else np.ones_like(v)
    order = np.argsort(-frequencies / v, kind="stable")
    δ = (np.cumsum(frequencies[order]) - 1) / np.cumsum(v[order])
    last = int(np.flatnonzero(frequencies[order] - δ * v[order] > 0)[-1])
    out = np.maximum(frequencies - δ[last] * v, 0.0)
    return np.asarray(out / out.sum())


def base_cut(frequencies: Floats, standard_errors: Floats, confidence: float = 0.95) -> Floats:
    """Frequencies that noise alone could have produced are cut; what the others leave of one is shared out equally.

    The cut is at z·σ_k, z simultaneous over the v categories, one-sided. The cut categories share what the kept
    ones leave; if those sum to more than one, they are projected on the simplex.

    >>> base_cut(np.array([0.6, 0.3, 0.03, -0.02]), np.full(4, 0.02))
    array([0.6 , 0.3 , 0.05, 0.05])
    """
    z = float(
        tolerance_for(1.0, 2 * check_probability("confidence", confidence) ** (1 / frequencies.size) - 1)
    )
    keep = frequencies > z * standard_errors
    out = np.where(keep, frequencies, 0.0)
    left = 1.0 - float(out.sum())
    if left >= 0 and not keep.all():
        out[~keep] = left / (~keep).sum()
        return out
    out[keep] = norm_sub(frequencies[keep])
    return out
