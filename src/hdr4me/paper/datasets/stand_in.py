"""A stand-in for COV-19: the same size and strongly correlated dimensions, made from a seed."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdr4me.paper.datasets.dataset import Column, Dataset
from hdr4me.paper.datasets.normalise import normalise
from hdr4me.simulation.seeds import generator

__all__ = ["FIXED_RANGE", "cov19_stand_in"]

FIXED_RANGE = 10.0
"""Document embeddings of this kind lie within about ±10: the `fixed` range of COV-19 and of its stand-in."""
_FACTORS = 4


@lru_cache(maxsize=1)
def _factors(n_users: int, seed: int) -> NDArray[np.float32]:
    """What all dimensions share: one skewed factor (Gamma of shape 6, standardised), then normal ones."""
    rng = generator(seed, "cov19 stand-in", n_users, "factors")
    shared = rng.standard_normal((_FACTORS, n_users), dtype=np.float32)
    shared[0] = (rng.standard_gamma(6.0, n_users, dtype=np.float32) - 6) / np.sqrt(6)
    return shared


def cov19_stand_in(n_users: int, n_dims: int, seed: int, way: str = "auto") -> Dataset:
    """x_j = μ_j + s_j(w_j·f + noise): four shared factors f carry about 85 % of every dimension's variance.

    The first factor is skewed, as embeddings of clustered documents are, so that min–max leaves means that
    differ from zero. It is not the data of the paper, and its title says so wherever it is shown.

    >>> cov19_stand_in(1_000, 5, seed=1).title
    'COV-19 (stand-in)'
    """
    way = "min-max" if way == "auto" else way

    def column(j: int) -> Column:
        rng = generator(seed, "cov19 stand-in", n_users, n_dims, j)
        weights = rng.normal([0.0] * _FACTORS, [1.0, 0.6, 0.4, 0.3])
        weights[0] += np.sign(weights[0])
        weights *= np.sqrt(0.85) / np.linalg.norm(weights)
        centre, spread = rng.normal(0.0, 1.0), rng.uniform(0.6, 1.2)
        own = rng.standard_normal(n_users, dtype=np.float32) * np.float32(np.sqrt(0.15))
        signal = weights.astype(np.float32) @ _factors(n_users, seed)
        values = np.float32(centre) + np.float32(spread) * (signal + own)
        return normalise(values, way, -FIXED_RANGE, FIXED_RANGE)

    return Dataset("cov19", "COV-19 (stand-in)", n_users, n_dims, way, column, stand_in=True)
