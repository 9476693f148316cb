"""Second rounds: narrower ranges, and the combined estimate of both rounds; every draw is seeded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hdr4me as hd
from hdr4me.channels.codebook.channel import thresholds
from hdr4me.errors import InvalidInput
from hdr4me.statistics.intervals import NO_LAW_NOTE
from hdr4me.statistics.predict import Excesses


def two_rounds(values, survey, tally_of, seed, pilots=8000, mechanism="optimal_mean"):
    """(one round, both rounds) for these users."""
    users = np.random.default_rng(seed).permutation(values)
    pilot = tally_of(users[:pilots], survey, seed + 1)
    following, control, _ = hd.refine(pilot, users=len(users) - pilots, mechanism=mechanism)
    stop = pilots + int(control * (len(users) - pilots))
    rounds = [pilot, tally_of(users[stop:], following, seed + 2)]
    if stop > pilots:
        rounds.append(tally_of(users[pilots:stop], survey, seed + 4))
    return tally_of(users, survey, seed + 3).estimate(), hd.combine(rounds), following


@pytest.mark.no_cover
def test_a_narrow_distribution_gains_and_is_covered(survey_of, tally_of):
    """24 seeded draws; benchmarks/second_rounds.py has the campaign."""
    values = np.random.default_rng(1).normal(0, 0.1, 40_000)
    survey, inside, one, two, widths = survey_of(epsilon=4.0), 0, [], [], []
    for seed in range(0, 240, 10):
        first, both, following = two_rounds(values, survey, tally_of, seed)
        (low, high), (left, right) = both.interval(), first.interval()
        inside += int(low[0] <= values.mean() <= high[0])
        one.append(first.standard_error[0] ** 2)
        two.append((both.value[0] - values.mean()) ** 2)
        widths.append((right[0] - left[0]) / (high[0] - low[0]))
        assert both.n_reports == 40_000
        # The printed standard error and the interval agree.
        assert both.standard_error[0] == pytest.approx((high[0] - low[0]) / (2 * 1.96), rel=1e-3)
    assert inside >= 22
    assert np.mean(one) / np.mean(two) > 1.5
    assert np.mean(widths) > 1.4
    assert following.schema["x"].high - following.schema["x"].low < 1.2


@pytest.mark.no_cover
@pytest.mark.parametrize("share", [0.0, 0.01, 0.03, 0.1])
def test_a_lump_at_the_other_end_is_covered(share, survey_of, tally_of):
    """16 seeded draws at ε = 2, the values below 184 of 1000 and a lump at 1000: at most 3 intervals miss.

    4 or more of 16 have probability 7e-3 at 95 %. The squared error is compared in benchmarks/second_rounds.py.
    """
    rng = np.random.default_rng(2)
    values = np.where(rng.random(20_000) < share, 1000.0, np.minimum(rng.gamma(3, 25, 20_000), 184))
    survey, inside = survey_of(0, 1000, epsilon=2.0), 0
    for seed in range(0, 160, 10):
        _, both, _ = two_rounds(values, survey, tally_of, seed, pilots=4000)
        low, high = both.interval()
        inside += int(low[0] <= values.mean() <= high[0])
    assert inside >= 13


def test_a_wide_distribution_keeps_its_range(survey_of, tally_of):
    values = np.random.default_rng(1).uniform(-1, 1, 40_000)
    first, both, following = two_rounds(values, survey_of(), tally_of, 5)
    assert following.schema["x"].bounds == (-1.0, 1.0)
    assert both.standard_error[0] == pytest.approx(first.standard_error[0], rel=0.02)


def test_ranges_are_in_units_and_defaults_stay_inside(survey_of, tally_of):
    values = np.random.default_rng(2).normal(30, 2, 20_000)
    following = hd.refine(tally_of(values, survey_of(0, 120, epsilon=4.0, default=60), 1)).survey
    dimension = following.schema["x"]
    assert isinstance(dimension, hd.Numeric)
    assert dimension.default is not None
    assert 0 < dimension.low < 24
    assert 36 < dimension.high < 100
    assert dimension.low <= dimension.default <= dimension.high
    assert following.epsilon == 4.0
    assert following.name == "second round"


def test_a_narrower_number_keeps_its_unit_curve_and_group(survey_of, tally_of):
    values = np.random.default_rng(2).normal(30, 2, 20_000)
    survey = survey_of(0, 120, epsilon=4.0, unit="min", curve="hours", group="travel", default=90.0)
    narrower = hd.refine(tally_of(values, survey, 1)).survey.schema["x"]
    assert isinstance(narrower, hd.Numeric)
    assert (narrower.unit, narrower.curve, narrower.group) == ("min", "hours", "travel")
    assert narrower.low > 0
    assert narrower.default == narrower.high < 90.0


def test_what_a_range_cuts_off_is_estimated_without_bias(survey_of):
    """The decoders of the excesses have the right mean at every level, for any law that they are designed for."""
    marginal = survey_of(epsilon=2.0).questions[0].channel.response.marginal()
    excesses = Excesses(marginal, marginal.law[:8, 0].mean(axis=0))
    for k in (5, 16, 30):
        end = marginal.levels[k]
        above, below = marginal.law[:, 0] @ excesses.above(end), marginal.law[:, 0] @ excesses.below(end)
        np.testing.assert_allclose(above, np.maximum(marginal.levels - end, 0), atol=1e-9)
        np.testing.assert_allclose(below, np.maximum(end - marginal.levels, 0), atol=1e-9)


def test_an_empty_pilot_is_refused(survey_of):
    with pytest.raises(InvalidInput, match="the pilot has no reports"):
        hd.refine(hd.Tally(survey_of()))


def test_questions_with_more_noise_are_drawn_more_often():
    schema = hd.Schema(
        [hd.Numeric("a", -1, 1), hd.Numeric("b", -1, 1), hd.Categorical("c", [str(i) for i in range(20)])]
    )
    survey = hd.Survey(schema, epsilon=3.0)
    pilot = hd.Tally(survey)
    rng, table = np.random.default_rng(4), survey.questions[0].channel
    assert isinstance(table, hd.Table)
    law = np.array(table.weights, float) / 2**32
    narrow, wide = law[len(law) // 2], law.mean(axis=0)
    for q, shares in ((0, narrow), (1, wide)):
        pilot.layout.of_question(pilot.counts, q)[:] = rng.multinomial(10_000, shares / shares.sum())
    pilot.n_reports = 20_000
    weights = [question.weight for question in hd.refine(pilot).survey.questions]
    assert weights[0] < weights[1] < weights[2]
    assert [q.weight for q in hd.refine(pilot, weigh=False).survey.questions] == [1, 1, 1]


def test_categories_are_combined_too():
    survey = hd.Survey(hd.Schema([hd.Categorical("c", ["no", "yes"]), hd.Numeric("x", -1, 1)]))
    rounds = []
    for seed in (1, 2):
        tally, rng = hd.Tally(survey), np.random.default_rng(seed)
        for q in (0, 1):
            size = tally.layout.of_question(tally.counts, q).size
            tally.layout.of_question(tally.counts, q)[:] = rng.multinomial(500, np.full(size, 1 / size))
        tally.n_reports = 1000
        rounds.append(tally)
    both, summed = hd.combine(rounds), (rounds[0] + rounds[1]).estimate()
    np.testing.assert_allclose(both.value, summed.value, rtol=0.02, atol=0.02)
    np.testing.assert_allclose(both.standard_error, summed.standard_error, rtol=0.02)
    assert hd.combine(rounds[:1]).value.tolist() == rounds[0].estimate().value.tolist()


def test_refusals_say_why(survey_of, tally_of):
    duchi = tally_of(np.zeros(100), survey_of(mechanism="duchi"), 1)
    with pytest.raises(InvalidInput, match="no range can be narrowed"):
        hd.refine(duchi)
    with pytest.raises(InvalidInput, match="users"):
        hd.refine(tally_of(np.zeros(100), survey_of(), 1), users=0)
    with pytest.raises(InvalidInput, match="at least one tally"):
        hd.combine([])
    other = hd.Tally(hd.Survey(hd.Schema([hd.Numeric("y", 0, 1)])))
    with pytest.raises(InvalidInput, match="round 2 of 2 has no reports"):
        hd.combine([duchi, other])
    other.counts[0] = other.n_reports = 1
    with pytest.raises(InvalidInput, match="different dimensions"):
        hd.combine([duchi, other])


def test_a_user_answers_one_of_the_rounds(survey_of, tally_of, tmp_path):
    """A ledger whose limit is the budget of one report lets through the first round that comes."""
    survey = survey_of()
    following = hd.refine(tally_of(np.random.default_rng(1).normal(0, 0.1, 5000), survey, 1)).survey
    assert following.series != survey.series
    ledger = hd.Ledger(tmp_path / "ledger.json", limit=survey.epsilon)
    hd.Client(survey, ledger).report({"x": 0.1})
    with pytest.raises(hd.errors.BudgetExceeded):
        hd.Client(following, ledger).report({"x": 0.1})


def test_the_predicted_gain_of_two_rounds():
    from scipy.stats import norm

    from hdr4me.statistics.predict import predict_rounds

    gains = [predict_rounds(norm(0, sd), 40_000, 4.0).gain for sd in (0.05, 0.1, 0.25)]
    assert gains[0] > gains[1] > gains[2] >= 1.0
    assert predict_rounds("uniform", 40_000, 1.0).gain == pytest.approx(1.0, abs=0.1)
    with pytest.raises(InvalidInput, match="pilot"):
        predict_rounds("uniform", 40_000, 1.0, pilot=1.0)


def test_tables_of_the_second_round_are_designed_for_the_pilot_s_distribution(
    survey_of, tally_of, monkeypatch
):
    """The designed table has less variance for the users' own values than the general one, on the whole range."""
    monkeypatch.setattr("hdr4me.statistics.predict.WORTH", np.inf)
    values = np.random.default_rng(1).normal(0, 0.1, 20_000)
    pilot = tally_of(values, survey_of(epsilon=2.0), 1)
    noise = {}
    for mechanism in ("optimal", "designed"):
        following = hd.refine(pilot, users=20_000, mechanism=mechanism).survey
        low, high = following.schema["x"].bounds
        x = (np.clip(values, low, high) - low) / (high - low) * 2 - 1
        table: Any = following.questions[0].channel
        reading, decode = table.response.marginal(), np.array(table.decoders["value"])
        noise[mechanism] = float(np.mean(reading.at(x[:4000])[:, 0] @ decode**2 - x[:4000] ** 2))
    assert noise["designed"] < 0.85 * noise["optimal"]


