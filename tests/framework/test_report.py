"""The variance of one report: over a prior, and at its largest."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hdr4me.errors import InvalidInput
from hdr4me.framework.em import prior_from_counts
from hdr4me.framework.laws import largest_variance, mean_variance, peaks
from hdr4me.mechanisms import mechanism
from hdr4me.mechanisms.priors import as_prior


@pytest.mark.parametrize("name", ["duchi", "piecewise", "hybrid", "three_outputs", "laplace", "pm_sub"])
def test_the_mean_over_the_uniform_prior(name: str) -> None:
    """Against a grid of 20,001 points, to 1e-6: the kink of Three-outputs at 0 is met."""
    law = mechanism(name, epsilon=1.3)
    grid = np.linspace(-1, 1, 20_001)
    fine = float(np.trapezoid(law.variance(grid), grid) / 2)
    assert mean_variance(law, as_prior("uniform")) == pytest.approx(fine, rel=1e-6)


def test_the_mean_over_a_prior_of_ones_own() -> None:
    law, prior = mechanism("piecewise", epsilon=2.0), as_prior(stats.norm(0.2, 0.1))
    s = np.exp(1.0)
    expected = prior.mean_square / (s - 1) + (s + 3) / (3 * (s - 1) ** 2)
    assert mean_variance(law, prior) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("factor", [0.0, 0.5, 0.9, 1.0])
def test_a_tables_peaks_lie_between_its_levels(factor: float) -> None:
    """Against a fine grid: the largest Var + κt² is met to 1e-4, where the levels alone miss it."""
    table = mechanism("piecewise", epsilon=16.0).exact()
    fine = np.linspace(-1, 1, 40_001)
    expected = float((table.variance(fine) + factor * fine**2).max())
    assert float(largest_variance(table, factor)[0]) == pytest.approx(expected, rel=1e-4)
    if factor == 0:
        assert table.variance(table.levels).max() < 0.95 * expected
        assert peaks(table, 0.0).size > table.n_levels


def test_counts_that_make_no_prior() -> None:
    for bad in ([0, 0], [1, 2, 3], [-1, 2]):
        with pytest.raises(InvalidInput, match="counts"):
            prior_from_counts([[0.75, 0.25], [0.25, 0.75]], bad)
