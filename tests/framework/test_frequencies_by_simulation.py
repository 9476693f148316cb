"""Frequencies under the exact categorical tables: the predicted law of every entry against simulated collections."""

from typing import Any

import numpy as np
import pytest
from category_laws import grr, histogram, oue
from numpy.typing import NDArray
from scipy.stats import kstest, norm

from hdr4me.framework import deviation

Floats = NDArray[np.float64]
V, N, COLLECTIONS = 5, 2000, 1200


def zipf(v: int = V) -> Floats:
    f = 1.0 / np.arange(1, v + 1)
    return f / f.sum()


def collections(table: Any, truth: NDArray[np.int64], share: float, seed: int) -> Floats:
    """Estimated minus true frequencies, one row per collection."""
    rng = np.random.default_rng(seed)
    true = np.bincount(truth, minlength=V) / truth.size
    out = np.empty((COLLECTIONS, V))
    for k in range(COLLECTIONS):
        users = truth[rng.random(truth.size) < share]
        if table.kind == "category":
            share_of = np.bincount(table.sample_cells(users, rng), minlength=V) / users.size
            hit, miss = table.decode
            out[k] = share_of * hit + (1 - share_of) * miss - true
        else:
            entries = (users[:, None] == np.arange(V)).astype(np.int64)
            out[k] = table.sample(entries, rng).mean(axis=0) - true
    return out


@pytest.mark.parametrize(("d", "m"), [(2, 2), (8, 1)], ids=["m=d", "m<d"])
@pytest.mark.parametrize("method", ["grr", "oue", "histogram"])
def test_predicted_distribution_of_each_frequency(method: str, d: int, m: int) -> None:
    """Kolmogorov–Smirnov for each of 5 categories over 1,200 collections, false-alarm rate 1e-4 each (3e-3 in all)."""
    table = {"grr": grr(1.5, V), "oue": oue(1.5), "histogram": histogram(1.5, "piecewise")}[method]
    counts = np.round(zipf() * N).astype(np.int64)
    truth = np.repeat(np.arange(V), counts)
    frequencies = counts / counts.sum()
    predicted = deviation(table.channel(V), users=truth.size, dims=d, sampled=m, probabilities=frequencies)
    seen = collections(table, truth, m / d, seed=len(method) + m)
    for k in range(V):
        assert kstest(seen[:, k], norm(predicted.bias[k], predicted.sd[k]).cdf).pvalue > 1e-4


def test_high_dimensional_frequencies() -> None:
    """10 dimensions × 50 categories, Zipf, n = 1e5, m = 1, MSE × 1e6: the order that separates the methods."""
    f = zipf(50)
    costs = {
        ε: {
            name: 1e6 * deviation(table.channel(50), users=100_000, dims=10, sampled=1, probabilities=f).mse
            for name, table in (
                ("laplace", histogram(ε, "laplace")),
                ("piecewise", histogram(ε, "piecewise")),
                ("oue", oue(ε)),
                ("grr", grr(ε, 50)),
            )
        }
        for ε in (1.0, 4.0)
    }
    # Reference values from one simulated collection each, whose MSE has a standard error of 6 % (ε = 1).
    for name, simulated in (("laplace", 807), ("piecewise", 541), ("oue", 368), ("grr", 1740)):
        assert costs[1.0][name] == pytest.approx(simulated, rel=0.06)
    for name, simulated in (("laplace", 52.9), ("piecewise", 32.7), ("oue", 11.1)):
        assert costs[4.0][name] == pytest.approx(simulated, rel=0.06)
    assert costs[4.0]["grr"] < costs[4.0]["oue"] < costs[4.0]["piecewise"]