def test_values_heaped_at_an_end_are_not_cut_off_without_a_control_group(survey_of, tally_of):
    """3 % of ones among zeros, which the pilot's noise hides: enough users show them, so the error is no larger."""
    values = np.where(np.random.default_rng(1).random(40_000) < 0.03, 1.0, -1.0)
    for seed in range(5):
        found = hd.refine(tally_of(values[:8000], survey_of(), seed), users=32_000)
        assert not found.ranges or (found.control >= 0.65 and found.ranges["x"].worst <= 1.0)


def test_many_numbers_share_general_tables():
    """Above the number of designs each number has one of two tables, so the document stays short."""
    survey = hd.Survey(hd.Schema([hd.Numeric(f"x{j}", -1, 1) for j in range(8)]))
    pilot, rng = hd.Tally(survey), np.random.default_rng(1)
    law = survey.questions[0].channel.response.marginal().at([0.1])[0, 0]
    for q in range(8):
        pilot.layout.of_question(pilot.counts, q)[:] = rng.multinomial(4000, law / law.sum())
    pilot.n_reports = 32_000
    assert len(hd.refine(pilot, weigh=False).survey.channels) <= 2


@pytest.mark.no_cover
def test_the_predicted_width_matches_the_observed_width(survey_of, tally_of):
    """12 seeded draws: the mean half-width of an interval is predicted within 15 %."""
    from hdr4me.statistics.predict import predict_rounds

    values = np.random.default_rng(6).normal(0.2, 0.12, 20_000)
    survey, errors = survey_of(epsilon=4.0), []
    for seed in range(0, 120, 10):
        _, both, _ = two_rounds(values, survey, tally_of, seed, pilots=4000)
        errors.append(both.standard_error[0])
    predicted = predict_rounds(values[:1000], 20_000, 4.0)
    assert np.mean(errors) == pytest.approx(predicted.two, rel=0.15)
    assert predicted.control > 0
    with pytest.raises(InvalidInput, match="n = 3 is not allowed"):
        predict_rounds("uniform", 3, 1.0)
    assert predict_rounds("uniform", 1000, 1.0, mechanism="duchi").gain == 1.0


