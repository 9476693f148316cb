"""`auto` does no harm, and the advice tells of those that do."""

import numpy as np
import pytest

from hdr4me.recalibrate import recalibrate


def _errors(theta: np.ndarray, sigma: float, method: str, repeats: int, seed: int) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    before = after = 0.0
    for _ in range(repeats):
        x = theta + sigma * rng.normal(size=theta.size)
        found = recalibrate(x, np.full(theta.size, sigma), method).enhanced_mean
        before += np.mean((x - theta) ** 2) / repeats
        after += np.mean((found - theta) ** 2) / repeats
    return before, after


@pytest.mark.parametrize("n_dims", [2, 5, 20, 40, 100])
@pytest.mark.parametrize("signal", [0.0, 0.5, 1.0, 2.0, 4.0])
def test_auto_does_no_harm_at_any_number_of_dimensions(n_dims: int, signal: float) -> None:
    """The worst case for shrinkage to zero: all means at the same few standard errors.

    1.05 is the requirement. Over four other seeds the largest ratio was 1.00 (d = 2, nothing changed), 0.98, 0.96,
    0.25 and 0.15 for these d, with an sd between seeds of at most 0.03: false alarm below 1 %.
    """
    sigma = 0.1
    before, after = _errors(np.full(n_dims, signal * sigma), sigma, "auto", 60, n_dims)
    assert after <= 1.05 * before


def test_noise_that_drowns_everything_leaves_zero() -> None:
    before, after = _errors(np.zeros(200), 20.0, "auto", 20, 1)
    assert after < 1e-4 < before


def test_two_clusters_are_found() -> None:
    theta = np.where(np.arange(200) % 3 == 0, 0.6, -0.3)
    before, after = _errors(theta, 0.1, "auto", 10, 2)
    assert after < 0.1 * before  # the oracle has none; 0.025 to 0.036 over four seeds


def test_the_choice_by_number_of_dimensions() -> None:
    used = [recalibrate(np.full(n, 0.3), np.full(n, 0.1)).used for n in (1, 3, 4, 39, 40)]
    assert used == ["clip", "clip", "james_stein", "james_stein", "bayes"]


@pytest.mark.parametrize(("method", "options"), [("l1", {"z": 3.0}), ("l2", {"z": 3.0}), ("zeros", {})])
def test_harm_is_told_with_its_size(method: str, options: dict[str, float]) -> None:
    rng = np.random.default_rng(3)
    theta = rng.uniform(-0.9, 0.9, 300)
    x = theta + 0.02 * rng.normal(size=300)
    found = recalibrate(x, np.full(300, 0.02), method, **options)
    told = found.harm
    real = np.mean((found.enhanced_mean - theta) ** 2) / np.mean((x - theta) ** 2)
    assert "HARMS" in found.advice
    assert f"{told:.1f} times worse" in found.advice
    assert told == pytest.approx(real, rel=0.25)  # one draw of 300 squared errors: sd about 8 %
    assert found.signal_share > 0.9


def test_help_is_told_too() -> None:
    rng = np.random.default_rng(4)
    x = 3 * rng.normal(size=200)
    found = recalibrate(x, np.full(200, 3.0))
    assert "HARMS" not in found.advice
    assert found.advice.startswith("Hierarchical Bayes (no dimension differs from zero")
    assert found.signal_share < 0.05
    assert found.harm < 0.1
    shrunk = recalibrate(x, np.full(200, 3.0), "james_stein").advice
    assert shrunk.startswith("James–Stein shrinkage: expected error")


def test_advice_offers_auto_where_a_method_helps_less() -> None:
    rng = np.random.default_rng(5)
    theta = np.where(np.arange(200) % 2 == 0, 0.5, -0.5)
    found = recalibrate(theta + 0.1 * rng.normal(size=200), np.full(200, 0.1), "clip")
    assert "auto would give" in found.advice
    assert "HARMS" not in found.advice
