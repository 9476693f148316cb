"""Variances and standard deviations, with the rounding to levels accounted for."""

from __future__ import annotations

import numpy as np
import pytest

import hdr4me as hd
from hdr4me.statistics.answer import NOT_SIGNIFICANT


@pytest.mark.no_cover
@pytest.mark.parametrize(("mechanism", "epsilon"), [("optimal", 1.0), ("piecewise", 4.0)])
def test_coverage_of_the_variance(survey_of, tally_of, mechanism, epsilon):
    """120 fixed draws; with others a right interval would be outside 87 to 99 % with probability below 3e-3."""
    rng, survey = np.random.default_rng(2), survey_of(mechanism=mechanism, epsilon=epsilon)
    values = rng.beta(2, 5, 20_000) * 2 - 1
    inside = 0
    for seed in range(120):
        low, high = hd.ask(tally_of(values, survey, seed), "variance", "x").interval(kind="approximate")
        inside += int(low[0] <= values.var() <= high[0])
    assert 0.87 * 120 <= inside <= 0.99 * 120


def test_the_estimate_is_right_on_average(survey_of, tally_of):
    survey = survey_of(0, 100)
    values = np.random.default_rng(3).normal(50, 10, 50_000)
    found = [hd.ask(tally_of(values, survey, seed), "variance", "x").value[0] for seed in range(200)]
    assert np.mean(found) == pytest.approx(values.var(), abs=4 * np.std(found) / np.sqrt(200))


def test_values_at_levels_are_inside_the_conservative_interval(survey_of, tally_of):
    """Nothing is rounded there, while the estimate takes off what rounding adds on average."""
    survey = survey_of(epsilon=4.0)
    values = np.where(np.arange(200_000) % 2 == 0, -0.5, 0.5)
    answer = hd.ask(tally_of(values, survey, 1), "variance", "x")
    low, high = answer.interval(0.9999)
    assert low[0] <= 0.25 <= high[0]


def test_the_deviation_is_the_root(survey_of, tally_of):
    tally = tally_of(
        np.random.default_rng(3).normal(50, 10, 100_000), survey_of(0, 100, mechanism="square_wave"), 2
    )
    variance, deviation = hd.ask(tally, "variance", "x"), hd.ask(tally, "sd", "x")
    assert deviation.value[0] == pytest.approx(np.sqrt(variance.value[0]))
    np.testing.assert_allclose(np.array(deviation.interval()) ** 2, variance.interval())
    assert deviation.standard_error[0] == pytest.approx(variance.standard_error[0] / 2 / deviation.value[0])


def test_a_deviation_always_has_an_interval(survey_of, tally_of):
    """Shown only where the estimate is large, the intervals of equal values would never cover 0."""
    answer = hd.ask(tally_of(np.zeros(500), survey_of(), 4), "sd", "x")
    (low,), (high,) = answer.interval()
    assert answer.status == ("ok",)
    assert np.isnan(answer.standard_error[0])
    assert 0.0 == low < high <= 1.0


@pytest.mark.parametrize("epsilon", [0.5, 8.0])
def test_variances_of_small_samples_cover(survey_of, tally_of, epsilon):
    """60 fixed draws of 50 skewed values: right intervals cover fewer than 52 with probability below 1e-2."""
    survey, rng = survey_of(epsilon=epsilon, mechanism="piecewise"), np.random.default_rng(7)
    inside = 0
    for seed in range(60):
        values = 2 * rng.beta(0.3, 4, 50) - 1
        (low,), (high,) = hd.ask(tally_of(values, survey, seed), "variance", "x").interval()
        inside += low <= values.var() <= high
        assert 0.0 <= low < high <= 1.0
    assert inside >= 52


def test_the_variance_of_a_rare_optional_number_is_gated_and_in_range(survey_of, tally_of):
    """2 % of the users have a value: not significant, or inside the possible range of 0 to 2500."""
    values = np.full(2000, np.nan)
    values[:40] = 50.0
    survey = survey_of(0, 100, optional=True)
    for statistic, most in (("variance", 2500.0), ("sd", 50.0)):
        for seed in range(10):
            answer = hd.ask(tally_of(values, survey, seed), statistic, "x")
            (row,) = answer.table()
            if row["status"] == NOT_SIGNIFICANT:
                assert row["estimate"] is row["lower"] is None
            else:
                assert 0.0 <= row["lower"] <= row["estimate"] <= row["upper"] <= most


def test_optional_numbers_have_a_variance_among_those_who_have_one(survey_of, tally_of):
    values = np.random.default_rng(5).normal(45, 20, 200_000).clip(0, 120)
    true = values.var()
    values[:60_000] = np.nan
    low, high = hd.ask(tally_of(values, survey_of(0, 120, optional=True), 2), "variance", "x").interval(0.999)
    assert low[0] <= true <= high[0]  # one seeded draw
