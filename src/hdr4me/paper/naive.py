"""The naive means of a whole collection, many times over: every report drawn, or an exact shortcut.

Which of the two is decided by `hdr4me.simulation.sums.way_of`; all ways have the same distribution.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hdr4me.kernels.simulate.aggregate import laplace_noise_sums
from hdr4me.kernels.simulate.fused import accumulate
from hdr4me.mechanisms.laplace import Laplace
from hdr4me.mechanisms.law import Mechanism
from hdr4me.paper.datasets import Dataset
from hdr4me.simulation.laws import fused_law
from hdr4me.simulation.sums import (
    DIRECT,
    GAMMA,
    accumulate_plainly,
    generator,
    simulate_sums,
    way_of,
)

Floats = NDArray[np.float64]

_BLOCK = 32
"""Dimensions drawn together. Part of the streams' names: another number gives other draws."""


def naive_means(
    mechanism: Mechanism, data: Dataset, dimensions: NDArray[np.int64], repeats: int, seed: int, name: str
) -> Floats:
    """θ̂ when every user reports all of `dimensions`, in each of many repeats: an array [repeats, dimensions]."""
    n, d = data.n_users, dimensions.size
    way = way_of(mechanism)
    if way == GAMMA and isinstance(mechanism, Laplace):
        noise = laplace_noise_sums(mechanism.scale, n, repeats * d, generator(seed, name)) / n
        return data.moments.mean[dimensions] + noise.reshape(repeats, d)
    means = np.empty((repeats, d))
    sums = _drawn(mechanism)
    for start in range(0, d, _BLOCK):
        block = dimensions[start : start + _BLOCK]
        rng = generator(seed, name, start)
        columns = [data.column(int(j)) for j in block]
        into = means[:, start : start + block.size]
        if way == DIRECT:
            values = np.stack(columns, axis=1)
            for repeat, word in enumerate(rng.integers(2**63, size=repeats)):
                into[repeat] = sums(values, int(word)) / n
        else:
            for place, column in enumerate(columns):
                # One column seen `repeats` times over: each repeat is a dimension of its own to the shortcut.
                same = np.broadcast_to(column.astype(np.float64)[:, None], (n, repeats))
                into[:, place] = simulate_sums(mechanism, same, rng) / n
    return means


def _drawn(mechanism: Mechanism) -> Callable[[NDArray[np.float32], int], Floats]:
    """Sums of every report, from (values, seed); the law is compared with the kernel's once, not at each repeat."""
    fused = fused_law(mechanism)

    def sums(values: NDArray[np.float32], seed: int) -> Floats:
        n_sampled = values.shape[1]
        if fused is None:
            return accumulate_plainly(mechanism, values, n_sampled=n_sampled, seed=seed)[0]
        return accumulate(values, *fused, n_sampled=n_sampled, seed=seed)[0]

    return sums