def _seeded(survey, seed, n=4000):
    """Counts of n answers to each question: x about 0.1, two categories chosen, signs mostly +, vectors at 0."""
    tally, rng = hd.Tally(survey), np.random.default_rng(seed)
    for q, question in enumerate(survey.questions):
        channel, own = question.channel, tally.layout.of_question(tally.counts, q)
        dimension = survey.schema.dimensions[question.dimensions[0]]
        if dimension.input_kind == "selection":
            outputs = list(channel.outputs())
            x = dimension.encode(["de", "en"], channel.n_inputs) >> 16
            law = np.array([float(channel.probability(x, z)) for z in outputs])
            for z, count in zip(outputs, rng.multinomial(n, law / law.sum()), strict=True):
                own[list(z)] += count
        elif dimension.input_kind == "vector":
            shares = np.diff(thresholds()) / 65536
            own[:] = rng.multinomial(n, shares, dimension.length).ravel()
        elif len(question.dimensions) > 1:
            plus = rng.binomial(n, 0.7, len(question.dimensions))
            own[:] = np.stack([n - plus, plus], axis=1).ravel()
        else:
            low, high = dimension.bounds
            reading = channel.response.marginal()
            place = (rng.normal(0.1, 0.03, n) - low) / (high - low) * (reading.levels.size - 1)
            level = place.astype(int) + (rng.random(n) < place - place.astype(int))
            users = np.bincount(np.clip(level, 0, reading.levels.size - 1), minlength=reading.levels.size)
            law = reading.law[:, 0] / reading.law[:, 0].sum(axis=1, keepdims=True)
            own[:] = rng.multinomial(users, law).sum(axis=0)
    tally.n_reports = n * len(survey.questions)
    return tally


