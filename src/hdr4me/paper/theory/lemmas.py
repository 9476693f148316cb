"""Lemmas 4 and 5 in each dimension: is the enhanced mean closer wherever the deviation passes the threshold?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdr4me.framework.enhancement import L1_THRESHOLD, L2_THRESHOLD
from hdr4me.framework.supremum import tolerance_for
from hdr4me.paper.readings import REFERENCES, WIDTHS
from hdr4me.recalibration.hdr4me import l2_weights, shrink, soft_threshold
from hdr4me.recalibration.inputs import check_inputs
from hdr4me.simulation.seeds import generator

__all__ = ["lemmas_per_dimension", "width_of"]

Floats = NDArray[np.float64]
_SPREADS = (0.3, 1.0, 3.0, 30.0)
_PER_REPEAT = 100
_DIMS = 100
"""Dimensions that the joint width covers."""


def width_of(width: str, n_dims: int) -> float:
    """A reading's z: as it is named, or the one that all dimensions keep at once with 95 %.

    >>> width_of("2", 100), round(width_of("joint", 1), 3)
    (2.0, 1.96)
    """
    return float(tolerance_for(1.0, 0.95, n=n_dims)) if width == "joint" else float(width)


def lemmas_per_dimension(repeats: int, seed: int) -> dict[str, float]:
    """The share of dimensions with a deviation beyond the threshold in which each method is strictly closer.

    True means are uniform on [−1, 1], deviations normal with standard deviations from 0.3 to 30, without bias. The
    share below the threshold is given beside it.
    """
    rng = generator(seed, "theory", "lemmas")
    size = repeats * _PER_REPEAT
    true = rng.uniform(-1, 1, len(_SPREADS) * size)
    sd = np.repeat(_SPREADS, size)
    means = true + sd * rng.standard_normal(true.size)
    inputs = check_inputs(means, sd, None, 1.0, (-1.0, 1.0))
    away = np.abs(means - true)
    found: dict[str, float] = {}

    def note(name: str, enhanced: Floats, threshold: float) -> None:
        closer = np.abs(enhanced - true) < away
        found[name] = float(closer[away > threshold].mean())
        found[f"{name}/below"] = float(closer[away <= threshold].mean())

    for width in WIDTHS:
        bound = width_of(width, _DIMS) * sd
        note(f"l1/z{width}", soft_threshold(means, bound), L1_THRESHOLD)
        for reference in REFERENCES:
            enhanced = shrink(means, l2_weights(inputs, bound, reference))
            note(f"l2/z{width}/{reference}", enhanced, L2_THRESHOLD)
    found["l1/beyond"] = float(np.sum(away > L1_THRESHOLD))
    found["l2/beyond"] = float(np.sum(away > L2_THRESHOLD))
    return found
