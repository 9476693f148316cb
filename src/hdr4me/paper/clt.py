"""Figures 2 and 3: is the deviation of one dimension normal, with the predicted mean and variance?"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import kstest

import hdr4me as hd
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

    @property
    def cost(self) -> int:
        """About how many milliseconds the cell takes."""
        return 1 + self.n_users * self.n_sampled * self.repeats // (self.n_dims * 20_000)


@dataclass(frozen=True)
class CltResult:
    """The simulated deviations and their predicted law; `paper_sd` is that of Lemmas 2 and 3, without sampling."""

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
    seconds: float
    deviations: tuple[float, ...]


def run_clt(cell: CltCell, seed: int) -> CltResult:
    """Simulate every report of the first dimension: r ~ Binomial(n, m/d) users, drawn without replacement."""
    start = time.process_time()
    n, share, budget = cell.n_users, cell.n_sampled / cell.n_dims, cell.epsilon / cell.n_sampled
    if cell.figure == "fig3":
        law, values = hd.mechanism(cell.mechanism, epsilon=budget), np.resize(case_study.VALUES, n)
    else:
        law = law_for(cell.mechanism, budget)
        values = synthetic("uniform", n, cell.n_dims, seed).column(0).astype(np.float64)
    rng = generator(seed, cell.key, n, cell.repeats)
    deviations = np.empty(cell.repeats)
    for i in range(cell.repeats):
        chosen = values
        if cell.n_sampled < cell.n_dims:
            count = max(int(rng.binomial(n, share)), 1)
            chosen = values[rng.choice(n, count, replace=False, shuffle=False)]
        deviations[i] = law.sample(chosen, rng).mean() - values.mean()
    sizes: Any = {"n_users": n, "n_dims": cell.n_dims, "n_sampled": cell.n_sampled}
    exact = hd.deviation(law, values=values, **sizes)
    paper = hd.deviation(law, values=values, variance="paper", **sizes)
    test = kstest((deviations - float(exact.bias)) / float(exact.sd), "norm")
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
        seconds=time.process_time() - start,
        deviations=tuple(deviations.tolist()),
    )
