"""Theorem 2 against simulation: how far the mean of r reports is from its normal law, and what the bound says."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kstest

from hdr4me.framework.normal import berry_esseen_bound, berry_esseen_printed
from hdr4me.kernels.simulate.aggregate import laplace_noise_sums
from hdr4me.mechanisms.laplace import Laplace
from hdr4me.mechanisms.law import Mechanism
from hdr4me.paper.cells import MECHANISMS, law_for
from hdr4me.simulation.seeds import generator

__all__ = ["GENERAL", "PAPER_CASES", "REPORTS", "chance", "normal_approximation"]

REPORTS = (1, 10, 100)
PAPER_CASES = tuple((name, epsilon) for name in MECHANISMS for epsilon in (0.001, 0.02, 1.0))
"""The paper's mechanisms at its case study's budget, at Figure 2's, and at 1."""
GENERAL = (("duchi", 1.0), ("piecewise", 8.0), ("square_wave", 8.0))
"""“For any LDP mechanism”: a coin, and large budgets."""
_VALUE = 0.5
_PER_REPEAT = 100


def chance(repeats: int) -> float:
    """What the Kolmogorov–Smirnov distance of the simulation adds at most, with 99.9 %: 1.95/√draws.

    >>> round(chance(1000), 5)
    0.00617
    """
    return 1.95 / math.sqrt(repeats * _PER_REPEAT)


def normal_approximation(repeats: int, seed: int) -> dict[str, float]:
    """For each case and number of reports: the distance found, the bound, and the bound as it is printed."""
    found = {"draws": float(repeats * _PER_REPEAT), "chance": chance(repeats)}
    for name, epsilon in (*PAPER_CASES, *GENERAL):
        law = law_for(name, epsilon)
        third, variance = float(law.abs_third_moment(_VALUE)), float(law.variance(_VALUE))
        for r in REPORTS:
            rng = generator(seed, "theory", "normal", name, epsilon, r)
            means = _means(law, r, repeats * _PER_REPEAT, rng)
            sd = math.sqrt(variance / r)
            place = f"{name}/{epsilon:g}/{r}"
            found[f"{place}/distance"] = float(
                kstest((means - float(law.mean(_VALUE))) / sd, "norm").statistic
            )
            found[f"{place}/bound"] = float(berry_esseen_bound(third, variance, r))
            found[f"{place}/printed"] = float(berry_esseen_printed(third, sd, r))
    return found


def _means(law: Mechanism, r: int, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    if isinstance(law, Laplace):
        return _VALUE + laplace_noise_sums(law.scale, r, size, rng) / r
    total = np.zeros(size)
    for _ in range(r):  # report by report: memory does not grow with r
        total += law.sample(np.full(size, _VALUE), rng)
    return total / r
