"""A simulated collection with any law that can be sampled: slower than the kernels, and the same on any machine."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["accumulate_any"]

Floats = NDArray[np.float64]

_VALUES = 1 << 20


def accumulate_any(
    mechanism: Any, data: NDArray[Any], n_sampled: int, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Sums, sums of squares and numbers of reports of each dimension.

    Users are taken in groups of a fixed size, each with a generator of its own made from the seed and its number.
    """
    n, d = data.shape
    total, squares, counts = np.zeros(d), np.zeros(d), np.zeros(d)
    size = max(1, _VALUES // d)
    for number, start in enumerate(range(0, n, size)):
        rng = np.random.default_rng([seed, number])
        block = np.asarray(data[start : start + size], dtype=np.float64)
        if n_sampled == d:
            column = np.tile(np.arange(d), len(block))
        else:
            column = np.argpartition(rng.random(block.shape), n_sampled, axis=1)[:, :n_sampled].ravel()
        row = np.repeat(np.arange(len(block)), n_sampled)
        reports = np.asarray(mechanism.sample(block[row, column], rng), dtype=np.float64)
        total += np.bincount(column, weights=reports, minlength=d)
        squares += np.bincount(column, weights=reports**2, minlength=d)
        counts += np.bincount(column, minlength=d)
    return total, squares, counts
