"""The predicted distribution of θ̂ − θ̄ against simulated collections, for every mechanism."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import kstest, norm

from hdr4me.framework import deviation
from hdr4me.mechanisms import mechanism, names

Floats = NDArray[np.float64]
Collect = Callable[..., Floats]

# `optimal` is a table from the start; the others come in both kinds.
KINDS = [
    (name, exact) for name in names() for exact in (False, True) if exact or not name.startswith("optimal")
]
N, COLLECTIONS = 1000, 1200
FALSE_ALARM = 1e-4  # of each Kolmogorov–Smirnov test in this file


def population(domain: tuple[float, float], n: int = N) -> Floats:
    """Skewed on purpose: a symmetric one would hide an error in the mean."""
    low, high = domain
    return low + (high - low) * np.random.default_rng(11).beta(2.0, 1.0, n)


@pytest.mark.no_cover
@pytest.mark.parametrize(("d", "m"), [(4, 4), (10, 2)], ids=["m=d", "m<d"])
@pytest.mark.parametrize(("name", "exact"), KINDS)
def test_predicted_distribution(name: str, exact: bool, d: int, m: int, collect: Collect) -> None:
    """Kolmogorov–Smirnov over 1,200 collections of 1,000 users (1,000 or about 200 reports each), rate 1e-4.

    What is left of the Berry–Esseen distance at r = 200 (these laws are close to symmetric: under 0.01) is
    well inside the test's resolution of 0.064.
    """
    law: Any = mechanism(name, epsilon=2.0)
    law = law.exact() if exact else law
    values = population(law.domain)
    predicted = deviation(law, users=N, dims=d, sampled=m, values=values)
    seen = collect(law, values, m / d, COLLECTIONS, seed=sum(map(ord, name)) + m)
    assert kstest(seen, norm(predicted.bias, predicted.sd).cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("calibrated", [False, True])
def test_square_wave_raw_and_calibrated(calibrated: bool, collect: Collect) -> None:
    """Rate 1e-4 each; raw it is biased by far more than its spread, calibrated it is not."""
    law = mechanism("square_wave", epsilon=0.5, domain=(-1, 1))
    values = population(law.domain)
    predicted = deviation(law, users=N, dims=10, sampled=2, values=values, calibrated=calibrated)
    seen = collect(law, values, 0.2, COLLECTIONS, seed=8, calibrated=calibrated)
    assert kstest(seen, norm(predicted.bias, predicted.sd).cdf).pvalue > FALSE_ALARM
    assert bool(predicted.bias == 0) is calibrated


class Coin:
    """A user's own mechanism: report ±3 with mean t/2."""

    def mean(self, t: Any) -> Floats:
        return np.asarray(t) / 2

    def variance(self, t: Any) -> Floats:
        return 9 - np.asarray(t) ** 2 / 4

    def abs_third_moment(self, t: Any) -> Floats:
        return (81 - np.asarray(t) ** 4 / 16) / 3

    def sample(self, t: Any, rng: np.random.Generator) -> Floats:
        return np.where(rng.random(np.shape(t)) < 0.5 + np.asarray(t) / 12, 3.0, -3.0)


