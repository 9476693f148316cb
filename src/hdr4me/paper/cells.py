"""One cell of Figures 4 and 5: a data set, a mechanism, a budget, a number of dimensions; many repeats."""

from __future__ import annotations

from dataclasses import dataclass

import hdr4me as hd
from hdr4me.framework import Deviation
from hdr4me.mechanisms.law import Mechanism
from hdr4me.paper.datasets import Moments

__all__ = ["MECHANISMS", "Cell", "law_for", "law_of", "predicted"]

MECHANISMS = {"laplace": "Laplace", "piecewise": "Piecewise", "square_wave": "Square"}
"""The three mechanisms of section VI, with the names its figures use."""


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


def predicted(law: Mechanism, data: Moments, n_users: int) -> Deviation:
    """What the framework foretells for this population when all dimensions are reported (Lemmas 2 and 3)."""
    values, shares = data.two_points()
    d = data.mean.size
    return hd.deviation(law, n_users=n_users, n_dims=d, n_sampled=d, values=values, probabilities=shares)
