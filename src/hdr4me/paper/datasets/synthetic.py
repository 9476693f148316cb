"""The data sets made from a seed: the paper's three synthetic ones (section VI), and a stand-in for COV-19.

Each column has a random stream of its own. `way` is how values come into [−1, 1]: auto, fixed or min-max.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdr4me.paper.datasets.dataset import Column, Dataset, normalise
from hdr4me.simulation.seeds import generator

__all__ = ["FIXED_RANGE", "SYNTHETIC", "cov19_stand_in", "gaussian", "poisson", "uniform"]

_POISSON_HIGH = 149.0
"""Five standard deviations above the largest expectation: the fixed range of the Poisson data."""
FIXED_RANGE = 10.0
"""Document embeddings of this kind lie within about ±10: the `fixed` range of COV-19 and of its stand-in."""
_FACTORS = 4


def gaussian(n_users: int, n_dims: int, seed: int, way: str = "auto") -> Dataset:
    """σ = 1/16 in every dimension; expectation 0.9 in the first tenth of them (rounded up), 0 in the others.

    The numbers are already on the scale of [−1, 1], so `auto` is the fixed range; about 5 % of the values
    about 0.9 are clipped at 1.

    >>> round(float(gaussian(10_000, 20, seed=1).column(1).mean()), 2)
    0.9
    """
    way = "fixed" if way == "auto" else way
    high = math.ceil(n_dims / 10)

    def column(j: int) -> Column:
        noise = generator(seed, "gaussian", n_users, n_dims, j).standard_normal(n_users, dtype=np.float32)
        return normalise(noise / 16 + (0.9 if j < high else 0.0), way, -1.0, 1.0)

    return Dataset("gaussian", "Gaussian", n_users, n_dims, way, column)


def poisson(n_users: int, n_dims: int, seed: int, way: str = "auto") -> Dataset:
    """Each dimension is Poisson with an expectation drawn uniformly from the integers 1 … 99.

    >>> data = poisson(2_000, 3, seed=1)
    >>> float(data.column(0).min()), float(data.column(0).max())
    (-1.0, 1.0)
    """
    way = "min-max" if way == "auto" else way

    def column(j: int) -> Column:
        rng = generator(seed, "poisson", n_users, n_dims, j)
        counts = rng.poisson(rng.integers(1, 100), n_users).astype(np.float32)
        return normalise(counts, way, 0.0, _POISSON_HIGH)

    return Dataset("poisson", "Poisson", n_users, n_dims, way, column)


def uniform(n_users: int, n_dims: int, seed: int, way: str = "auto") -> Dataset:
    """Each value is uniform on [−1, 1].

    >>> uniform(5, 2, seed=1).column(0).shape
    (5,)
    """
    way = "fixed" if way == "auto" else way

    def column(j: int) -> Column:
        draws = generator(seed, "uniform", n_users, n_dims, j).random(n_users, dtype=np.float32)
        return normalise(2 * draws - 1, way, -1.0, 1.0)

    return Dataset("uniform", "Uniform", n_users, n_dims, way, column)


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


SYNTHETIC: dict[str, Callable[[int, int, int, str], Dataset]] = {
    "gaussian": gaussian,
    "poisson": poisson,
    "uniform": uniform,
    "cov19": cov19_stand_in,
}
"""By name: users, dimensions, seed and normalisation make the data set."""
