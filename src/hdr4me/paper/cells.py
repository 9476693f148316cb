"""One cell of Figures 4 and 5: a data set, a mechanism, a budget, a number of dimensions; many repeats."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import hdr4me as hd
from hdr4me.framework import Deviation
from hdr4me.mechanisms.law import Mechanism
from hdr4me.paper.datasets import Moments

__all__ = ["MECHANISMS", "Cell", "law_for", "law_of", "predicted", "title_of"]

MECHANISMS = {"laplace": "Laplace", "piecewise": "Piecewise", "square_wave": "Square"}
"""The three mechanisms of section VI, with the names its figures use."""


def title_of(mechanism: str) -> str:
    """A mechanism's name as tables and figures write it.

    >>> title_of("square_wave"), title_of("scdf")
    ('Square', 'Scdf')
    """
    return MECHANISMS.get(mechanism, mechanism.replace("_", " ").capitalize())


@dataclass(frozen=True)
class Cell:
    """What is simulated: every user reports all `n_dims` dimensions, so each value has the budget ε/d."""

    figure: str
    dataset: str
    mechanism: str
    epsilon: float
    n_users: int
    n_dims: int
    repeats: int

    @property
    def key(self) -> str:
        """A name that no other cell of the same run has."""
        return f"{self.figure}-{self.dataset}-{self.mechanism}-d{self.n_dims}-e{self.epsilon:g}"


def law_for(name: str, epsilon: float) -> Mechanism:
    """The mechanism of one value in [−1, 1]; Square wave works there by rescaling and keeps its bias.

    >>> law_for("square_wave", 1.0).domain
    (-1.0, 1.0)
    """
    options = {"domain": (-1.0, 1.0)} if name == "square_wave" else {}
    return hd.mechanism(name, epsilon=epsilon, **options)


def law_of(cell: Cell) -> Mechanism:
    """The mechanism of one value of a cell, under ε/d."""
    return law_for(cell.mechanism, cell.epsilon / cell.n_dims)


def predicted(
    law: Mechanism, data: Moments, n_users: int, columns: Iterable[NDArray[np.floating]] = ()
) -> Deviation:
    """What the framework foretells for this population when all dimensions are reported (Lemmas 2 and 3)."""
    if not _is_quadratic(law):
        return _predicted_from(law, columns, n_users)
    values, shares = data.two_points()
    d = data.mean.size
    return hd.deviation(law, n_users=n_users, n_dims=d, n_sampled=d, values=values, probabilities=shares)


def _is_quadratic(law: Mechanism) -> bool:
    """Whether E[t*|t] is affine and Var(t*|t) quadratic in t, at 101 values of [−1, 1]."""
    t = np.linspace(-1.0, 1.0, 101)
    for values, degree in ((law.mean(t), 1), (law.variance(t), 2)):
        differences = np.diff(values, n=degree + 1)
        if np.abs(differences).max() > 1e-9 * np.abs(values).max():
            return False
    return True


def _predicted_from(law: Mechanism, columns: Iterable[NDArray[np.floating]], n_users: int) -> Deviation:
    """Bias and variance averaged over every value; with m = d nobody is left out, so Var θ̂_j = V̄_j/n."""
    wide = [np.asarray(column, dtype=np.float64) for column in columns]
    bias = np.array([float(np.mean(law.mean(t) - t)) for t in wide])
    variance = np.array([float(np.mean(law.variance(t))) for t in wide]) / n_users
    ones = np.ones(len(wide), dtype=np.int64)
    return Deviation(bias, variance, ones, float(n_users), np.full(len(wide), np.nan), "exact")
