"""Any number of dimensions from a data set: fewer by choosing, more by drawing again (section VI, Fig. 5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdr4me.simulation.seeds import generator

__all__ = ["chosen_dimensions"]


def chosen_dimensions(available: int, wanted: int, seed: int) -> NDArray[np.int64]:
    """Which columns make up a data set of `wanted` dimensions out of one of `available`.

    Up to `available`, the first of one random order, so that a smaller set is part of a larger; beyond,
    all of them and then columns drawn again at random, as the paper does.

    >>> chosen_dimensions(3, 5, seed=1).size, sorted(set(chosen_dimensions(3, 3, seed=1).tolist()))
    (5, [0, 1, 2])
    """
    order = generator(seed, "order of dimensions", available).permutation(available)
    if wanted <= available:
        return order[:wanted]
    again = generator(seed, "dimensions drawn again", available).integers(0, available, wanted - available)
    return np.concatenate([order, again])
