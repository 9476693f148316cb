"""Quantiles with intervals that hold for every distribution."""

from __future__ import annotations

import numpy as np
import pytest

import hdr4me as hd
from hdr4me.statistics.shapes import Bounds

P = [0.05, 0.25, 0.5, 0.75, 0.95]


def data(n=20_000):
    rng = np.random.default_rng(7)
    return {
        "beta": rng.beta(2, 5, n) * 2 - 1,
        "income": np.clip(np.exp(rng.normal(0, 0.6, n)) / 8 * 2 - 1, -1, 1),
        "spikes": np.where(rng.random(n) < 0.5, -0.8, 0.3),
    }


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["beta", "income", "spikes"])
def test_conservative_intervals_cover(survey_of, tally_of, name):
    """25 seeded draws of five quantiles; the campaign in benchmarks/statistics.py has many more."""
    survey, values = survey_of(), data()[name]
    true, inside = np.quantile(values, P, method="inverted_cdf"), 0
    for seed in range(25):
        low, high = hd.ask(tally_of(values, survey, seed), "quantile", "x", p=P).interval()
        inside += int(((low <= true) & (true <= high)).sum())
    assert inside >= 0.94 * 25 * len(P)


def test_approximate_intervals_are_narrower_and_lie_inside(survey_of, tally_of):
    answer = hd.ask(
        tally_of(data()["beta"], survey_of(mechanism="square_wave"), 1), "quantile", "x", p=[0.25, 0.5, 0.75]
    )
    (low, high), (inner_low, inner_high) = answer.interval(), answer.interval(kind="approximate")
    assert (inner_high - inner_low < high - low).all()
    assert ((inner_low <= answer.value) & (answer.value <= inner_high)).all()


def test_quantiles_are_in_units_and_in_order(survey_of, tally_of):
    values = np.random.default_rng(1).normal(45, 20, 100_000).clip(0, 120)
    answer = tally_of(values, survey_of(0, 120), 3).ask("quantile", "x", p=P)
    assert (np.diff(answer.value) >= 0).all()
    np.testing.assert_allclose(answer.value, np.quantile(values, P), atol=4.0)  # one seeded draw
    assert answer.categories == ("0.05", "0.25", "0.5", "0.75", "0.95")


def test_edges_and_atoms_have_notes(survey_of, tally_of):
    survey = survey_of()
    smooth = hd.ask(tally_of(data()["beta"], survey, 1), "quantile", "x", p=[0.05, 0.5])
    assert [bool(note) for note in smooth.notes] == [True, False]
    assert "note" in smooth.table()[0]
    many = np.where(np.arange(200_000) % 2 == 0, -0.8, 0.3)
    spiky = hd.ask(tally_of(many, survey_of(mechanism="square_wave"), 1), "quantile", "x", p=0.5)
    assert "atoms" in spiky.notes[0]


def test_no_weights_depend_on_the_counts(survey_of, tally_of):
    """The bound's guarantee rests on it: other counts of as many reports get the same weights."""
    reading = survey_of().questions[0].channel.response.marginal()
    first, second = Bounds(reading), Bounds(reading)
    for bounds, values in ((first, data()["beta"]), (second, data()["income"])):
        bounds.share(tally_of(values, survey_of(), 1).counts.astype(float), -1.0, 0.2)
    for key, (weights, _) in first._kept.items():
        np.testing.assert_array_equal(weights, second._kept[key][0])


def test_the_rows_of_one_quantile_can_be_taken_out(survey_of, tally_of):
    answer = hd.ask(tally_of(data()["beta"], survey_of(), 1), "quantile", "x", p=[0.25, 0.75])
    part = answer["x"].of("quantile")
    np.testing.assert_array_equal(part.interval(), answer.interval())
    assert part.notes == answer.notes
    assert "quantile" in answer._repr_html_()


def test_progress_of_fits_and_of_intervals():
    survey = hd.Survey(hd.Schema([hd.Numeric(f"x{j}", 0, 1) for j in range(3)]), mechanism="piecewise")
    tally = hd.Tally(survey)
    tally.counts[:] = 50
    tally.n_reports = int(tally.counts.sum())
    calls: list[tuple[int, int]] = []
    answer = hd.ask(tally, "quantile", p=[0.5], progress=lambda now, of: calls.append((now, of)))
    assert calls == [(3, 3)]
    answer.table()
    assert calls[1:] == [(0, 3), (1, 3), (2, 3)]
