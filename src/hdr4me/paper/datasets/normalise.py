"""Into [−1, 1]: the paper normalises each dimension and does not say how, so the way is a named choice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.paper.datasets.dataset import Column

__all__ = ["NORMALISATIONS", "check_normalisation", "normalise"]

NORMALISATIONS = ("auto", "fixed", "min-max")
"""`fixed`: one range for all dimensions, known beforehand, values outside it clipped; `min-max`: each
dimension's own smallest and largest value; `auto`: fixed where the paper's own numbers are already in
[−1, 1] (Gaussian, Uniform), min–max where they are not (Poisson, COV-19)."""


def check_normalisation(way: str) -> str:
    """`way`, or an error that names the choices.

    >>> check_normalisation("fixed")
    'fixed'
    """
    if way not in NORMALISATIONS:
        raise InvalidInput.of("normalise", way, f"use one of {', '.join(NORMALISATIONS)}")
    return way


def normalise(values: NDArray[np.floating], way: str, low: float, high: float) -> Column:
    """2(x − l)/(h − l) − 1 with (l, h) = (`low`, `high`) and clipping, or the column's own extremes.

    >>> normalise(np.array([0.0, 5.0, 20.0]), "fixed", 0, 10).tolist()
    [-1.0, 0.0, 1.0]
    >>> normalise(np.array([0.0, 5.0, 20.0]), "min-max", 0, 10).tolist()
    [-1.0, -0.5, 1.0]
    """
    if way == "min-max":
        low, high = float(values.min()), float(values.max())
        if low == high:
            return np.zeros(values.shape, dtype=np.float32)
    scaled = 2.0 * ((values - low) / (high - low)) - 1.0
    return np.asarray(np.clip(scaled, -1.0, 1.0), dtype=np.float32)
