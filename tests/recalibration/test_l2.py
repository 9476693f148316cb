"""HDR4ME L2: one step, the choices of its reference, and where it increases the error."""

import numpy as np
import pytest

from hdr4me.errors import InvalidInput
from hdr4me.recalibration import recalibrate
from hdr4me.recalibration.hdr4me import shrink

X = np.array([3.0, 0.4, 0.0, -0.7])
WEIGHTS = np.array([1.0, 0.5, 0.3, 2.0])


def test_proximal_gradient_descent_arrives_in_one_step_from_anywhere() -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        theta = rng.normal(size=X.size) * 10
        for _ in range(3):
            theta = shrink(theta - (theta - X), WEIGHTS)
            np.testing.assert_allclose(theta, shrink(X, WEIGHTS), atol=1e-14)


def test_it_is_the_minimum_of_the_regularised_loss() -> None:
    found = shrink(X, WEIGHTS)
    np.testing.assert_allclose(found - X + 2 * WEIGHTS * found, 0, atol=1e-14)  # the gradient


def test_the_choices_of_the_reference() -> None:
    x, s = [0.5, -0.25], [0.1, 0.2]
    by = {
        name: recalibrate(x, s, "l2", z=1, reference=name).enhanced_mean
        for name in ("domain", "bias", "plug-in")
    }
    np.testing.assert_allclose(by["domain"], [0.5 / 1.1, -0.25 / 1.2])
    np.testing.assert_array_equal(by["bias"], [0, 0])  # an unbiased mechanism has reference 0
    np.testing.assert_allclose(by["plug-in"], [0.5 / 1.2, -0.25 / 1.8])
    given = recalibrate(x, s, "l2", z=1, reference=[0.2, 0.1]).enhanced_mean
    np.testing.assert_allclose(given, [0.5 / 1.5, -0.25 / 3])


def test_the_bias_enters_weight_and_reference() -> None:
    found = recalibrate([0.5], [0.1], "l2", z=1, bias=[-0.2], reference="bias")
    assert found.weights is not None
    np.testing.assert_allclose(found.weights, 0.3 / 0.4)
    np.testing.assert_allclose(found.enhanced_mean, 0.5 / 2.5)


@pytest.mark.parametrize("z", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("sigma", [0.05, 0.3, 1.0])
def test_with_the_domain_as_reference_it_increases_the_error_beyond_the_documented_signal(
    z: float, sigma: float
) -> None:
    def risk(theta: float) -> float:  # (σ² + (zσθ)²)/(1 + zσ)²
        factor = 1 / (1 + z * sigma)
        assert shrink(np.array([1.0]), np.array([z * sigma / 2]))[0] == pytest.approx(factor)
        return factor**2 * sigma**2 + (1 - factor) ** 2 * theta**2

    turning = np.sqrt(2 * sigma / z + sigma**2)
    assert risk(1.001 * turning) > sigma**2 > risk(0.999 * turning)


def test_refusals_by_name() -> None:
    with pytest.raises(InvalidInput, match="reference = 'mean'"):
        recalibrate([0.1], [0.1], "l2", reference="mean")
    with pytest.raises(InvalidInput, match="reference has 2 elements"):
        recalibrate([0.1], [0.1], "l2", reference=[1, 2])
