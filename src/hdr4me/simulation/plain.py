"""The slow path: any mechanism, drawn by its own `sample`; seeded, and summed chunk by chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.mechanisms.law import Mechanism
from hdr4me.simulation.seeds import generator

Floats = NDArray[np.float64]
_CHUNK = 1 << 18
"""Values in a chunk. Part of the streams' names: another number gives other draws."""


def accumulate_plainly(
    mechanism: Mechanism, values: NDArray[np.floating[Any]], *, n_sampled: int, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Sums, sums of squares and numbers of reports per dimension, each report drawn by `mechanism.sample`."""
    n, d = values.shape
    total, squares, reports = np.zeros(d), np.zeros(d), np.zeros(d)
    rows = max(1, _CHUNK // d)
    for chunk, start in enumerate(range(0, n, rows)):
        rng = generator(seed, "plain", chunk)
        part = np.asarray(values[start : start + rows], dtype=np.float64)
        if n_sampled == d:
            x = mechanism.sample(part, rng)
            total += x.sum(axis=0)
            squares += (x**2).sum(axis=0)
            reports += len(part)
            continue
        dims = rng.random(part.shape).argpartition(n_sampled - 1, axis=1)[:, :n_sampled]
        x = mechanism.sample(np.take_along_axis(part, dims, axis=1), rng).ravel()
        where = dims.ravel()
        total += np.bincount(where, weights=x, minlength=d)
        squares += np.bincount(where, weights=x**2, minlength=d)
        reports += np.bincount(where, minlength=d)
    return total, squares, reports
