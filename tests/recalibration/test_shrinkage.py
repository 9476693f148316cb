"""James–Stein and SURE against their definitions."""

import numpy as np
import pytest

from hdr4me.recalibration.hdr4me import soft_threshold
from hdr4me.recalibration.shrinkage import james_stein, sure_threshold


def test_equal_errors_give_the_textbook_james_stein() -> None:
    x = np.random.default_rng(0).normal(0.3, 1.5, 20)
    factor = 1 - 18 * 0.49 / np.sum(x**2)
    np.testing.assert_allclose(james_stein(x, np.full(20, 0.7), towards_mean=False), factor * x, rtol=1e-9)
    c = x.mean()
    factor = 1 - 17 * 0.49 / np.sum((x - c) ** 2)
    expected = c + factor * (x - c)
    np.testing.assert_allclose(james_stein(x, np.full(20, 0.7), towards_mean=True), expected, rtol=1e-9)


def test_the_positive_part() -> None:
    x = np.array([0.1, -0.1, 0.05, 0.0, 0.02])
    np.testing.assert_array_equal(james_stein(x, np.ones(5), towards_mean=False), np.zeros(5))
    np.testing.assert_allclose(james_stein(x, np.ones(5), towards_mean=True), x.mean())


@pytest.mark.parametrize(("n", "towards_mean"), [(1, False), (2, False), (3, True)])
def test_too_few_dimensions_are_left_alone(n: int, towards_mean: bool) -> None:
    x = np.arange(1.0, n + 1)
    np.testing.assert_array_equal(james_stein(x, np.ones(n), towards_mean=towards_mean), x)


def test_unequal_errors_shrink_the_noisier_more_and_help() -> None:
    rng = np.random.default_rng(1)
    s = np.repeat([0.1, 1.0], 100)
    theta = rng.normal(0.5, 0.3, 200)
    gain = []
    for _ in range(50):
        x = theta + s * rng.normal(size=200)
        found = james_stein(x, s, towards_mean=True)
        moved = np.abs(found - x) / np.abs(x - 0.5)
        assert np.median(moved[:100]) < 0.3 < np.median(moved[100:])
        gain.append(np.mean((found - theta) ** 2) / np.mean((x - theta) ** 2))
    # 0.086 to 0.094 over three seeds, standard error 0.002: 0.3 is a hundred of them away.
    assert np.mean(gain) < 0.3


def test_sure_tries_every_threshold() -> None:
    rng = np.random.default_rng(2)
    s = rng.uniform(0.5, 2, 40)
    x = rng.normal(0, 2, 40) * s

    def risk(t: float) -> float:
        z = np.abs(x / s)
        return float(np.sum(s**2 * (1 - 2 * (z <= t) + np.minimum(z, t) ** 2)))

    found = sure_threshold(x, s)
    grid = np.append(np.linspace(0, np.sqrt(2 * np.log(40)), 4001), found)
    assert risk(found) <= min(map(risk, grid)) + 1e-9  # rounding of a sum of 40 terms


def test_sure_is_unbiased_for_the_error() -> None:
    # Mean of 4000 repeats, standard error about 0.25 of a total near 40; 5 of them: false alarm 6e-7.
    rng = np.random.default_rng(3)
    theta, t = np.repeat([0.0, 3.0], [40, 10]), 1.2
    difference = []
    for _ in range(4000):
        x = theta + rng.normal(size=50)
        z = np.abs(x)
        estimate = np.sum(1 - 2 * (z <= t) + np.minimum(z, t) ** 2)
        difference.append(estimate - np.sum((soft_threshold(x, np.full(50, t)) - theta) ** 2))
    assert abs(np.mean(difference)) < 5 * np.std(difference) / np.sqrt(4000)
