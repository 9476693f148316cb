"""Small-sample intervals have at least their nominal coverage; draws are seeded."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, norm

from hdr4me.errors import InvalidInput
from hdr4me.framework.small_samples import (
    SMALL_SAMPLE,
    Counts,
    share_interval,
    tolerance_within,
    weighted_interval,
)
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
        low, high = weighted_interval(table.decode, np.bincount(codes, minlength=table.n_cells))
        kept += bool(low[0] <= -0.9 <= high[0])
    assert kept / runs >= 0.95 - 3.5 * (0.05 * 0.95 / runs) ** 0.5


def test_from_a_hundred_expected_reports_on_a_tolerance_by_the_normal_law_is_within_one_per_cent() -> None:
    """Below, a tolerance for 99 % that ignores the random number of reports is more than one per cent too small."""

    def excess(mean: float) -> float:
        exact = tolerance_within(np.ones(1), [1], Counts(int(100 * mean), 0.01), 0.99)
        return float(exact * np.sqrt(mean) / norm.isf(0.005) - 1.0)

    assert excess(SMALL_SAMPLE) < 0.01 < excess(0.9 * SMALL_SAMPLE)
    assert [Counts(users, 0.01).small_sample for users in (9_900, 10_000)] == [True, False]


def test_a_level_is_a_probability() -> None:
    with pytest.raises(InvalidInput, match="confidence"):
        share_interval(1, 2, confidence=1.0)
