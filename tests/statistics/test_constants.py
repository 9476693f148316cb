"""Constants of the statistics are fixed by the quantities they bound."""

from __future__ import annotations

import numpy as np
import pytest

import hdr4me as hd
from hdr4me import Tally
from hdr4me.errors import InvalidInput
from hdr4me.framework.small_samples import ratio_interval
from hdr4me.statistics import distribution, shapes
from hdr4me.statistics.pairs import joint_covariance
from hdr4me.statistics.rounds import priors


def test_quantiles_in_the_outer_tenth_have_a_note(survey_of, tally_of):
    """Far from both ends of the range, only the share decides: a tail's shape follows from few users."""
    values = np.random.default_rng(3).normal(0.0, 0.25, 200_000)
    tally = tally_of(values, survey_of(epsilon=2.0), 1)
    found = hd.ask(tally, "quantile", "x", p=[0.09, 0.11, 0.89, 0.91])
    assert [bool(note) for note in found.notes] == [True, False, False, True]


def test_a_quantile_within_five_per_cent_of_an_end_has_a_note(survey_of, tally_of):
    """The share 0.15 is not that of a tail, so only the place of the quantile decides."""
    places = []
    for place, mirrored in ((0.043, False), (0.056, False), (0.043, True), (0.056, True)):
        power = np.log(0.85) / np.log(1 - place)
        values = np.random.default_rng(3).beta(1, power, 100_000)
        tally = tally_of(1 - values if mirrored else values, survey_of(0, 1, epsilon=3.0), 1)
        found = hd.ask(tally, "quantile", "x", p=[0.85 if mirrored else 0.15])
        places.append(float(min(found.value[0], 1 - found.value[0])))
        assert bool(found.notes[0]) == (places[-1] < 0.05)
    assert all(0.0375 < place < 0.0625 for place in places)
    assert [place < 0.05 for place in places] == [True, False, True, False]


def test_the_length_of_a_variance_s_interval_hardly_depends_on_the_share_for_the_mean(
    survey_of, tally_of, monkeypatch
):
    """With a fifth of the error probability for the mean the interval is within 2 % of the shortest."""
    lengths = {}
    for share in (distribution._SHARE_OF_MEAN, 0.05, 0.1, 0.3, 0.5):
        monkeypatch.setattr(distribution, "_SHARE_OF_MEAN", share)
        total = 0.0
        for seed in range(4):
            values = np.random.default_rng(seed).normal(0.3, 0.3, 200)
            low, high = hd.ask(tally_of(values, survey_of(epsilon=1.0), seed), "variance", "x").interval()
            total += float(high[0] - low[0])
        lengths[share] = total
    assert lengths[0.2] < 1.02 * min(lengths.values())


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


def printed_means(survey, share, number):
    """The printed answers about tallies of 1,000 users, a share of whom have the largest value."""
    own = survey.questions[0].channel.response.marginal()
    law, users = own.law[:, 0] / own.law[:, 0].sum(axis=1, keepdims=True), 1000
    rng, known = np.random.default_rng(5), round(users * share)
    counts = rng.multinomial(known, law[-2], number) + rng.multinomial(users - known, law[-1], number)
    present = own.decoders["present"]
    mean, square = counts @ present / users, counts @ present**2 / users
    for row in counts[mean > 2.8 * np.sqrt((square - mean**2) / users)]:
        tally = Tally(survey)
        tally.counts[:], tally.n_reports = row, users
        found = hd.ask(tally, "mean", "x")
        if not found.not_significant[0]:
            yield tally, found, own


def test_a_mean_of_hardly_significantly_many_users_allows_for_their_selection(survey_of):
    """With 13 % who have a value, the usual intervals of printed means cover 85 %; few are printed.

    From five standard errors of the share on the usual interval is used: with 25 % most are, and it covers its 95 %.
    """
    survey = survey_of(optional=True)
    cover = {0.13: [], 0.25: []}
    for share, covered in cover.items():
        for _, found, _ in printed_means(survey, share, 500 if share == 0.13 else 150):
            low, high = found.interval(0.95)
            covered.append(low[0] <= 1.0 <= high[0])
    assert min(map(len, cover.values())) > 100
    assert np.mean(cover[0.13]) >= 0.95
    assert 0.94 <= np.mean(cover[0.25]) <= 0.985


def test_a_selected_mean_has_an_error_probability_of_a_quarter_per_cent(survey_of):
    """If 5 % of all cases are printed, 5 % of the printed ones are wrong: 0.05 · 0.05 of all."""
    tally, found, own = next(printed_means(survey_of(optional=True), 0.18, 100))
    expected = ratio_interval(
        own.decoders["value"], own.decoders["present"], tally.counts.astype(float), 1 - 0.05 * 0.05
    )
    assert -1 < expected[0] < 1
    np.testing.assert_allclose(np.ravel(found.interval(0.95)), np.clip(expected, -1, 1))


@pytest.mark.parametrize("absent", [0.1, 0.5])
def test_weights_for_a_fifth_without_a_value_suit_other_shares(absent, survey_of, tally_of, monkeypatch):
    """Intervals of the median are within 3 % of those designed for few or for half; those for none are long."""
    rng, lengths = np.random.default_rng(0), {}
    values = np.where(rng.random(20_000) < absent, np.nan, rng.normal(0, 0.3, 20_000))
    tally = tally_of(values, survey_of(optional=True), 0)
    chosen = shapes._ABSENT
    for assumed in (chosen, 0.0, 0.05, 0.5):
        monkeypatch.setattr(shapes, "_ABSENT", assumed)
        monkeypatch.setattr(shapes, "_bounds", shapes.Bounds)  # not remembered
        low, high = hd.ask(tally, "quantile", "x", p=[0.5, 0.9]).interval(0.95)
        lengths[assumed] = float((high - low).sum())
    assert lengths[chosen] < 1.03 * min(lengths[0.05], lengths[0.5])
    assert lengths[0.0] > 1.3 * lengths[0.05]
