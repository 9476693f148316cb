"""How large "sup |θ̂_j − θ̄_j|" is taken to be: a normal's supremum is infinite, so a quantile must be chosen."""

from __future__ import annotations

import math

import numpy as np

from hdr4me.errors import InvalidInput
from hdr4me.framework.normal import tolerance_for
from hdr4me.recalibration.cells import Floats
from hdr4me.recalibration.inputs import Inputs, check_probability

__all__ = ["deviation_bound"]


def deviation_bound(
    inputs: Inputs, *, z: float | None = None, confidence: float = 0.95, simultaneous: bool = False
) -> Floats:
    """|bias_j| + z·σ_j, the stand-in for the supremum in Lemmas 4 and 5.

    `z` given; or the z of a two-sided `confidence` in each dimension; or, `simultaneous`, in all d at once (Šidák:
    confidence^{1/d} in each).

    >>> from hdr4me.recalibration.inputs import check_inputs
    >>> one = check_inputs([0.1, 0.2], [1.0, 2.0], None, 1.0, (-1, 1))
    >>> deviation_bound(one, z=2.0)
    array([2., 4.])
    >>> deviation_bound(one).round(3), deviation_bound(one, simultaneous=True).round(3)
    (array([1.96, 3.92]), array([2.236, 4.473]))
    """
    if z is None:
        p = check_probability("confidence", confidence)
        z = float(tolerance_for(1.0, p, n=inputs.means.size if simultaneous else 1))
    elif not (isinstance(z, (int, float)) and math.isfinite(z) and z >= 0):
        raise InvalidInput(f"z = {z!r} is not allowed: it must be a finite number ≥ 0")
    return np.abs(inputs.bias) + z * inputs.standard_errors
