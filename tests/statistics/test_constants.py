"""Constants of the statistics are fixed by the quantities they bound."""

from __future__ import annotations

import numpy as np
import pytest

import hdr4me as hd
from hdr4me.errors import InvalidInput
from hdr4me.statistics.pairs import joint_covariance
from hdr4me.statistics.rounds import priors


def test_quantiles_in_the_outer_tenth_have_a_note(survey_of, tally_of):
    """Far from both ends of the range, only the share decides: a tail's shape follows from few users."""
    values = np.random.default_rng(3).normal(0.0, 0.25, 200_000)
    tally = tally_of(values, survey_of(epsilon=2.0), 1)
    found = hd.ask(tally, "quantile", "x", p=[0.09, 0.11, 0.89, 0.91])
    assert [bool(note) for note in found.notes] == [True, False, False, True]


def test_a_deviation_has_a_standard_error_from_two_standard_errors_of_its_variance_on(survey_of, tally_of):
    """The root is close to linear only there. Means of 0 with little spread give ratios from below 0 to above 4."""
    seen = set()
    for seed in range(40):
        tally = tally_of(np.random.default_rng(seed).normal(0.0, 0.4, 400), survey_of(), seed)
        variance, deviation = hd.ask(tally, "variance", "x"), hd.ask(tally, "sd", "x")
        ratio = float(variance.value[0] / variance.standard_error[0])
        assert np.isfinite(deviation.standard_error[0]) == (ratio > 2.0), ratio
        seen.add(int(min(max(2 * ratio, 0), 8)))
    assert {2, 3, 4, 5} <= seen  # on both sides of the limit, within a half


def test_a_table_of_three_levels_gives_no_prior(survey_of, tally_of):
    """It carries the mean and little more. The table of `pm_sub` gives one with the right spread."""
    values = np.random.default_rng(3).normal(0.0, 0.3, 100_000)
    with pytest.raises(InvalidInput):
        priors(tally_of(values, survey_of(mechanism="three_outputs"), 1))
    edges, weights = priors(tally_of(values, survey_of(mechanism="pm_sub", epsilon=3.0), 1))["x"]
    middles = (np.array(edges)[1:] + np.array(edges)[:-1]) / 2
    assert np.sqrt(np.array(weights) @ middles**2) == pytest.approx(0.3, abs=0.02)


def test_estimated_shares_are_correlated_unless_there_are_many_categories():
    """The correlation is about −1/(K − 1): it is kept while it is larger than 0.4 %."""
    for size, kept in ((250, True), (260, False)):
        alone = np.arange(size)
        survey = hd.Survey(
            hd.Schema([hd.Categorical("c", list(map(str, range(size))))]), epsilon=1.0, categorical="grr"
        )
        channel = survey.questions[0].channel
        shares, errors = np.full(size, 1 / size), np.full(size, 0.01)
        found = joint_covariance(channel, shares, errors, 10_000, 10_000, alone)
        assert (found.ndim == 2) is kept
        if kept:
            assert found[0, 1] / found[0, 0] == pytest.approx(-1 / (size - 1), rel=0.02)
