import math

import numpy as np
import pytest

from hdr4me.framework.normal import (
    L1_THRESHOLD,
    L2_THRESHOLD,
    log_probability_all_exceed,
    log_probability_some_exceed,
    probability_all_exceed,
    probability_some_exceed,
)


def test_counter_example_to_theorem_3() -> None:
    """θ = .9, σ = .45, d = 100, z = 3: the theorem promises ≥ 0.930, the proof's premise has no probability."""
    sd = np.full(100, 0.45)
    assert probability_some_exceed(0.0, sd, L1_THRESHOLD) == pytest.approx(0.930188, abs=5e-7)
    assert probability_all_exceed(0.0, sd, L1_THRESHOLD) < 1e-150
    # And the conclusion fails in truth: soft thresholding at 3σ with every θ = .9, 400 collections.
    rng = np.random.default_rng(20)
    estimate = 0.9 + 0.45 * rng.standard_normal((400, 100))
    enhanced = np.sign(estimate) * np.maximum(np.abs(estimate) - 3 * 0.45, 0.0)
    better = ((enhanced - 0.9) ** 2).sum(axis=1) < ((estimate - 0.9) ** 2).sum(axis=1)
    assert better.mean() == 0.0


def test_simulated_frequencies() -> None:
    """20,000 draws of three dimensions; bounds of 4.5 standard errors: false alarm below 2e-5."""
    bias, sd, n = np.array([0.0, 0.5, -1.0]), np.array([1.0, 2.0, 0.5]), 20_000
    x = bias + sd * np.random.default_rng(3).standard_normal((n, 3))
    beyond = np.abs(x) > L2_THRESHOLD / 2
    for seen, said in (
        (beyond.any(axis=1).mean(), probability_some_exceed(bias, sd, 1.0)),
        (beyond.all(axis=1).mean(), probability_all_exceed(bias, sd, 1.0)),
    ):
        assert seen == pytest.approx(said, abs=4.5 * math.sqrt(said * (1 - said) / n))


def test_counts_repeat_a_dimension() -> None:
    sd = np.array([0.3, 0.5])
    written_out = np.repeat(sd, [4, 7])
    for f in (probability_some_exceed, probability_all_exceed):
        assert f(0.0, sd, 1.0, counts=[4, 7]) == pytest.approx(f(0.0, written_out, 1.0), rel=1e-12)


def test_ten_thousand_dimensions_stay_finite() -> None:
    sd = np.full(10_000, 0.02)
    assert -2000 < log_probability_some_exceed(0.0, sd, 1.0) < -1200
    assert log_probability_all_exceed(0.0, sd, 1.0) < -1e7
    assert probability_some_exceed(0.0, np.full(10_000, 5.0), 1.0) == 1.0


def test_probabilities_near_zero_and_one() -> None:
    assert log_probability_some_exceed(0.0, 0.0, 1.0) == -math.inf
    assert probability_some_exceed(2.0, 0.0, 1.0) == 1.0
    assert probability_all_exceed([2.0, 0.0], 0.0, 1.0) == 0.0


def test_one_dimension_some_is_all() -> None:
    assert probability_some_exceed(0.1, 0.8, 1.0) == pytest.approx(
        probability_all_exceed(0.1, 0.8, 1.0), rel=1e-12
    )