def test_a_second_round_of_every_kind_of_question():
    """Seeded: the range of the number is narrowed; the selection, the block and the vector are repeated."""
    numbers = [hd.Numeric(name, -1, 1) for name in ("x", "a", "b", "c")]
    spoken = hd.Selection("spoken", ["de", "en", "fr", "it"], 2)
    schema = hd.Schema([*numbers, spoken, hd.Vector("v", 3)])
    survey = hd.Survey(schema, epsilon=4.0, block_questions=[["a", "b", "c"]])
    pilot = _seeded(survey, 1)
    following, _, ranges = hd.refine(pilot)
    assert list(ranges) == ["x"]
    assert [q.dimensions for q in following.questions] == [q.dimensions for q in survey.questions]
    kinds = ["agreement", "privset", "codebook"]
    assert [q.channel.mechanism for q in following.questions if q.dimensions != (0,)] == kinds
    low, high = following.schema["x"].bounds
    assert high - low < 1.0
    assert following.schema["spoken"] == spoken
    weights = {q.channel.mechanism: q.weight for q in following.questions}
    assert min(weights[kind] for kind in kinds) > 10  # each of them is drawn often enough
    assert hd.Survey.from_json(following.to_json()) == following
    both = hd.combine([pilot, _seeded(following, 2), _seeded(survey, 3)])
    found = dict(
        zip(zip(both.statistics, both.dimensions, both.categories, strict=True), both.value, strict=True)
    )
    errors = dict(zip(found, both.standard_error, strict=True))
    for key, truth in (
        (("chosen", "spoken", "de"), 1.0),
        (("chosen", "spoken", "fr"), 0.0),
        (("number chosen", "spoken", None), 2.0),
        (("mean", "x", None), 0.1),
        (("mean", "v", "0"), 0.0),
    ):
        assert abs(found[key] - truth) < 5 * errors[key] + 0.002
    first = pilot.estimate()
    assert (both.standard_error <= first.standard_error * (1 + 1e-9)).all()


