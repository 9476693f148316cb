"""The paper's three synthetic data sets (section VI)."""

from __future__ import annotations

import math

import numpy as np

from hdr4me.paper.datasets.dataset import Column, Dataset
from hdr4me.paper.datasets.normalise import normalise
from hdr4me.simulation.seeds import generator

__all__ = ["gaussian", "poisson", "uniform"]

_POISSON_HIGH = 149.0
"""Five standard deviations above the largest expectation: the fixed range of the Poisson data."""


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
        return normalise(
            rng.poisson(rng.integers(1, 100), n_users).astype(np.float32), way, 0.0, _POISSON_HIGH
        )

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
