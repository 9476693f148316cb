"""HDR4ME L1: one step, its weights, and where it increases the error."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

from hdr4me.recalibration import recalibrate
from hdr4me.recalibration.hdr4me import soft_threshold

X = np.array([3.0, 0.4, 0.0, -0.7, -2.5, 1.0])
WEIGHTS = np.array([1.0, 0.5, 0.3, 0.2, 4.0, 1.0])


def test_proximal_gradient_descent_arrives_in_one_step_from_anywhere() -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        theta = rng.normal(size=X.size) * 10
        for _ in range(3):  # θ ← prox(θ − ∇L(θ)), ∇L(θ) = θ − θ̂
            theta = soft_threshold(theta - (theta - X), WEIGHTS)
            # 1e-14: θ − (θ − θ̂) is θ̂ up to rounding.
            np.testing.assert_allclose(theta, soft_threshold(X, WEIGHTS), atol=1e-14)


def test_it_is_the_minimum_of_the_regularised_loss() -> None:
    for x, weight, found in zip(X, WEIGHTS, soft_threshold(X, WEIGHTS), strict=True):
        best = minimize_scalar(lambda t, x=x, w=weight: 0.5 * (t - x) ** 2 + w * abs(t), bounds=(-9, 9)).x
        assert found == pytest.approx(best, abs=1e-4)  # the minimiser's own tolerance


def test_weights_by_z_by_probability_and_simultaneous() -> None:
    s = np.array([0.1, 0.2, 0.4])
    np.testing.assert_allclose(recalibrate([0, 0, 0], s, "l1", z=3).weights, 3 * s)
    each = recalibrate([0, 0, 0], s, "l1", confidence=0.99).weights
    np.testing.assert_allclose(each, norm.ppf(0.995) * s, rtol=1e-12)
    every = recalibrate([0, 0, 0], s, "l1", confidence=0.99, simultaneous=True).weights
    np.testing.assert_allclose(every, norm.ppf(0.5 + 0.5 * 0.99 ** (1 / 3)) * s, rtol=1e-10)


def test_bias_is_added_to_the_weight() -> None:
    found = recalibrate([0.5, 0.5], [0.1, 0.1], "l1", z=1, bias=[-0.2, 0.1])
    np.testing.assert_allclose(found.weights, [0.3, 0.2])
    np.testing.assert_allclose(found.enhanced_mean, [0.2, 0.3])


@pytest.mark.parametrize(("z", "turning"), [(1, 1.28), (2, 1.05), (3, 1.006)])
def test_it_increases_the_error_where_the_signal_exceeds_the_noise(z: float, turning: float) -> None:
    def risk(theta: float) -> float:
        def loss(e: float) -> float:
            return float((soft_threshold(np.array(theta + e), np.array(z)) - theta) ** 2 * norm.pdf(e))

        return quad(loss, -12, 12, points=[-z - theta, z - theta], limit=200)[0]

    found = brentq(lambda theta: risk(theta) - 1, 0.5, 3)
    assert found == pytest.approx(turning, abs=0.005)  # the digits that are documented
