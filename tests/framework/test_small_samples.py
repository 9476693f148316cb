"""Intervals for few reports: kept at least as often as they say, measured with seeds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from hdr4me.errors import InvalidInput
from hdr4me.framework.small_samples import mean_interval, share_interval, small_sample_interval
from hdr4me.mechanisms import mechanism


@pytest.mark.parametrize("p", [0.02, 0.3, 0.5])
@pytest.mark.parametrize("n", [5, 50])
def test_a_shares_interval_is_exact(n: int, p: float) -> None:
    """Coverage by enumeration: at least 95 %."""
    k = np.arange(n + 1)
    low, high = share_interval(k, n)
    kept = (low <= p) & (p <= high)
    assert binom.pmf(k, n, p)[kept].sum() >= 0.95
    assert low[0] == 0.0
    assert high[-1] == 1.0


@pytest.mark.parametrize(("name", "epsilon"), [("piecewise", 1.0), ("piecewise", 4.0), ("duchi", 1.0)])
def test_fifty_reports_of_skewed_values(name: str, epsilon: float) -> None:
    """50 reports, 5 % of the users at the far end: kept in at least 95 % of 60 seeded runs, less 3.5 standard errors.

    Mean ± 1.96 standard errors is kept in about 91 %.
    """
    table, rng = mechanism(name, epsilon=epsilon).exact(), np.random.default_rng(6)
    runs, n = 60, 50
    kept = 0
    for _ in range(runs):
        codes = table.sample_cells(np.where(rng.random(n) < 0.05, 1.0, -1.0), rng)
        low, high = small_sample_interval(table.decode, np.bincount(codes, minlength=table.n_cells))
        kept += low <= -0.9 <= high
    assert kept / runs >= 0.95 - 3.5 * (0.05 * 0.95 / runs) ** 0.5


def test_more_reports_and_less_spread_make_it_narrower() -> None:
    y = np.linspace(-2, 2, 9)
    few, many = (mean_interval(y, np.bincount([3, 4, 5], minlength=9) * k) for k in (5, 50))
    wide = mean_interval(y, np.bincount([0, 4, 8], minlength=9) * 50)
    assert few[1] - few[0] > many[1] - many[0]
    assert wide[1] - wide[0] > 1.5 * (many[1] - many[0])
    loose = mean_interval(y, np.bincount([3, 4, 5], minlength=9) * 5, level=0.5)
    assert loose[1] - loose[0] < few[1] - few[0]


def test_ends_and_errors() -> None:
    assert mean_interval([1.0, 1.0], [3, 4]) == (1.0, 1.0)
    assert small_sample_interval([-2.0, 0.0, 2.0], [0, 0, 0]) == (-2.0, 2.0)
    with pytest.raises(InvalidInput, match="counts"):
        small_sample_interval([-1.0, 1.0], [1, 2, 3])
    with pytest.raises(InvalidInput, match="level"):
        small_sample_interval([-1.0, 1.0], [1, 2], level=1.0)
