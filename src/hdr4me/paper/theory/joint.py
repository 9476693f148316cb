"""Theorem 1 for several dimensions at once: is the deviation's density the product of its dimensions' densities?

With m = d each dimension's reports come from all users and are perturbed independently: the product form is right. With
m < d the dimensions share one draw of who reports what. A user who reports dimension j is then less likely to report
dimension k, and

    Cov(θ̂_j, θ̂_k) = −C_jk (d − m) / (n m (d − 1)),

where C is the covariance of the data: zero only where the data are uncorrelated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, kstest

import hdr4me as hd
from hdr4me.paper.cells import MECHANISMS, law_for
from hdr4me.paper.datasets import cov19_stand_in
from hdr4me.simulation.seeds import generator
from hdr4me.simulation.simulate import simulate

__all__ = ["SAMPLED_BUDGETS", "WITHIN", "covariance_of_errors", "joint_law"]

SAMPLED_BUDGETS = (1.0, 8.0)
WITHIN = 1.0
"""In standard deviations: the box whose probability is compared with the product's."""
_USERS, _DIMS = 2_000, 8


def covariance_of_errors(covariance: float, n_users: int, n_dims: int, n_sampled: int) -> float:
    """Cov(θ̂_j, θ̂_k) of two dimensions whose values have this covariance over the users.

    >>> covariance_of_errors(0.5, 1000, 2, 2), covariance_of_errors(0.5, 1000, 2, 1)
    (0.0, -0.0005)
    """
    return -covariance * (n_dims - n_sampled) / (n_users * n_sampled * (n_dims - 1)) + 0.0


def joint_law(repeats: int, seed: int) -> dict[str, float]:
    """The deviations of strongly correlated dimensions: all reported (m = d), and one of two (m < d)."""
    return {**_all_reported(repeats, seed), **_one_of_two(repeats, seed)}


def _all_reported(repeats: int, seed: int) -> dict[str, float]:
    """Under the product form Σ_j z_j² is chi-square with d degrees of freedom, and no two z_j are correlated."""
    columns = cov19_stand_in(_USERS, _DIMS, seed)
    values = np.stack([columns.column(j) for j in range(_DIMS)], axis=1).astype(np.float64)
    found = {"data correlation": float(_pairs(values).mean())}
    for name in MECHANISMS:
        law = law_for(name, 1.0 / _DIMS)
        rng = generator(seed, "theory", "joint", name)
        foretold = hd.deviation(law, n_users=_USERS, n_dims=_DIMS, n_sampled=_DIMS, values=values.T)
        drawn = np.array([law.sample(values, rng).mean(axis=0) for _ in range(repeats)])
        z = (drawn - values.mean(axis=0) - foretold.bias) / foretold.sd
        test = kstest((z**2).sum(axis=1), chi2(_DIMS).cdf)
        found[f"all/{name}/ks p-value"] = float(test.pvalue)
        found[f"all/{name}/largest correlation in s.e."] = float(_pairs(z).max() * np.sqrt(repeats))
    found["all/pairs"] = float(_DIMS * (_DIMS - 1) // 2)
    return found


def _pairs(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """|correlation| of every pair of columns."""
    whole = np.atleast_2d(np.corrcoef(columns.T))
    return np.abs(whole[np.triu_indices(columns.shape[1], 1)])


def _one_of_two(repeats: int, seed: int) -> dict[str, float]:
    """Two equal dimensions, each user reports one of them under the whole ε (Piecewise)."""
    t = generator(seed, "theory", "joint", "values").uniform(-1, 1, _USERS)
    values = np.stack([t, t], axis=1)
    found = {}
    for epsilon in SAMPLED_BUDGETS:
        law = law_for("piecewise", epsilon)
        rng = generator(seed, "theory", "joint", "one of two", epsilon)
        seeds = rng.integers(2**63, size=repeats)
        away = np.array([simulate(law, values, seed=int(s), n_sampled=1).mean for s in seeds]) - t.mean()
        foretold = hd.deviation(law, n_users=_USERS, n_dims=2, n_sampled=1, values=t)
        both = np.all(np.abs(away) <= WITHIN * float(foretold.sd), axis=1)
        covariance = covariance_of_errors(float(t.var()), _USERS, 2, 1)
        place = f"some/{epsilon:g}"
        found[f"{place}/correlation"] = float(np.atleast_2d(np.corrcoef(away.T))[0, 1])
        found[f"{place}/correlation foretold"] = covariance / float(foretold.variance)
        found[f"{place}/both within"] = float(both.mean())
        found[f"{place}/both within, product"] = (
            float(foretold.probability_within(WITHIN * float(foretold.sd))) ** 2
        )
        found[f"{place}/repeats"] = float(repeats)
    return found
