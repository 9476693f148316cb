"""Covariances and correlations from a question about the product; every draw is seeded."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import hdr4me as hd
from hdr4me.simulation.collection import simulate_tally
from hdr4me.statistics.answer import NOT_SIGNIFICANT
from hdr4me.statistics.distribution import reach_beyond
from hdr4me.statistics.pairs import product_question

SCHEMA = hd.Schema([hd.Numeric("a", -1, 1), hd.Numeric("b", -1, 1), hd.Product("a × b", ["b", "a"])])


def counted(a, b, survey, rng):
    """One of three questions for each user, equally often."""
    tally = hd.Tally(survey)
    for q, values in enumerate((a, b, a * b)):
        reading = survey.questions[q].channel.response.marginal()
        mine = rng.choice(values, values.size // 3, replace=False)
        place = (mine + 1) / reading.step
        level = np.minimum(place.astype(int), reading.levels.size - 2)
        level = level + (rng.random(level.size) < place - level)
        law = reading.law[:, 0] / reading.law[:, 0].sum(axis=1, keepdims=True)
        place = tally.layout.of_question(tally.counts, q)
        place[:] = rng.multinomial(np.bincount(level, minlength=reading.levels.size), law).sum(axis=0)
    tally.n_reports = a.size
    return tally


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_covariance_is_covered_and_its_error_is_right(epsilon):
    """150 seeded draws: coverage of 95 % lies above 88 % but for a chance of 1e-4, the error is known to 6 %."""
    rng = np.random.default_rng(7)
    a = rng.uniform(-1, 1, 6000) * 0.5 + 0.3
    b = 0.6 * a + 0.3 * rng.uniform(-1, 1, 6000)
    survey, true = hd.Survey(SCHEMA, epsilon), float(np.cov(a, b, ddof=0)[0, 1])
    found, errors, inside = [], [], 0
    for _ in range(150):
        answer = hd.ask(counted(a, b, survey, rng), "covariance", ["a", "b"])
        low, high = answer.interval()
        inside += int(low[0] <= true <= high[0])
        found.append(answer.value[0])
        errors.append(answer.standard_error[0])
    assert inside >= 132
    assert np.mean(errors) == pytest.approx(np.std(found), rel=0.25)
    assert np.mean(found) == pytest.approx(true, abs=4 * np.std(found) / np.sqrt(150))


def test_a_product_has_much_less_error_than_two_answers_of_one_report():
    """The standard errors that answers report, for 30,000 users at ε = 1: at least three times less, seeded."""
    rng = np.random.default_rng(1)
    a = rng.uniform(-1, 1, 30_000)
    b = np.clip(0.6 * a + 0.4 * rng.uniform(-1, 1, a.size), -1, 1)
    product = hd.ask(counted(a, b, hd.Survey(SCHEMA, 1.0), rng), "covariance", ["a", "b"])
    both = hd.Survey(hd.Schema(SCHEMA.dimensions[:2]), 1.0, sampled=2)
    decode = np.array(both.questions[0].channel.decoders["value"])  # type: ignore[attr-defined]
    law = both.questions[0].channel.response.marginal().in_bins(np.array([-1.0, 1.0]))[0, 0]  # type: ignore[arg-type]
    second = float(law @ decode**2) - 1 / 3
    by_pairs = np.sqrt((second**2 + 2 * second / 3) / a.size)
    assert product.standard_error[0] < by_pairs / 3


def test_a_correlation_needs_no_pairs_where_the_product_was_asked():
    rng = np.random.default_rng(2)
    a = rng.choice([-0.9, 0.9], 60_000)
    b = np.where(rng.random(a.size) < 0.9, a, -a)
    answer = hd.ask(counted(a, b, hd.Survey(SCHEMA, 4.0), rng), "correlation", ["a", "b"])
    low, high = answer.interval(0.9999)
    assert low[0] < np.corrcoef(a, b)[0, 1] < high[0]
    assert high[0] - low[0] < 0.2


def test_a_correlation_over_a_doubtful_variance_has_a_note():
    """Such rows appear only if both estimated variances are large, so coverage is low: 82 % in 61 % of the draws."""
    rng = np.random.default_rng(5)
    a = rng.uniform(-1, 1, 3000)
    answer = hd.ask(counted(a, a, hd.Survey(SCHEMA, 1.0), rng), "correlation", ["a", "b"])
    assert "low coverage" in answer.notes[0]
    clear = hd.ask(counted(a, a, hd.Survey(SCHEMA, 4.0), rng), "correlation", ["a", "b"])
    assert clear.notes == ("",)


def test_units_and_small_samples():
    schema = hd.Schema([hd.Numeric("a", 0, 100), hd.Numeric("b", 0, 4), hd.Product("p", ["a", "b"])])
    survey = hd.Survey(schema, 4.0)
    rng = np.random.default_rng(3)
    a = rng.uniform(-1, 1, 30_000)
    tally = counted(a, a, survey, rng)
    answer = hd.ask(tally, "covariance", ["a", "b"])
    assert answer.value[0] == pytest.approx(50 * 2 / 3, abs=5 * answer.standard_error[0])
    assert np.isnan(hd.ask(hd.Tally(survey), "covariance", ["a", "b"]).value[0])
    assert product_question(survey, 0, 1) == 2
    assert product_question(hd.Survey(hd.Schema(schema.dimensions[:2])), 0, 1) is None


def test_rounds_do_not_mix_products_about_different_middles():
    """The second round's ranges differ, so its product means something else: the pilot's row stays as it was."""
    rng = np.random.default_rng(4)
    a = np.clip(rng.normal(0, 0.1, 30_000), -1, 1)
    survey = hd.Survey(SCHEMA, 4.0)
    pilot = counted(a, a, survey, rng)
    following = hd.refine(pilot).survey
    assert following.schema["a"].bounds != (-1.0, 1.0)
    assert isinstance(following.schema["a × b"], hd.Product)
    second = counted(a, a, following, rng)
    both, first = hd.combine([pilot, second], same_population=True), pilot.estimate()
    assert both.value[2] == first.value[2]
    assert both.value[0] != first.value[0]


def test_reach_beyond_an_identified_set_is_between_one_and_two_sided():
    assert reach_beyond(0.95, 1e6, 0.0) == pytest.approx(1.96, abs=1e-3)
    assert reach_beyond(0.95, 1e6, 20.0) == pytest.approx(1.645, abs=1e-3)
    widths = [reach_beyond(0.95, 1e6, w) for w in np.linspace(0, 5, 20)]
    assert all(a >= b for a, b in pairwise(widths))
    assert reach_beyond(0.2, 1e6, 1.0) > 0


def test_a_correlation_of_few_answers_needs_clear_variances():
    """Variances that are significant by chance would print correlations that miss the truth: 60 seeded runs."""
    schema = hd.Schema([hd.Numeric("a", 0, 1), hd.Numeric("b", 0, 1), hd.Product("ab", ["a", "b"])])
    survey = hd.Survey(schema, 8.0, "piecewise", 3)
    values = np.linspace(0, 1, 60) ** 4
    records = pa.table({"a": values, "b": values})
    found = {
        simulate_tally(records, survey, seed=seed).ask("correlation", ["a", "b"]).status[0]
        for seed in range(60)
    }
    assert found == {NOT_SIGNIFICANT}
