"""Errors of different coordinates: their correlation by formula, by simulation, and in the norm's law."""

from __future__ import annotations

import numpy as np
import pytest
from category_laws import grr, oue

from hdr4me import deviation
from hdr4me.errors import InvalidInput
from hdr4me.framework.moments import shared_draw
from hdr4me.mechanisms import mechanism

RUNS = 4000


def _one_of_two(values: np.ndarray, epsilon: float, seed: int) -> np.ndarray:
    """Errors of two means, each user reporting one of two dimensions by Piecewise; one row per run."""
    law, rng = mechanism("piecewise", epsilon=epsilon), np.random.default_rng(seed)
    n = values.shape[1]
    errors = np.empty((RUNS, 2))
    truth = values.mean(axis=1)
    for run in range(RUNS):
        first = rng.random(n) < 0.5
        reports = law.sample(np.where(first, values[0], values[1]), rng)
        errors[run] = reports[first].mean() - truth[0], reports[~first].mean() - truth[1]
    return errors


def test_the_law_of_the_mse_is_kept_where_values_are_correlated() -> None:
    """d = 2, m = 1, ε = 8, the same values in both dimensions: correlation −.95, and P(MSE ≤ its 95 %) is .95.

    4,000 runs: a share of .95 has a standard deviation of .0034, so ±.015 has a false-alarm rate of 1e-5. The law of
    independent coordinates has .92 there, which fails.
    """
    even = np.linspace(-1, 1, 300)
    values = np.stack([even, even])
    dev = deviation(mechanism("piecewise", epsilon=8.0), users=300, dims=2, sampled=1, values=values)
    errors = _one_of_two(values, 8.0, seed=1)
    assert np.corrcoef(errors.T)[0, 1] == pytest.approx(-0.93, abs=0.03)
    mse = (errors**2).mean(axis=1)
    for p in (0.5, 0.95):
        assert (mse <= dev.mse_law.quantile(p)).mean() == pytest.approx(p, abs=0.015 if p > 0.9 else 0.04)
        assert (np.sqrt(2 * mse) <= dev.norm_law.quantile(p)).mean() == pytest.approx(p, abs=0.04)
    assert dev.mse_law.mean == pytest.approx(dev.mse, rel=1e-9)
    given = deviation(
        mechanism("piecewise", epsilon=8.0), users=300, dims=2, sampled=1, values=even, correlation=1.0
    )
    assert given.mse_law.quantile(0.95) == pytest.approx(dev.mse_law.quantile(0.95), rel=1e-9)
    alone = deviation(mechanism("piecewise", epsilon=8.0), users=300, dims=2, sampled=1, values=even)
    assert (mse <= alone.mse_law.quantile(0.95)).mean() < 0.935


@pytest.mark.parametrize("make", [lambda: grr(1.0, 2), lambda: grr(2.0, 4), lambda: oue(1.0)])
def test_the_covariance_of_frequencies(make) -> None:
    """Against 4,000 simulated collections, 200 users of whom half report: entries within 6 standard errors."""
    table, rng = make(), np.random.default_rng(2)
    k = 2 if table.kind == "category" and table.n_cells == 2 else 4
    f = np.array([0.7, 0.3]) if k == 2 else np.array([0.5, 0.3, 0.15, 0.05])
    n, share = 200, 0.5
    people = np.repeat(np.arange(k), np.rint(f * n).astype(int))
    expected = deviation(table.channel(k), users=n, probabilities=f, inclusion=share).covariance
    errors = np.empty((RUNS, k))
    for run in range(RUNS):
        who = people[rng.random(n) < share]
        if table.kind == "category":
            reports = np.eye(k)[table.sample_cells(who, rng)]
            decoded = np.where(reports > 0, table.decode[0], table.decode[1])
        else:
            decoded = table.decode[table.sample_cells(np.eye(k)[who], rng)]
        errors[run] = decoded.mean(axis=0) - f
    found = np.cov(errors.T)
    sd = np.sqrt(np.diag(expected))
    noise = np.sqrt((np.outer(sd, sd) ** 2 + expected**2) / RUNS)
    assert np.all(np.abs(found - expected) <= 6 * noise)


