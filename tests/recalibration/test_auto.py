"""`auto` does not increase the error, and the advice reports methods that do."""

import numpy as np
import pytest

from hdr4me.recalibration import recalibrate


def _errors(theta: np.ndarray, sigma: float, method: str, repeats: int, seed: int) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    before = after = 0.0
    for _ in range(repeats):
        x = theta + sigma * rng.normal(size=theta.size)
        found = recalibrate(x, np.full(theta.size, sigma), method).enhanced_mean
        before += np.mean((x - theta) ** 2) / repeats
        after += np.mean((found - theta) ** 2) / repeats
    return before, after


@pytest.mark.no_cover
@pytest.mark.parametrize("dims", [2, 5, 20, 60])
@pytest.mark.parametrize("signal", [0.0, 1.0, 2.0, 4.0])
def test_auto_does_not_increase_the_error_at_any_number_of_dimensions(dims: int, signal: float) -> None:
    """The worst case for shrinkage to zero: all means at the same few standard errors; seeded, so no false alarm.

    1.05 leaves room for 15 repeats; the benchmark holds 1.02 with hundreds.
    """
    sigma = 0.1
    before, after = _errors(np.full(dims, signal * sigma), sigma, "auto", 15, dims)
    assert after <= 1.05 * before


def test_noise_that_drowns_everything_leaves_zero() -> None:
    before, after = _errors(np.zeros(200), 20.0, "auto", 5, 1)
    assert after < 1e-4 < before


def test_two_clusters_are_found() -> None:
    theta = np.where(np.arange(200) % 3 == 0, 0.6, -0.3)
    before, after = _errors(theta, 0.1, "auto", 10, 2)
    assert after < 0.1 * before  # the oracle has none; 0.025 to 0.036 over four seeds


def test_a_rule_is_chosen_only_if_it_is_significantly_better() -> None:
    for alike in ([0.3], [0.3, 0.3], [0.3, 0.3, 0.3]):  # nothing to learn from so few, however alike
        small_sample = recalibrate(alike, 0.1)
        assert (small_sample.used, small_sample.share) == ("clip", 1.0)
    rng = np.random.default_rng(8)
    theta = rng.uniform(-0.9, 0.9, 100)
    assert recalibrate(theta + 0.001 * rng.normal(size=100), 0.001).error_ratio <= 1
    many = recalibrate(np.full(100, 0.3) + 0.1 * rng.normal(size=100), 0.1)
    assert (many.used, many.share) == ("bayes", 1.0)


@pytest.mark.parametrize(("method", "options"), [("l1", {"z": 3.0}), ("l2", {"z": 3.0}), ("zeros", {})])
def test_the_advice_reports_an_increase_of_the_error(method: str, options: dict[str, float]) -> None:
    rng = np.random.default_rng(3)
    theta = rng.uniform(-0.9, 0.9, 300)
    x = theta + 0.02 * rng.normal(size=300)
    found = recalibrate(x, np.full(300, 0.02), method, **options)
    expected = found.error_ratio
    real = np.mean((found.enhanced_mean - theta) ** 2) / np.mean((x - theta) ** 2)
    assert "increases the error" in found.advice
    assert f"{expected:.1f} times as large" in found.advice
    assert expected == pytest.approx(real, rel=0.25)  # one seeded draw of 300 squared errors: sd about 8 %
    assert found.signal_share > 0.9


def test_the_advice_reports_a_decrease_of_the_error() -> None:
    rng = np.random.default_rng(4)
    x = 3 * rng.normal(size=200)
    found = recalibrate(x, np.full(200, 3.0))
    assert "increases the error" not in found.advice
    assert found.advice.startswith("Hierarchical Bayes (no mean differs significantly from zero")
    assert found.signal_share < 0.05
    assert found.error_ratio < 0.2
    shrunk = recalibrate(x, np.full(200, 3.0), "james_stein").advice
    assert shrunk.startswith("James–Stein shrinkage: expected error")


def test_advice_offers_auto_where_a_method_helps_less() -> None:
    rng = np.random.default_rng(5)
    theta = np.where(np.arange(200) % 2 == 0, 0.5, -0.5)
    found = recalibrate(theta + 0.1 * rng.normal(size=200), np.full(200, 0.1), "clip")
    assert "with auto it is" in found.advice
    assert "increases the error" not in found.advice


@pytest.mark.parametrize(
    ("means", "sigma"),
    [
        ([0.5, 0.2], 0.1),
        ([0.5, 0.2, -0.7], 0.1),
        ([1.4, 0.2], 0.3),
        (np.linspace(-0.9, 0.9, 20), 0.05),
        (np.linspace(-0.9, 0.9, 20), np.linspace(0.01, 0.2, 20)),
        (np.linspace(-0.9, 0.9, 60), 0.02),
        (np.full(10, 0.3), 5.0),
    ],
)
def test_the_advice_of_auto_does_not_recommend_another_method(means: list[float], sigma: float) -> None:
    found = recalibrate(means, sigma)
    assert "increases the error" not in found.advice
    assert "with auto it is" not in found.advice
    assert found.error_ratio <= 1 + 1e-12  # rounding of a mean


@pytest.mark.parametrize("method", ["auto", "clip", "none", "james_stein"])
def test_where_nothing_moved_the_error_is_what_it_was(method: str) -> None:
    """James–Stein changes nothing below three dimensions."""
    found = recalibrate([0.5, 0.2], [0.1, 0.3], method)
    np.testing.assert_array_equal(found.enhanced_mean, [0.5, 0.2])
    assert found.expected_error_after == pytest.approx(found.expected_error_before, rel=1e-5)
    assert "increases the error" not in found.advice


def test_what_auto_would_give_is_what_auto_gives() -> None:
    x = np.linspace(-0.9, 0.9, 20)
    given = recalibrate(x, 0.05).expected_error_after
    assert f"with auto it is {given:.3g}" in recalibrate(x, 0.05, "zeros").advice


def test_the_advice_reports_the_gain_of_clipping() -> None:
    found = recalibrate([3.0, 0.2], [1.0, 1.0], "clip")
    assert found.error_ratio <= 1
    assert found.standard_error is not None
    np.testing.assert_array_equal(found.standard_error, [np.nan, 1.0])