def test_a_selection_alone_is_repeated_by_the_same_survey():
    survey = hd.Survey(hd.Schema([hd.Selection("spoken", ["de", "en", "fr"], 2)]), epsilon=2.0)
    with pytest.raises(InvalidInput, match="other questions have no range to narrow"):
        hd.refine(_seeded(survey, 1))
    rounds = [_seeded(survey, seed) for seed in (1, 2)]
    combined, summed = hd.combine(rounds), (rounds[0] + rounds[1]).estimate()
    np.testing.assert_allclose(combined.value, summed.value, atol=0.02)


def groups(survey_of, tally_of, populations, budgets, seed, n=2000):
    """(combined, with inverse-variance weights, the mean of all users) for one group of users per population."""
    rng = np.random.default_rng(seed)
    users = [rng.choice(values, n) for values in populations]
    surveys = [survey_of(0, 100, epsilon=epsilon) for epsilon in budgets]
    tallies = [tally_of(*pair, seed + k) for k, pair in enumerate(zip(users, surveys, strict=True), start=1)]
    return hd.combine(tallies), hd.combine(tallies, same_population=True), np.concatenate(users).mean()


def test_groups_of_different_populations_are_weighted_by_their_size(survey_of, tally_of):
    """60 seeded draws: 95 % intervals that miss more than 8 of 60 have probability 2e-3; before, all missed."""
    first = np.clip(np.random.default_rng(0).normal(40, 15, 5000), 0, 100)
    inside = alone = 0
    for seed in range(0, 600, 10):
        both, by_error, true = groups(survey_of, tally_of, (first, 35 + 0.6 * first), (1.0, 4.0), seed)
        (low, high), (left, right) = both.interval(), by_error.interval()
        inside += int(low[0] <= true <= high[0])
        alone += int(left[0] <= true <= right[0])
        assert "the rounds differ" in both.notes[0]
        assert "the rounds differ" in both.table()[0]["note"]
    assert inside >= 52
    assert alone == 0


def test_small_rounds_that_are_combined_have_a_note(survey_of, tally_of):
    values = np.linspace(-1, 1, 100)
    small, large = (
        hd.combine([tally_of(np.tile(values, k), survey_of(), seed) for seed in (1, 2)]).table()[0]
        for k in (1, 3)
    )
    assert NO_LAW_NOTE in small["note"]
    assert NO_LAW_NOTE not in large.get("note", "")


def test_groups_of_one_population_lose_next_to_nothing(survey_of, tally_of):
    """60 seeded draws: the squared error is within 5 % of that with inverse-variance weights."""
    values = np.clip(np.random.default_rng(0).normal(40, 15, 5000), 0, 100)
    errors, inside = [], 0
    for seed in range(0, 600, 10):
        both, by_error, true = groups(survey_of, tally_of, (values, values), (1.0, 4.0), seed)
        errors.append([both.value[0] - true, by_error.value[0] - true])
        low, high = both.interval()
        inside += int(low[0] <= true <= high[0])
    found, best = np.square(errors).mean(axis=0)
    assert found <= 1.05 * best
    assert inside >= 52


def test_groups_that_differ_slightly_are_covered(survey_of, tally_of):
    """A difference of one standard error of the less exact group, which no test detects; 60 seeded draws.

    More than 8 misses of 60 intervals of 95 % have probability 2e-3; with weights by errors alone 23 % cover.
    """
    first = np.clip(np.random.default_rng(0).normal(40, 15, 5000), 0, 95)
    inside = alone = 0
    for seed in range(0, 600, 10):
        both, by_error, true = groups(survey_of, tally_of, (first, first + 2.3), (1.0, 4.0), seed)
        (low, high), (left, right) = both.interval(), by_error.interval()
        inside += int(low[0] <= true <= high[0])
        alone += int(left[0] <= true <= right[0])
        assert both.notes[0]
    assert inside >= 52
    assert alone < 40


def test_populations_that_are_said_to_differ_are_weighted_by_their_size(survey_of, tally_of):
    values = np.full(500, 30.0)
    tallies = [tally_of(values, survey_of(0, 100, epsilon=e), 1) for e in (1.0, 4.0)]
    means = [float(tally.estimate().value[0]) for tally in tallies]
    found = hd.combine(tallies, same_population=False)
    assert found.value[0] == pytest.approx(np.mean(means))
    assert found.notes[0] == "weighted by the number of users"
