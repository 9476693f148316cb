import mpmath
import numpy as np
import pytest

from hdr4me.framework.normal import (
    joint_tolerance,
    log_probability_exceed,
    log_probability_within,
    tolerance_for,
)

CASES = [
    (0.0, 1.0, 1.0),
    (0.0, 23.0, 1e-9),
    (-0.049975, 0.0057708, 0.001),
    (0.3, 0.1, 0.05),
    (5.0, 1.0, 1e-4),
    (40.0, 1.0, 2.0),
    (0.0, 1.0, 9.0),
    (0.9, 1e-3, 1.0),
    (2.0, 1.0, 1e-3),
    (-3.0, 0.7, 50.0),
]


def reference(bias: float, sd: float, tolerance: float) -> tuple[mpmath.mpf, mpmath.mpf]:
    """(within, exceed), to 400 digits so that no difference cancels."""
    with mpmath.workdps(400):
        δ, σ, ξ = (mpmath.mpf(x) for x in (bias, sd, tolerance))
        exceed = mpmath.ncdf((δ - ξ) / σ) + mpmath.ncdf((-δ - ξ) / σ)
        return mpmath.log(1 - exceed), mpmath.log(exceed)


@pytest.mark.parametrize(("bias", "sd", "tolerance"), CASES)
def test_within_matches_high_precision(bias: float, sd: float, tolerance: float) -> None:
    # 1e-9 absolute in the log = 9 correct digits of the probability; cancellation costs at most that at the
    # edge of the midpoint rule.
    within, exceed = reference(bias, sd, tolerance)
    assert float(log_probability_within(bias, sd, tolerance)) == pytest.approx(
        float(within), rel=1e-11, abs=1e-9
    )
    assert float(log_probability_exceed(bias, sd, tolerance)) == pytest.approx(
        float(exceed), rel=1e-11, abs=1e-12
    )


def test_point_mass_and_degenerate_tolerances() -> None:
    assert log_probability_within([0.1, 0.3], 0.0, 0.2).tolist() == [0.0, -np.inf]
    assert log_probability_exceed([0.1, 0.3], 0.0, 0.2).tolist() == [-np.inf, 0.0]
    assert float(log_probability_within(0.0, 1.0, 0.0)) == -np.inf
    assert float(log_probability_within(0.0, 0.0, 0.0)) == 0.0
    assert float(log_probability_within(0.0, 1.0, np.inf)) == 0.0
    assert float(log_probability_within(0.0, 1.0, -1.0)) == -np.inf
    assert float(log_probability_exceed(0.0, 1.0, -1.0)) == 0.0


def test_broadcasting() -> None:
    grid = log_probability_within(np.zeros((3, 1)), 1.0, [0.5, 1.0])
    assert grid.shape == (3, 2)


@pytest.mark.parametrize("n", [1, 2, 750, 10_000])
@pytest.mark.parametrize("probability", [0.05, 0.5, 0.95, 0.999])
def test_tolerance_inverts_the_joint_probability(n: int, probability: float) -> None:
    ξ = float(tolerance_for(2.0, probability, n=n))
    assert n * float(log_probability_within(0.0, 2.0, ξ)) == pytest.approx(np.log(probability), rel=1e-9)
    assert joint_tolerance(0.0, 2.0, n, probability) == pytest.approx(ξ, rel=1e-9)


def test_joint_tolerance_with_biases_and_counts() -> None:
    bias, sd, counts = np.array([0.0, 0.5]), np.array([1.0, 0.1]), np.array([3, 2])
    ξ = joint_tolerance(bias, sd, counts, 0.9)
    joint = float(np.sum(counts * log_probability_within(bias, sd, ξ)))
    assert joint == pytest.approx(np.log(0.9), rel=1e-9)
    assert joint_tolerance(0.0, 0.0, 5, 0.9) == 0.0  # no noise, no tolerance needed
    assert joint_tolerance([0.0, 0.0], [0.0, 0.0], [5, 2], 0.9) == 0.0
    assert joint_tolerance([0.3, 0.0], [0.0, 0.0], 1, 0.9) == pytest.approx(0.3, rel=1e-9)


def test_joint_tolerance_of_unequal_classes() -> None:
    sd, counts = np.array([1.0, 0.2, 1e-6]), np.array([2, 500, 7])
    ξ = joint_tolerance(0.0, sd, counts, 0.9)
    assert float(np.sum(counts * log_probability_within(0.0, sd, ξ))) == pytest.approx(np.log(0.9), rel=1e-9)
    dominated = joint_tolerance(0.0, [1.0, 1e-9], [2, 500], 0.9)
    assert dominated == pytest.approx(float(tolerance_for(1.0, 0.9, n=2)), rel=1e-11)
