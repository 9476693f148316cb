"""The accuracy of discretizations; their privacy and unbiasedness are tested by the contracts."""

from __future__ import annotations

import numpy as np
import pytest

from hdr4me.errors import InvalidInput
from hdr4me.mechanisms import mechanism
from hdr4me.mechanisms.discretize import discretized
from hdr4me.mechanisms.law import Calibration, Mechanism

T = np.linspace(-1, 1, 101)


def continuous_variance(law: Mechanism) -> np.ndarray:
    """Of the calibrated report on [-1, 1]."""
    low, high = law.domain
    scale = 2 / (high - low) / law.calibration.slope
    return scale**2 * law.variance(low + (T + 1) / 2 * (high - low))


# (name, options, lowest ε, highest ε, largest relative difference of the variance at any input)
CLOSE = [
    ("duchi", {}, 1e-3, 8.0, 1e-4),
    ("piecewise", {}, 1e-3, 8.0, 0.006),
    ("hybrid", {}, 1e-3, 8.0, 0.006),
    ("square_wave", {}, 1e-3, 6.0, 0.004),
    ("square_wave", {"domain": (-1.0, 1.0)}, 1e-3, 6.0, 0.004),
    ("laplace", {}, 1e-3, 30.0, 0.01),
    ("scdf", {}, 1e-3, 8.0, 0.02),
    ("staircase", {}, 1e-3, 8.0, 0.02),
    ("staircase", {"variant": "variance"}, 1e-3, 8.0, 0.02),
]


@pytest.mark.parametrize(("name", "options", "low", "high", "tolerance"), CLOSE)
def test_variance_is_the_continuous_mechanisms(name, options, low, high, tolerance):
    for epsilon in np.geomspace(low, high, 9):
        law = mechanism(name, epsilon=float(epsilon), **options)
        ratio = law.exact().variance(T) / continuous_variance(law)
        assert np.abs(ratio - 1).max() < tolerance, epsilon


@pytest.mark.parametrize(
    "name", ["laplace", "scdf", "staircase", "piecewise", "square_wave", "hybrid", "duchi"]
)
@pytest.mark.parametrize("epsilon", [1e-8, 1e-7, 1e-6, 1e-5])
def test_tiny_budgets_cost_little_more(name, epsilon):
    # 32 bits: at 1e-8 Duchi's weights differ by 20 units where 21.5 would be right, (21.5/20)² = 1.153
    law = mechanism(name, epsilon=epsilon)
    worst = law.exact().max_variance() / continuous_variance(law).max()
    assert worst < (1.16 if epsilon == 1e-8 else 1.06)


@pytest.mark.parametrize("name", ["laplace", "scdf", "staircase", "piecewise", "square_wave", "hybrid"])
def test_huge_budgets_leave_the_rounding_to_256_levels(name):
    table = mechanism(name, epsilon=5000.0).exact()
    assert table.n_levels >= 254
    assert table.max_variance() < 1.05 / 253**2


@pytest.mark.parametrize("name", ["duchi", "laplace", "piecewise", "hybrid"])
def test_refuses_budgets_below_the_bits(name):
    with pytest.raises(InvalidInput, match="epsilon = 1e-10"):
        mechanism(name, epsilon=1e-10).exact()


def test_hybrid_is_two_tables_side_by_side():
    table = mechanism("hybrid", epsilon=2.0).exact()
    piecewise, duchi = table.weights[:, :-2], table.weights[:, -2:]
    shares = piecewise.sum(axis=1)
    assert (shares == shares[0]).all()
    assert shares[0] / 2**32 == pytest.approx(1 - np.exp(-1.0), abs=1e-9)  # 32 bits
    for part, decode in ((piecewise, table.decode[:-2]), (duchi, table.decode[-2:])):
        assert part @ decode / part.sum(axis=1) == pytest.approx(table.levels, abs=1e-12)


def test_hybrid_is_duchi_below_its_threshold_and_a_window_at_huge_budgets():
    assert mechanism("hybrid", epsilon=0.5).exact().n_cells == 2
    assert mechanism("hybrid", epsilon=100.0).exact().n_cells == 254


def test_a_table_is_its_own_discretization():
    table = mechanism("duchi", epsilon=1.0).exact()
    assert discretized(table) is table


def test_unknown_mechanisms_have_no_discretization():
    class Strange(Mechanism):
        name = "strange"
        epsilon = 1.0
        calibration = Calibration(1.0, 0.0)
        support = (0.0, 1.0)

        def variance(self, t):
            raise NotImplementedError

        abs_third_moment = density = sample = variance

        def cdf(self, x, t):
            raise NotImplementedError

    with pytest.raises(InvalidInput, match="strange"):
        discretized(Strange())