def test_a_users_own_mechanism(collect: Collect) -> None:
    """Rate 1e-4. 2,001 users keep the coin's lattice finer than the test's resolution."""
    values = population((-1.0, 1.0), 2001)
    predicted = deviation(Coin(), users=2001, dims=2, sampled=1, values=values)
    assert float(predicted.bias) == pytest.approx(-values.mean() / 2)
    seen = collect(Coin(), values, 0.5, COLLECTIONS, seed=4)
    assert kstest(seen, norm(predicted.bias, predicted.sd).cdf).pvalue > FALSE_ALARM
    unbiased = deviation(Coin(), users=2001, dims=2, sampled=1, values=values, calibrated=True)
    twice = 2 * (seen + values.mean()) - values.mean()
    assert kstest(twice, norm(unbiased.bias, unbiased.sd).cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize(("epsilon", "ratio"), [(1.0, 1.08), (4.0, 3.4), (8.0, 26.6)])
def test_what_the_lemmas_drop(epsilon: float, ratio: float, collect: Collect) -> None:
    """d = 100, m = 1, uniform data, Piecewise: exact/paper is 1.08, 3.4 and 26.6, and the simulation says exact.

    2,000 collections: the standard error of a normal sample's variance is √(2/1999) = 3.2 % of it. The exact
    variance must agree within 4 of them (false alarm 6e-5); the paper's must not for ε = 4 and 8.
    """
    law = mechanism("piecewise", epsilon=epsilon)
    n = 20_000
    values = np.linspace(-1, 1, n)
    setting: dict[str, Any] = {"users": n, "dims": 100, "sampled": 1, "values": values}
    exact, paper = (deviation(law, variance_formula=kind, **setting) for kind in ("exact", "paper"))
    limit = deviation(law, users=10**9, dims=100, sampled=1, prior="uniform")
    limit_paper = deviation(law, users=10**9, dims=100, sampled=1, prior="uniform", variance_formula="paper")
    assert float(limit.variance / limit_paper.variance) == pytest.approx(ratio, rel=0.005)
    seen = collect(law, values, 0.01, 2000, seed=int(epsilon)).var(ddof=1)
    standard_error = float(exact.variance) * np.sqrt(2 / 1999)
    assert abs(seen - float(exact.variance)) < 4 * standard_error
    if epsilon > 1:
        assert abs(seen - float(paper.variance)) > 10 * standard_error


@pytest.mark.no_cover
def test_mse_and_norm_over_dimensions(collect: Collect) -> None:
    """50 unlike dimensions at once: the MSE's law by Kolmogorov–Smirnov over 1,000 collections, rate 1e-4."""
    d, n = 50, 400
    rng = np.random.default_rng(1)
    law = mechanism("hybrid", epsilon=1.0)
    columns = rng.uniform(-1, 1, (d, 1)) * rng.random((d, n))
    predicted = deviation(law, users=n, dims=d, sampled=d, values=columns)
    each = np.stack([collect(law, columns[j], 1.0, 1000, seed=100 + j) for j in range(d)])
    mse = (each**2).mean(axis=0)
    assert kstest(mse, np.vectorize(predicted.mse_law.cdf)).pvalue > FALSE_ALARM
    assert predicted.mse_law.mean == pytest.approx(predicted.mse)
    norms = np.sqrt((each**2).sum(axis=0))
    standard_error = predicted.norm_law.sd / np.sqrt(1000)
    assert abs(norms.mean() - predicted.norm_law.mean) < 4 * standard_error
    ξ = predicted.tolerance(0.9, jointly=True)
    kept = (np.abs(each) <= ξ).all(axis=0).mean()
    assert kept == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / 1000))


def test_the_shared_draw_of_dimensions_barely_matters() -> None:
    """m < d: dimensions share one draw. 2,000 collections, d = 20, m = 3: the joint probability still holds.

    Bound of 4 standard errors, false alarm 6e-5.
    """
    d, m, n, k = 20, 3, 600, 2000
    law = mechanism("piecewise", epsilon=1.0)
    rng = np.random.default_rng(9)
    values = rng.uniform(-1, 1, n)
    predicted = deviation(law, users=n, dims=d, sampled=m, values=values)
    ξ = predicted.tolerance(0.8, jointly=True)
    kept = 0
    for _ in range(k):
        chosen = np.argsort(rng.random((n, d)), axis=1)[:, :m]
        reports = law.sample(np.repeat(values, m).reshape(n, m), rng)
        sums = np.bincount(chosen.ravel(), weights=reports.ravel(), minlength=d)
        received = np.bincount(chosen.ravel(), minlength=d)
        kept += int(np.all(np.abs(sums / received - values.mean()) <= ξ))
    assert kept / k == pytest.approx(0.8, abs=4 * np.sqrt(0.16 / k))
