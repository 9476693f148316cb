"""Errors predicted for each statistic against simulation; every draw is seeded."""

from __future__ import annotations

import math

import numpy as np
import pytest

import hdr4me as hd
from hdr4me.errors import InvalidInput
from hdr4me.planner import plan
from hdr4me.planner.statistics import predict

N = 40_000


def population(seed=1):
    return np.random.default_rng(seed).beta(2, 5, N) * 2 - 1


def tallies(values, survey, draws, seed):
    """Tallies of users drawn from the values; one question."""
    rng = np.random.default_rng(seed)
    reading = survey.questions[0].channel.response.marginal()
    for _ in range(draws):
        users = rng.choice(values, values.size)
        place = (users + 1) / reading.step
        level = np.minimum(place.astype(int), reading.levels.size - 2)
        level = level + (rng.random(level.size) < place - level)
        law = reading.law[:, 0] / reading.law[:, 0].sum(axis=1, keepdims=True)
        tally = hd.Tally(survey)
        tally.counts[:] = rng.multinomial(np.bincount(level, minlength=reading.levels.size), law).sum(axis=0)
        tally.n_reports = users.size
        yield tally


@pytest.mark.no_cover
@pytest.mark.parametrize("mechanism", ["square_wave", "optimal"])
def test_quantiles_and_distributions_have_the_predicted_error(mechanism):
    """16 seeded draws each: a root mean square of 48 errors is known to 15 %, and the predicted one to 20 %."""
    values = population()
    found = plan(users=N, dims=1, epsilon=1.0, prior=values[:1000], mechanisms=[mechanism])
    survey = hd.Survey(hd.Schema([hd.Numeric("x", -1, 1)]), 1.0, mechanism)
    p = (0.25, 0.5, 0.75)
    true, errors, gaps = np.quantile(values, p), [], []
    x = np.linspace(-1, 1, 21)
    cumulative = np.searchsorted(np.sort(values), x[1:]) / N
    for tally in tallies(values, survey, 16, 3):
        errors.append(hd.ask(tally, "quantile", "x", p=p).value - true)
        shares = hd.ask(tally, "distribution", "x", bins=20).value
        gaps.append(np.abs(np.cumsum(shares) - cumulative).mean() * 2)
    assert predict(found.best, "quantile") == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=0.45)
    assert predict(found.best, "distribution") == pytest.approx(np.mean(gaps), rel=0.45)


@pytest.mark.no_cover
@pytest.mark.parametrize("mechanism", ["square_wave", "optimal"])
def test_variances_have_the_predicted_error(mechanism):
    """60 seeded draws: the standard deviation of 60 draws is known to 9 %."""
    values = population(2)
    found = plan(users=N, dims=1, epsilon=1.0, prior=values[:1000], mechanisms=[mechanism])
    survey = hd.Survey(hd.Schema([hd.Numeric("x", -1, 1)]), 1.0, mechanism)
    given = [hd.ask(tally, "variance", "x").value[0] for tally in tallies(values, survey, 60, 4)]
    assert predict(found.best, "variance") == pytest.approx(np.std(given), rel=0.3)
    half = predict(found.best, "variance") / (2 * values.std())
    assert predict(found.best, "sd") == pytest.approx(half, rel=0.02)


def test_covariances_have_the_stated_error():
    """The error that an answer reports for independent, even values is the one predicted, to 10 %: one seeded draw."""
    survey = hd.Survey(hd.Schema([hd.Numeric("a", -1, 1), hd.Numeric("b", -1, 1)]), 4.0, "optimal", sampled=2)
    found = plan(users=N, dims=2, epsilon=4.0, mechanisms=["optimal"], statistic="covariance")
    option = next(o for o in found if o.sampled == 2)
    rng, channel = np.random.default_rng(5), survey.questions[0].channel
    law = channel.response.marginal().in_bins(np.array([-1.0, 1.0]))[0, 0]
    joint = rng.multinomial(N, np.outer(law, law).ravel() / law.sum() ** 2).reshape(law.size, -1)
    pairs, tally = hd.PairCounts(survey, [("a", "b")]), hd.Tally(survey)
    counts = pairs.counts[0, 1]
    counts[:-1, :-1], counts[-1, :-1], counts[:-1, -1] = joint, joint.sum(axis=0), joint.sum(axis=1)
    counts[-1, -1] = tally.n_reports = N
    for q in (0, 1):
        tally.layout.of_question(tally.counts, q)[:] = joint.sum(axis=1 - q)
    answer = hd.ask(tally, "covariance", ["a", "b"], pair_counts=pairs)
    assert predict(option, "covariance") == pytest.approx(answer.standard_error[0], rel=0.1)


def test_a_product_question_has_a_smaller_predicted_error():
    numbers = [hd.Numeric("a", -1, 1), hd.Numeric("b", -1, 1)]
    by_pairs = plan(
        users=N, schema=hd.Schema(numbers), epsilon=1.0, statistic="covariance", mechanisms=["optimal"]
    )
    asked = hd.Schema([*numbers, hd.Product("a × b", ["a", "b"])])
    by_product = plan(users=N, schema=asked, epsilon=1.0, statistic="covariance", mechanisms=["optimal"])
    assert by_product.statistic_errors[0] < by_pairs.statistic_errors[0] / 4
    assert by_product.best.sampled == 1


def test_a_mean_by_group_needs_two_answers():
    schema = hd.Schema([hd.Numeric("x", -1, 1), hd.Categorical("g", ["a", "b", "c"])])
    found = plan(users=N, schema=schema, epsilon=4.0, statistic="mean_by", mechanisms=["optimal"])
    assert found.best.sampled == 2
    assert 0 < found.statistic_errors[0] < 0.2
    assert found.summary.startswith(
        "With 40,000 users and ε = 4, the standard error of the mean in a group is"
    )


def test_the_ranking_is_by_the_statistic_that_was_asked():
    by_mean = plan(users=N, dims=1, epsilon=1.0, mechanisms=["duchi", "square_wave", "optimal"])
    by_variance = plan(
        users=N, dims=1, epsilon=1.0, mechanisms=["duchi", "square_wave", "optimal"], statistic="variance"
    )
    assert by_mean.best.mechanism == "optimal"
    assert by_variance.best.mechanism == "square_wave"
    assert {option.mechanism for option in by_variance} == {"square_wave", "optimal"}
    assert list(by_variance.statistic_errors) == sorted(by_variance.statistic_errors)
    assert by_variance.error_of(by_variance[1]) == by_variance.statistic_errors[1]
    assert by_mean.error_of(by_mean.best) == math.sqrt(by_mean.best.mse)
    assert by_variance.to_dict()["statistic"] == "variance"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"statistic": "median"}, "statistic = 'median' is not allowed: .*one of mean, distribution"),
        ({"statistic": "quantile", "mechanisms": ["duchi"]}, "estimate only means: add square_wave"),
        ({"statistic": "covariance"}, "needs users who answer two questions"),
        ({"statistic": "mean_by"}, "a number and a category"),
        ({"statistic": "quantile", "quantiles": [0.0]}, "quantiles = .* is not allowed"),
        ({"statistic": "mean", "quantiles": [0.5]}, "quantiles = .* is not allowed: it needs statistic"),
        ({"statistic": "quantile", "tolerance": 0.1}, "apply to means only"),
        ({"statistic": "variance", "category_count": 3}, "need a number that is not optional"),
    ],
)
def test_what_cannot_be_ranked_says_why(options, words):
    with pytest.raises(InvalidInput, match=words):
        plan(**{"users": 1000, "dims": 1, "epsilon": 1.0} | options)
