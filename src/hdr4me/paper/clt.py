"""Figures 2 and 3: is the deviation of one dimension normal, with the predicted mean and variance?"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kstest

import hdr4me as hd
from hdr4me.mechanisms.law import Mechanism
from hdr4me.paper import case_study
from hdr4me.paper.cells import law_for
from hdr4me.paper.datasets import synthetic
from hdr4me.simulation.sums import generator


@dataclass(frozen=True)
class CltCell:
    """`n_users` users report `n_sampled` of `n_dims` dimensions; the first dimension is watched.

    `figure` 2 takes the Uniform data on [−1, 1], `figure` 3 the case study's ten values on [0, 1].
    """

    figure: str
    mechanism: str
    epsilon: float
    n_users: int
    n_dims: int
    n_sampled: int
    repeats: int

    @property
    def key(self) -> str:
        """A name that no other cell of the same run has."""
        return f"{self.figure}-{self.mechanism}"


@dataclass(frozen=True)
class CltResult:
    """The simulated deviations and the framework's law of them, with the Kolmogorov–Smirnov test of the two.

    `sd` is the exact one, `paper_sd` that of Lemmas 2 and 3 (which drop the sampling of users).
    """

    cell: CltCell
    seed: int
    how: str
    true_mean: float
    bias: float
    sd: float
    paper_sd: float
    berry_esseen: float
    ks_distance: float
    ks_p_value: float
    paper_ks_p_value: float
    seconds: float
    deviations: tuple[float, ...]

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> CltResult:
        """Back from the dictionary that `asdict` makes."""
        cell, deviations = CltCell(**document["cell"]), tuple(document["deviations"])
        return cls(**{**document, "cell": cell, "deviations": deviations})


def _population(cell: CltCell, seed: int) -> tuple[Mechanism, NDArray[np.float64]]:
    """The mechanism under ε/m and the watched dimension's values."""
    budget = cell.epsilon / cell.n_sampled
    if cell.figure == "fig3":
        return hd.mechanism(cell.mechanism, epsilon=budget), np.resize(case_study.VALUES, cell.n_users)
    column = synthetic("uniform", cell.n_users, cell.n_dims, seed).column(0)
    return law_for(cell.mechanism, budget), column.astype(np.float64)


def run_clt(cell: CltCell, seed: int) -> CltResult:
    """Simulate every report of the first dimension: r ~ Binomial(n, m/d) users, drawn without replacement.

    >>> run_clt(CltCell("fig3", "piecewise", 0.1, 100, 100, 100, 50), seed=1).bias
    0.0
    """
    start = time.process_time()
    law, values = _population(cell, seed)
    rng = generator(seed, cell.key, cell.n_users, cell.repeats)
    n, share = cell.n_users, cell.n_sampled / cell.n_dims
    deviations = np.empty(cell.repeats)
    for i in range(cell.repeats):
        chosen = values
        if cell.n_sampled < cell.n_dims:
            count = max(int(rng.binomial(n, share)), 1)
            chosen = values[rng.choice(n, count, replace=False, shuffle=False)]
        deviations[i] = law.sample(chosen, rng).mean() - values.mean()
    predicted = partial(
        hd.deviation, law, n_users=n, n_dims=cell.n_dims, n_sampled=cell.n_sampled, values=values
    )
    exact, paper = predicted(variance="exact"), predicted(variance="paper")
    test = kstest((deviations - float(exact.bias)) / float(exact.sd), "norm")
    paper_test = kstest((deviations - float(paper.bias)) / float(paper.sd), "norm")
    return CltResult(
        cell=cell,
        seed=seed,
        how="direct simulation of every report",
        true_mean=float(values.mean()),
        bias=float(exact.bias),
        sd=float(exact.sd),
        paper_sd=float(paper.sd),
        berry_esseen=float(exact.berry_esseen),
        ks_distance=float(test.statistic),
        ks_p_value=float(test.pvalue),
        paper_ks_p_value=float(paper_test.pvalue),
        seconds=time.process_time() - start,
        deviations=tuple(deviations.tolist()),
    )
