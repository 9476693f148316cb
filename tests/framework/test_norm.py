import math

import numpy as np
import pytest
from scipy.stats import chi, chi2, kstest, ncx2

from hdr4me.framework.norm import SquaredNorm

rng_seed = 77


def law(bias: list[float], sd: list[float], counts: list[float], **more: object) -> SquaredNorm:
    return SquaredNorm(np.array(bias), np.array(sd), np.array(counts), **more)  # type: ignore[arg-type]


def test_alike_and_unbiased_is_a_chi_square() -> None:
    d, σ = 50, 0.3
    mse = law([0.0], [σ], [d], scale=1 / d)
    assert mse.mean == pytest.approx(σ**2)
    assert mse.sd == pytest.approx(σ**2 * math.sqrt(2 / d))
    assert mse.quantile(0.9) == pytest.approx(σ**2 * chi2(d).ppf(0.9) / d, rel=1e-10)
    norm = law([0.0], [σ], [d], root=True)
    assert norm.mean == pytest.approx(σ * chi(d).mean(), rel=1e-11)
    assert norm.sd == pytest.approx(σ * chi(d).std(), rel=1e-8)
    assert norm.quantile(0.1) == pytest.approx(σ * chi(d).ppf(0.1), rel=1e-10)


def test_alike_and_biased_is_a_non_central_chi_square() -> None:
    X = law([0.5], [1.0], [20.0])
    assert X.cdf(30.0) == pytest.approx(ncx2(20, 5.0).cdf(30.0), abs=1e-10)
    assert X.mean == pytest.approx(25.0)
    assert X.sd == pytest.approx(ncx2(20, 5.0).std())


def test_inversion_against_the_chi_square() -> None:
    """The same law written as several unequal-looking classes takes Talbot's path: error below 1e-9."""
    X = law([0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [3.0, 1.0, 1.0])
    for x in (0.01, 1.0, 5.0, 15.0, 30.0):
        assert X.cdf(x) == pytest.approx(chi2(5).cdf(x), abs=1e-9)
    Y = law([0.5, 0.5], [1.0, 1.0], [10.0, 10.0])
    for x in (5.0, 25.0, 60.0):
        assert Y.cdf(x) == pytest.approx(ncx2(20, 5.0).cdf(x), abs=1e-9)


def test_saddlepoint_against_the_chi_square() -> None:
    """Where no dimension dominates the saddlepoint's error is below 1e-4 (d = 100 here: 1e-5)."""
    X = law([0.0, 0.0], [1.0, 1.0], [60.0, 40.0])
    for x in np.append(chi2(100).ppf([1e-5, 0.01, 0.3, 0.5, 0.9, 0.9999]), [100.0, 100.0 + 1e-4]):
        assert X.cdf(float(x)) == pytest.approx(chi2(100).cdf(x), abs=1e-5)


@pytest.mark.parametrize("d", [2, 7, 40, 300])
def test_unequal_dimensions_by_simulation(d: int) -> None:
    """Kolmogorov–Smirnov on 2,000 draws, false-alarm rate 1e-4; biased and unbiased dimensions mixed."""
    rng = np.random.default_rng(rng_seed + d)
    sd = rng.uniform(0.2, 2.0, d)
    bias = np.where(rng.random(d) < 0.5, 0.0, rng.normal(0, 0.5, d))
    draws = np.sqrt(((bias + sd * rng.standard_normal((2000, d))) ** 2).sum(axis=1))
    X = SquaredNorm(bias, sd, np.ones(d), root=True)
    assert kstest(draws, np.vectorize(X.cdf)).pvalue > 1e-4
    standard_error = X.sd / math.sqrt(2000)
    assert abs(draws.mean() - X.mean) < 4 * standard_error  # false alarm 6e-5
    assert X.cdf(X.quantile(0.95)) == pytest.approx(0.95, abs=1e-9)


def test_one_dominating_dimension_is_within_two_percent() -> None:
    """The stated worst of the saddlepoint: one dimension with nearly all of the variance among 200."""
    X = law([0.0, 0.0], [1.0, 1e-3], [1.0, 200.0])
    for p in (0.05, 0.25, 0.5, 0.75, 0.95, 0.99):
        assert X.cdf(float(chi2(1).ppf(p)) + 2e-4) == pytest.approx(p, abs=0.02)


def test_large_bias_takes_the_saddlepoint() -> None:
    X = law([9.0], [0.1], [10_000.0])
    z = (X.quantile(0.975) - X.mean) / X.sd
    assert z == pytest.approx(1.96, abs=0.01)


def test_no_noise_is_a_point() -> None:
    X = law([2.0], [0.0], [3.0])
    assert (X.mean, X.sd, X.cdf(11.9), X.cdf(12.1)) == (12.0, 0.0, 0.0, 1.0)
    nothing = law([0.0], [0.0], [3.0], root=True)
    assert (nothing.mean, nothing.sd, nothing.cdf(-1.0), nothing.cdf(0.0)) == (0.0, 0.0, 0.0, 1.0)
    part = law([2.0, 0.0], [0.0, 1.0], [3.0, 100.0])
    assert part.cdf(12.0) == 0.0
    assert part.cdf(112.0) == pytest.approx(chi2(100).cdf(100.0), abs=1e-4)


def test_ten_thousand_dimensions() -> None:
    rng = np.random.default_rng(5)
    X = SquaredNorm(np.zeros(10_000), rng.uniform(0.1, 0.2, 10_000), np.ones(10_000), 1e-4)
    assert X.quantile(0.5) == pytest.approx(X.mean, rel=1e-3)
    assert X.quantile(0.975) == pytest.approx(X.mean + 1.96 * X.sd, rel=2e-3)
