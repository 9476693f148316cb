"""Small cases that can be checked by hand, and the examples of the paper."""

import numpy as np
import pytest

from hdr4me.framework.moments import mean_inverse_count, widening
from hdr4me.framework.norm import SquaredNorm
from hdr4me.framework.normal import berry_esseen_bound, berry_esseen_printed, tolerance_for
from hdr4me.framework.small_samples import (
    Counts,
    category_interval,
    noise_reach,
    probability_within_small,
    ratio_interval,
    share_interval,
    skew_size,
    weighted_interval,
)

TABLE, DECODE = np.array([[0.75, 0.25], [0.25, 0.75]]), np.array([-2.0, 2.0])


def test_counts_and_moments() -> None:
    assert mean_inverse_count(2, 0.5) == pytest.approx((2 + 0.5) / 3, rel=1e-12)
    assert widening([0.0, 0.05, 0.2], 0.5, 10).round(2).tolist() == [1.0, 1.06, np.inf]
    mse = SquaredNorm(np.array([0.0]), np.array([1.0]), np.array([100.0]), scale=1 / 100)
    assert (mse.mean, round(mse.sd, 6), round(mse.quantile(0.95), 6)) == (1.0, 0.141421, 1.243421)


def test_normal_law() -> None:
    assert round(float(tolerance_for(1.0, 0.95, n=750)), 4) == 3.9818
    # The paper's example: Laplace with scale 2, r = 1000. True are ρ = 6λ³ and s² = 2λ²; the paper puts 3λ³ and s/r.
    assert f"{berry_esseen_bound(6 * 8.0, 2 * 4.0, 1000):.6%}" == "2.691215%"
    assert f"{berry_esseen_printed(3 * 8.0, 2**0.5 * 2.0 / 1000, 1000):.6%}" == "1.565780%"


def test_small_samples() -> None:
    assert round(float(probability_within_small(1.0, Counts(13, 1.0), 1.96 / 13**0.5)), 3) == 0.95
    low, high = share_interval(0, 20)
    assert (float(low), round(float(high), 4)) == (0.0, 0.1684)
    named = np.array([3.0, 60.0])
    found = [x.round(3).tolist() for x in category_interval(named, 100, 0.9, 0.05)]
    assert found == [[-0.051, 0.526], [0.041, 0.761]]
    found = [x.round(3).tolist() for x in category_interval(named, 100, 0.9, 0.05, all_answered=True)]
    assert found == [[0.0, 0.59], [0.02, 0.71]]


def test_means_of_small_samples() -> None:
    assert skew_size(TABLE, DECODE) == 4.0
    assert [round(x, 2) for x in noise_reach(TABLE, DECODE, 400, 0.95)] == [0.2, 0.2]
    found = [x.round(2).tolist() for x in weighted_interval([-2.0, 0.0, 2.0], [[10, 0, 30], [3, 34, 3]])]
    assert found == [[0.35, -0.31], [1.49, 0.31]]
    low, high = ratio_interval([-2.0, 2.0, 0.0], [1.0, 1.0, 0.0], [10, 20, 30])
    assert -1 <= low < 2 / 3 < high <= 1
