"""Shortcuts in distribution. All seeded; each Kolmogorov-Smirnov threshold is the one crossed once in 10^4."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hdr4me.kernels.simulate import aggregate
from hdr4me.kernels.simulate.aggregate import band_sums, laplace_noise_sums, uniform_sums

ALARM = 1e-4


@pytest.mark.parametrize("n", [1, 2, 30])
def test_laplace_sums_have_the_law_of_a_sum(n: int) -> None:
    rng = np.random.default_rng(n)
    quick = laplace_noise_sums(2.0, n, 20_000, rng)
    plain = rng.laplace(0, 2.0, (20_000, n)).sum(1)
    assert stats.ks_2samp(quick, plain).pvalue > ALARM
    if n == 1:
        assert stats.kstest(quick, stats.laplace(scale=2.0).cdf).pvalue > ALARM


@pytest.mark.no_cover
@pytest.mark.parametrize("n", [1, 2, 12])
def test_uniform_sums_have_the_irwin_hall_law(n: int) -> None:
    rng = np.random.default_rng(n)
    quick = uniform_sums(np.full(20_000, n), rng)
    assert stats.kstest(quick, stats.irwinhall(n).cdf).pvalue > ALARM
    assert quick.min() > 0
    assert quick.max() < n


def test_bands_are_bernoulli_samples() -> None:
    """Each row is met independently with the share's probability: binomial numbers, every row equally often."""
    n, d, share = 40, 30_000, 0.1
    rng = np.random.default_rng(5)
    powers = np.tile(2.0 ** np.arange(n), (d, 1)).T  # a sum of them says which rows were met
    sums, chosen = band_sums(powers, share, rng)
    met = (sums.astype(np.int64)[:, None] >> np.arange(n)) & 1
    assert (met.sum(1) == chosen).all()
    counts = np.bincount(chosen, minlength=n + 1)
    law = stats.binom(n, share).pmf(np.arange(n + 1)) * d
    keep = law > 5
    pooled = stats.chisquare([*counts[keep], counts[~keep].sum()], [*law[keep], law[~keep].sum()])
    assert pooled.pvalue > ALARM
    assert (
        stats.chisquare(met.sum(0)).pvalue > ALARM / 10
    )  # sampling without replacement is tighter than this
    pairs = (met[:, :-1] & met[:, 1:]).sum(0)
    assert abs(pairs.sum() - d * (n - 1) * share**2) < 5 * np.sqrt(d * (n - 1) * share**2)


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (1.0, 50), (1e-300, 0)])
def test_bands_at_the_ends(share: float, expected: int) -> None:
    sums, chosen = band_sums(np.ones((50, 3)), share, np.random.default_rng(1))
    assert chosen.tolist() == sums.tolist() == [expected] * 3


def test_no_users() -> None:
    assert band_sums(np.ones((0, 2)), 0.5, np.random.default_rng(1))[1].tolist() == [0, 0]


def test_starts_again_when_exponentials_run_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    # a hundredth of the required size
    monkeypatch.setattr(aggregate.np, "sqrt", lambda x: -0.099 * x)  # type: ignore[attr-defined]
    sums, chosen = band_sums(np.ones((10_000, 4)), 0.2, rng)
    assert (sums == chosen).all()
    assert abs(chosen.mean() - 2000) < 5 * 40
