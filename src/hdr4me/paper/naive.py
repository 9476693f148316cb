"""The naive means of a whole collection, many times over: every report drawn, or an exact shortcut.

Three ways, all with the same distribution; `way_of` says which one a mechanism takes:

- Laplace: the noise of n reports is a difference of two Gamma variates;
- Piecewise and Square wave where few reports depend on the value: those are found by skipping, the others counted;
- otherwise every report is drawn, by the fused kernel.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdr4me.kernels.simulate.aggregate import laplace_noise_sums
from hdr4me.kernels.simulate.fused import accumulate
from hdr4me.mechanisms.laplace import Laplace
from hdr4me.mechanisms.law import Mechanism, UniformMixture
from hdr4me.paper.datasets import Dataset, Moments
from hdr4me.simulation.aggregate import simulate_sums
from hdr4me.simulation.seeds import generator
from hdr4me.simulation.simulate import law_of as kernel_law

__all__ = ["DIRECT", "GAMMA", "SKIPPING", "band_share", "naive_means", "way_of"]

Floats = NDArray[np.float64]

GAMMA = "exact shortcut: Gamma differences"
SKIPPING = "exact shortcut: skipping"
DIRECT = "every report drawn"

_SKIP_BELOW = 0.08
"""Where a report depends on the value with a larger probability, drawing every report is as quick (measured)."""
_BLOCK = 32
"""Dimensions drawn together. Part of the streams' names: another number gives other draws."""


def band_share(mechanism: Mechanism) -> float:
    """The probability that a report depends on the value."""
    if not isinstance(mechanism, UniformMixture):
        return 1.0
    return float(mechanism.parts(np.zeros(1)).weight[1, 0])


def way_of(mechanism: Mechanism) -> str:
    """How `naive_means` draws under this mechanism.

    >>> from hdr4me.mechanisms import mechanism
    >>> [way_of(mechanism("piecewise", epsilon=epsilon)) for epsilon in (0.1, 1.0)]
    ['exact shortcut: skipping', 'every report drawn']
    """
    if isinstance(mechanism, Laplace):
        return GAMMA
    return SKIPPING if band_share(mechanism) < _SKIP_BELOW else DIRECT


def naive_means(
    mechanism: Mechanism,
    data: Dataset,
    moments: Moments,
    dimensions: NDArray[np.int64],
    repeats: int,
    seed: int,
    name: str,
) -> Floats:
    """θ̂ [repeats, dimensions] when every user reports all of `dimensions`; `name` names the random streams."""
    n, d = data.n_users, dimensions.size
    way = way_of(mechanism)
    if isinstance(mechanism, Laplace):
        noise = laplace_noise_sums(mechanism.scale, n, repeats * d, generator(seed, name)) / n
        return moments.mean[dimensions] + noise.reshape(repeats, d)
    means = np.empty((repeats, d))
    for start in range(0, d, _BLOCK):
        block = dimensions[start : start + _BLOCK]
        rng = generator(seed, name, start)
        columns = [data.column(int(j)) for j in block]
        into = means[:, start : start + block.size]
        if way == SKIPPING:
            for place, column in enumerate(columns):
                # One column seen `repeats` times over: each repeat is a dimension of its own to the shortcut.
                same = np.broadcast_to(column.astype(np.float64)[:, None], (n, repeats))
                into[:, place] = simulate_sums(mechanism, same, rng) / n
        else:
            values, (family, law) = np.stack(columns, axis=1), kernel_law(mechanism)
            for repeat, word in enumerate(rng.integers(2**63, size=repeats)):
                sums, _, _ = accumulate(values, family, law, n_sampled=block.size, seed=int(word))
                into[repeat] = sums / n
    return means
