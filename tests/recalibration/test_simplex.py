"""Frequencies: on the simplex, and nearer the truth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdr4me.errors import InvalidInput
from hdr4me.recalibration import FREQUENCY_OPTIONS, recalibrate_frequencies
from hdr4me.recalibration.shrinkage import base_cut, norm_sub

frequencies = st.lists(st.floats(-2, 2, allow_nan=False), min_size=1, max_size=30)


@pytest.mark.parametrize("method", FREQUENCY_OPTIONS)
@settings(max_examples=6, deadline=None)
@given(found=frequencies, error=st.floats(0, 1))
def test_every_method_ends_on_the_simplex(method: str, found: list[float], error: float) -> None:
    answer = recalibrate_frequencies(found, np.full(len(found), error), method).frequencies
    assert answer.min() >= 0
    assert answer.sum() == pytest.approx(1, abs=1e-12)


@given(found=frequencies)
def test_norm_sub_is_the_projection(found: list[float]) -> None:
    """Optimality: the residual f̂ − f is the same, and largest, on the whole support."""
    f = np.array(found)
    answer = norm_sub(f)
    residual = f - answer
    support = answer > 1e-9
    assert np.ptp(residual[support]) < 1e-9
    assert (residual <= residual[support].max() + 1e-9).all()


@settings(max_examples=50)
@given(found=frequencies, seed=st.integers(0, 2**32 - 1))
def test_norm_sub_never_moves_away_from_a_true_distribution(found: list[float], seed: int) -> None:
    truth = np.random.default_rng(seed).dirichlet(np.ones(len(found)))
    f = np.array(found)
    assert np.sum((norm_sub(f) - truth) ** 2) <= np.sum((f - truth) ** 2) + 1e-12


def test_base_cut_shares_out_what_is_left() -> None:
    np.testing.assert_allclose(base_cut(np.array([0.7, 0.6, 0.0]), np.full(3, 0.01)), [0.55, 0.45, 0])
    np.testing.assert_allclose(base_cut(np.array([0.0, 0.01]), np.full(2, 1.0)), [0.5, 0.5])
    np.testing.assert_allclose(base_cut(np.array([0.5, 0.3]), np.full(2, 0.01)), [0.6, 0.4])


@pytest.mark.no_cover
@pytest.mark.parametrize("method", ["norm_sub", "base_cut", "bayes"])
@pytest.mark.parametrize(("error", "most"), [(0.025, 0.8), (0.003, 1.0)])
def test_zipf_frequencies_come_nearer(method: str, error: float, most: float) -> None:
    """Total error after over total before, 10 repeats of 50 categories at about the noise of ε = 1 and ε = 4 (OUE).

    Three seeds gave at most 0.55 (standard error 0.05) and, beside norm_sub that cannot exceed 1, 0.84 (0.04): five and
    four standard errors below the limits, false alarm below 1e-4.
    """
    rng = np.random.default_rng(0)
    truth = 1 / np.arange(1, 51)
    truth /= truth.sum()
    before = after = 0.0
    for _ in range(10):
        f = truth + error * rng.normal(size=50)
        better = recalibrate_frequencies(f, np.full(50, error), method).frequencies
        before += np.sum((f - truth) ** 2)
        after += np.sum((better - truth) ** 2)
    assert after < most * before


def test_auto_by_number_of_categories_and_what_it_says() -> None:
    assert recalibrate_frequencies([0.6, 0.5], [0.1, 0.1]).used == "norm_sub"
    found = recalibrate_frequencies([0.5, *[0.1] * 6, -0.1], 0.1)
    assert found.used in ("norm_sub", "bayes", "sure")
    assert "1 of 8 frequencies were negative" in found.advice


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match="method = 'softmax'"):
        recalibrate_frequencies([0.5, 0.5], 0.1, "softmax")
    with pytest.raises(InvalidInput, match=r"means\[0\] = nan"):
        recalibrate_frequencies([np.nan, 0.5], 0.1)
    with pytest.raises(InvalidInput, match="option 'z' is not allowed for method 'base_cut'"):
        recalibrate_frequencies([0.5, 0.5], 0.1, "base_cut", z=3)


def test_the_advice_reports_a_method_that_increases_the_error() -> None:
    f = [0.4, 0.35, 0.25]
    expected = recalibrate_frequencies(f, 0.01, "zeros").advice
    assert expected.startswith("zeros increases the error")
    assert "expected error 0.0001 before" in expected
    for method in ("auto", "norm_sub", "clip", "l2"):  # l2 moves these by a tenth of the noise
        assert "increases the error" not in recalibrate_frequencies(f, 0.01, method).advice
