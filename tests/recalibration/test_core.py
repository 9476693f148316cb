"""`recalibrate`: accepted and refused inputs, and what all methods have in common."""

import numpy as np
import pytest

import hdr4me as hd
from hdr4me.errors import InvalidInput
from hdr4me.recalibration import METHODS, recalibrate


@pytest.mark.parametrize("method", METHODS)
def test_lists_arrays_and_a_common_standard_error(method: str) -> None:
    x = [0.2, -0.1, 0.9, 0.0, 0.3]
    one = recalibrate(x, 0.1, method).enhanced_mean
    two = recalibrate(np.array(x), [0.1] * 5, method).enhanced_mean
    np.testing.assert_array_equal(one, two)
    assert one.shape == (5,)


@pytest.mark.parametrize("method", METHODS)
def test_what_is_known_exactly_is_returned_as_it_is(method: str) -> None:
    found = recalibrate([0.5, 1.7, -0.3, 0.2], [0.0, 0.0, 0.4, 0.5], method)
    np.testing.assert_array_equal(found.enhanced_mean[:2], [0.5, 1.7])
    low, high = found.interval(0.9)
    np.testing.assert_array_equal(low[:2], high[:2])
    assert (found.interval(0.9)[0][2:] < found.interval(0.9)[1][2:]).all()


@pytest.mark.parametrize("method", METHODS)
def test_everything_known_exactly(method: str) -> None:
    found = recalibrate([0.5, -0.2], [0, 0], method)
    np.testing.assert_array_equal(found.enhanced_mean, [0.5, -0.2])
    assert found.error_ratio == 1.0
    assert found.expected_error_after == 0


@pytest.mark.no_cover
@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_dimensions_does_not_matter_to_the_last_bit(method: str) -> None:
    rng = np.random.default_rng(3)
    for s in (np.full(60, 0.1), rng.uniform(0.005, 0.5, 60)):
        x = np.where(rng.random(60) < 0.2, 0.6, 0.0) + s * rng.normal(size=60)
        x[10], s[10] = x[20], s[20]
        order = rng.permutation(60)
        one, two = recalibrate(x, s, method), recalibrate(x[order], s[order], method)
        np.testing.assert_array_equal(two.enhanced_mean, one.enhanced_mean[order])
        np.testing.assert_allclose(two.interval()[0], one.interval()[0][order], rtol=0, atol=1e-15)
        again = recalibrate(x, s, method)
        np.testing.assert_array_equal(again.enhanced_mean, one.enhanced_mean)


@pytest.mark.no_cover
def test_many_unequal_dimensions_are_order_free_too() -> None:
    rng = np.random.default_rng(4)
    s = 10 ** rng.uniform(-3, 1, 6000)
    x = np.clip(rng.normal(0, 0.4, 6000), -1, 1) + s * rng.normal(size=6000)
    order = rng.permutation(6000)
    one, two = recalibrate(x, s), recalibrate(x[order], s[order])
    np.testing.assert_array_equal(two.enhanced_mean, one.enhanced_mean[order])


@pytest.mark.parametrize(
    ("means", "errors", "options", "message"),
    [
        ([0.1, np.nan], [1, 1], {}, r"means\[1\] = nan"),
        ([0.1, np.inf], [1, 1], {}, r"means\[1\] = inf"),
        ([0.1], [np.nan], {}, r"standard_errors\[0\] = nan"),
        ([0.1, 0.2], [1, -1], {}, r"standard_errors\[1\] = -1.0"),
        ([0.1, 0.2], [1], {}, "standard_errors has 1 elements but means has 2"),
        ([0.1], [1], {"bias": [1, 2]}, "bias has 2 elements"),
        ([0.1], [1], {"bias": [np.nan]}, r"bias\[0\] = nan"),
        ([0.1], [1], {"slope": 0.0}, r"slope\[0\] = 0"),
        ([], [], {}, "means has shape"),
        ([[0.1]], [1], {}, "means has shape"),
        (["a"], [1], {}, "means is not an array of numbers"),
        ([0.1], [1], {"domain": (1, -1)}, "domain = "),
        ([0.1], [1], {"domain": 3}, "domain = 3"),
        ([0.1], [1], {"method": "ridge"}, "method = 'ridge' is not allowed"),
        ([0.1], [1], {"z": 2}, "option 'z' is not allowed for method 'auto'"),
        ([0.1], [1], {"method": "l1", "z": -1}, "z = -1"),
        ([0.1], [1], {"method": "l1", "confidence": 1.0}, "confidence = 1.0"),
        ([0.1], [1], {"method": "james_stein", "towards": "one"}, "towards = 'one'"),
    ],
)
def test_refusals_by_name(means: object, errors: object, options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        recalibrate(means, errors, **options)  # type: ignore[arg-type]


def test_the_confidence_of_an_interval_is_checked() -> None:
    with pytest.raises(InvalidInput, match="confidence = 2"):
        recalibrate([0.1], [1.0]).interval(2)


def test_the_public_name() -> None:
    """`hd.recalibrate` is this room once it is imported, the function before: both can be called."""
    found = hd.recalibrate([3.0, 0.2], [1, 1], method="clip")
    assert found.enhanced_mean.tolist() == [1, 0.2]


def test_the_guarantee_names_some_and_all_apart() -> None:
    # The counter-example: θ = 0.9, σ = 0.45, d = 100, z = 3. The theorem states 0.930; L1 never reduces the error.
    rng = np.random.default_rng(5)
    theta, s = np.full(100, 0.9), np.full(100, 0.45)
    found = recalibrate(theta, s, "l1", z=3)
    assert found.guarantee is not None
    assert found.guarantee.probability_some == pytest.approx(0.930188, abs=1e-6)
    assert found.guarantee.probability_all < 1e-150
    assert "needed by its proof" in str(found.guarantee)
    wins = 0
    for _ in range(200):
        x = theta + s * rng.normal(size=100)
        better = np.sign(x) * np.maximum(np.abs(x) - 3 * s, 0)
        wins += np.sum((better - theta) ** 2) < np.sum((x - theta) ** 2)
    assert wins == 0  # with probability 0.93 of helping this fails to happen with 0.07^200
    two = recalibrate(theta, 3 * s, "l2").guarantee
    assert two is not None
    assert two.threshold == 2
    assert recalibrate(theta, s, "clip").guarantee is None


def test_bias_and_slope_are_undone() -> None:
    theta = np.linspace(-0.8, 0.8, 60)
    for method in ("auto", "bayes", "sure", "clip", "james_stein"):
        plain = recalibrate(theta, np.full(60, 0.01), method).enhanced_mean
        skew = recalibrate(0.25 * theta + 0.1, np.full(60, 0.0025), method, slope=0.25, bias=0.1)
        np.testing.assert_allclose(skew.enhanced_mean, plain, atol=1e-9)  # rounding of the affine map


def test_the_trivial_baselines() -> None:
    assert recalibrate([3.0, 0.2], [1, 1], "zeros").enhanced_mean.tolist() == [0, 0]
    assert recalibrate([3.0, 0.2], [1, 1], "clip").enhanced_mean.tolist() == [1, 0.2]
    assert recalibrate([3.0, 0.2], [1, 1], "none").enhanced_mean.tolist() == [3, 0.2]
    assert recalibrate([3.0, 0.2], [1, 1], "clip", domain=(0, 2)).enhanced_mean.tolist() == [2, 0.2]