def test_two_categories_under_randomised_response_have_one_error() -> None:
    """f̂₂ − f₂ = −(f̂₁ − f₁): the squared norm is twice a chi-square of one degree, not one of two."""
    dev = deviation(grr(1.0, 2).channel(), users=1000, probabilities=[0.5, 0.5])
    assert dev.mse_law.quantile(0.95) == pytest.approx(3.8414588 * float(dev.variance[0]), rel=1e-6)


def test_diagonals_are_the_variances() -> None:
    f = [0.5, 0.3, 0.15, 0.05]
    for table in (grr(1.0, 4).channel(), oue(1.0).channel(4)):
        dev = deviation(table, users=500, dims=5, sampled=2, probabilities=f)
        np.testing.assert_allclose(np.diag(dev.covariance), dev.variance, rtol=1e-9)
        assert dev.mse_law.mean == pytest.approx(dev.mse, rel=1e-9)


def test_the_shared_draw() -> None:
    assert shared_draw(100, 5, 5) == 0.0
    assert shared_draw(100, 5, 2) == pytest.approx(-3 / (100 * 2 * 4))
    assert shared_draw(100, 5, 1, even=False) == pytest.approx(-1 / 100)
    assert shared_draw(100, 5, 2, even=False) == 0.0


def test_a_common_correlation_and_its_matrix_are_one() -> None:
    law = mechanism("piecewise", epsilon=4.0)
    values = np.linspace(-1, 1, 50)
    matrix = np.full((4, 4), 0.5) + 0.5 * np.eye(4)
    one, other = (
        deviation(law, users=1000, dims=4, sampled=2, values=values, correlation=c) for c in (0.5, matrix)
    )
    assert one.mse_law.quantile(0.9) == pytest.approx(other.mse_law.quantile(0.9), rel=1e-9)
    assert one.mse_law.sd != deviation(law, users=1000, dims=4, sampled=2, values=values).mse_law.sd


@pytest.mark.parametrize("bad", [2.0, [[1.0]], [[1, 2], [2, 1]]])
def test_what_is_no_correlation(bad: object) -> None:
    with pytest.raises(InvalidInput, match="correlation"):
        deviation("duchi", epsilon=1.0, users=10, dims=2, correlation=bad, prior="uniform")


def test_inclusion_takes_the_place_of_m_over_d() -> None:
    """Every formula knows it: equal inclusion is m/d, unequal inclusion is each dimension's own."""
    law = mechanism("piecewise", epsilon=1.0)
    usual = deviation(law, users=1000, dims=4, sampled=1, prior="uniform")
    same = deviation(law, users=1000, dims=4, sampled=1, prior="uniform", inclusion=0.25)
    assert float(usual.variance) == float(same.variance)
    p = [0.4, 0.3, 0.2, 0.1]
    uneven = deviation(law, users=1000, dims=4, sampled=1, prior="uniform", inclusion=p)
    for j, share in enumerate(p):
        alone = deviation(law, users=1000, dims=4, sampled=1, prior="uniform", inclusion=share)
        assert uneven.variance[j] == pytest.approx(float(alone.variance), rel=1e-12)
    assert uneven.reports_per_dimension == pytest.approx(250)
    paper = deviation(law, users=1000, dims=4, prior="uniform", inclusion=0.1, variance_formula="paper")
    assert float(paper.variance) == pytest.approx(
        float(np.mean(law.variance(np.linspace(-1, 1, 9999)))) / 100, rel=1e-3
    )


@pytest.mark.parametrize("bad", [0.0, 1.5, [0.5, 0.5, 0.5], float("nan")])
def test_what_is_no_inclusion(bad: object) -> None:
    with pytest.raises(InvalidInput, match="inclusion"):
        deviation("duchi", epsilon=1.0, users=10, dims=2, inclusion=bad, prior="uniform")
