"""Distributions, histograms and cumulative shares; every draw is seeded, so nothing here depends on luck."""

from __future__ import annotations

import numpy as np
import pytest

import hdr4me as hd
from hdr4me.errors import InvalidInput
from hdr4me.framework.em import LADDER, climb, fit
from hdr4me.statistics.shapes import Bounds, Grid, shapes

N = 100_000


def populations():
    rng = np.random.default_rng(11)
    return {
        "age": np.clip(rng.normal(40, 18, N), 0, 120) / 60 - 1,
        "beta": rng.beta(2, 5, N) * 2 - 1,
        "income": np.clip(np.exp(rng.normal(0, 0.6, N)) / 8 * 2 - 1, -1, 1),
    }


def wasserstein(shape, values):
    x = np.linspace(-1, 1, 4001)
    true = np.searchsorted(np.sort(values), x, side="right") / len(values)
    return float(np.abs(shape.cdf(x) - true).mean() * 2)


@pytest.mark.parametrize(("name", "bar"), [("age", 0.012), ("beta", 0.013), ("income", 0.016)])
def test_the_distance_to_the_truth_is_small(survey_of, tally_of, name, bar):
    """Mean over six seeded draws; the bars are for n = 100,000 and epsilon = 1 on a range of width 2."""
    values = populations()[name]
    own, default = (
        np.mean([
            wasserstein(shapes(tally_of(values, survey_of(mechanism=mechanism), seed), [0])[0], values)
            for seed in range(6)
        ])
        for mechanism in ("square_wave", "optimal")
    )  # fmt: skip
    assert own <= bar
    assert default <= 1.35 * bar


@pytest.mark.parametrize("name", ["age", "beta", "income"])
def test_quantiles_are_no_worse_than_by_smoothing_of_one_strength(survey_of, tally_of, name):
    """Li et al.'s estimator on the same 16 seeded draws of counts; benchmarks/more_statistics.py has the campaign."""
    survey, values, p = survey_of(mechanism="square_wave"), populations()[name], (0.05, 0.25, 0.5, 0.75, 0.95)
    if name == "age":  # a quarter of the users are below 20
        rng = np.random.default_rng(12)
        values = (
            np.clip(np.where(rng.random(N) < 0.25, rng.uniform(0, 20, N), rng.normal(45, 18, N)), 0, 100) / 50
            - 1
        )
    reading = survey.questions[0].channel.response.marginal()
    grid, fine = Grid.of(reading), Grid.of(reading, 256)
    counts = np.stack([tally_of(values, survey, seed).counts.astype(float) for seed in range(16)])
    ours = climb(grid.joined(counts), grid.law, grid.shape)
    theirs = fit(fine.joined(counts), fine.law, fine.shape, np.ones(16), steps=2000, tolerance=1e-3 * np.e)
    true = np.quantile(values, p, method="inverted_cdf")
    errors = [
        np.sqrt(
            np.mean([(np.interp(p, row, g.edges) - true) ** 2 for row in g.cumulative(f.p)], axis=0)
        ).mean()
        for g, f in ((grid, ours), (fine, theirs))
    ]
    assert errors[0] <= 1.02 * errors[1]


def test_smoothing_follows_the_counts(survey_of, tally_of):
    survey = survey_of(mechanism="square_wave")
    even = np.linspace(-1, 1, N)
    spikes = np.where(np.arange(N) % 2 == 0, -0.8, 0.3)
    assert shapes(tally_of(even, survey, 1), [0])[0].strength == LADDER[0]
    assert shapes(tally_of(spikes, survey, 1), [0])[0].spiky


def test_em_raises_the_likelihood_and_keeps_probabilities(survey_of, tally_of):
    grid = Grid.of(survey_of().questions[0].channel.response.marginal())
    counts = grid.joined(tally_of(populations()["beta"], survey_of(), 3).counts.astype(float))[None, :]
    before = -np.inf
    for steps in (1, 10, 100):
        found = fit(counts, grid.law, grid.shape, np.zeros(1), steps=steps, tolerance=0.0)
        assert found.p.min() >= 0
        assert found.p.sum() == pytest.approx(1)
        assert found.log_likelihood[0] >= before
        before = found.log_likelihood[0]


def test_rows_are_fitted_alike_alone_and_together(survey_of, tally_of):
    grid = Grid.of(survey_of().questions[0].channel.response.marginal())
    rows = np.stack(
        [grid.joined(tally_of(v, survey_of(), 5).counts.astype(float)) for v in populations().values()]
    )
    together = climb(rows, grid.law, grid.shape)
    for i in range(len(rows)):
        alone = climb(rows[i : i + 1], grid.law, grid.shape)
        np.testing.assert_allclose(alone.p[0], together.p[i], atol=1e-9)


def test_a_histogram_with_chosen_edges(survey_of, tally_of):
    values = np.random.default_rng(1).normal(45, 20, N).clip(0, 120)
    tally = tally_of(values, survey_of(0, 120), 2)
    answer = hd.ask(tally, "histogram", "x", edges=[0, 30, 60, 120])
    true = np.histogram(values, [0, 30, 60, 120])[0] / N
    assert answer.categories == ("0 to 30", "30 to 60", "60 to 120")
    assert answer.value.sum() == pytest.approx(1)
    np.testing.assert_allclose(answer.value, true, atol=0.04)  # one seeded draw
    low, high = answer.interval()
    assert ((low <= true) & (true <= high)).all()
    joint_low, joint_high = answer.interval(simultaneous=True)
    assert (joint_low <= low).all()
    assert (joint_high >= high).all()


def test_a_distribution_has_equal_bins_of_the_range(survey_of, tally_of):
    answer = tally_of(np.zeros(1000), survey_of(0, 10), 1).ask("distribution", "x", bins=5)
    assert answer.categories == ("0 to 2", "2 to 4", "4 to 6", "6 to 8", "8 to 10")
    assert answer.statistics == ("distribution",) * 5


def test_cumulative_shares_rise_and_their_bounds_hold(survey_of, tally_of):
    values = populations()["income"]
    answer = hd.ask(tally_of(values, survey_of(), 2), "cdf", "x", x=[-0.9, -0.5, 0.0])
    true = np.array([(values <= x).mean() for x in (-0.9, -0.5, 0.0)])
    for kind in ("conservative", "approximate"):
        low, high = answer.interval(kind=kind)
        assert ((low <= true) & (true <= high)).all()
    assert (np.diff(answer.value) >= 0).all()


@pytest.mark.parametrize("mechanism", ["optimal", "piecewise", "square_wave"])
@pytest.mark.parametrize("even", [False, True])
def test_weights_satisfy_their_inequality_at_every_input(survey_of, mechanism, even):
    """Lower bounds up to x come from the mirror image of upper ones, where the table is its own mirror image."""
    bounds = Bounds(survey_of(mechanism=mechanism).questions[0].channel.response.marginal())
    for high in (-0.97, -0.31, 0.25):
        for upper in (False, True):
            law, target = bounds._target(-1.0, high, upper, even)
            u = bounds._weights(-1.0, high, 5000.0, 0.95, upper, even)
            assert ((law @ u - target) * (1 if upper else -1)).min() >= -1e-12


def test_dimensions_with_about_as_many_reports_share_their_weights(survey_of, monkeypatch):
    """At 1,000 reports Student's t differs from one number of reports to the next."""
    from hdr4me.statistics import shapes as module

    made: list[float] = []
    design = module._design
    monkeypatch.setattr(module, "_design", lambda *given: made.append(given[3]) or design(*given))
    bounds = Bounds(survey_of(mechanism="piecewise").questions[0].channel.response.marginal())
    even = bounds.marginal.at(np.linspace(-1, 1, 201))[:, 0].mean(axis=0)
    for r in (1000.0, 1010.0, 1090.0):
        low, high = bounds.share(r * even, -1.0, 0.25)
        assert low < 0.625 < high
        assert bounds.side(r * even, -1.0, -0.25, 0.95, False) < 0.375
    # upper up to .25, and up to −.25 for the lower bound up to .25; then the mirror image of the first
    assert made == [2.0**10] * 2


@pytest.mark.parametrize("values", [np.full(1000, -1.0), np.full(1000, 1.0), np.linspace(-1, 1, 1000)])
@pytest.mark.parametrize("mechanism", ["optimal", "piecewise"])
def test_weights_of_a_bound_dominate_every_distribution(survey_of, values, mechanism):
    """No chance at all: the expected counts of any values give an upper bound above the share and a lower one below."""
    bounds = Bounds(survey_of(mechanism=mechanism).questions[0].channel.response.marginal())
    counts = bounds.marginal.at(values)[:, 0].mean(axis=0) * 1e9
    for low, high in ((-1.0, -0.3), (-0.31, 0.42), (0.0, 1.0)):
        share = ((values >= low) & (values <= high)).mean()
        below, above = bounds.share(counts, low, high, 0.5)
        assert below <= share + 1e-3
        assert above >= share - 1e-3


def test_optional_numbers_have_a_distribution_among_those_who_have_one(survey_of, tally_of):
    values = np.random.default_rng(5).normal(45, 20, N).clip(0, 120)
    true = (values <= 45).mean()
    values[: N // 3] = np.nan
    answer = hd.ask(tally_of(values, survey_of(0, 120, optional=True), 2), "cdf", "x", x=45.0)
    low, high = answer.interval()
    assert low[0] <= true <= high[0]
    assert answer.value[0] == pytest.approx(true, abs=0.05)  # one seeded draw


def test_a_pair_of_numbers_has_both_distributions():
    survey = hd.Survey(
        hd.Schema([hd.Numeric("a", 0, 1), hd.Numeric("b", 0, 1)]), epsilon=2.0, pair_questions=[("a", "b")]
    )
    table, tally = survey.questions[0].channel, hd.Tally(survey)
    size = table.inputs[0].size
    rows = np.array(table.weights, float) / 2**32  # type: ignore[attr-defined]
    mix = (
        0.5 * rows[0 * size + size // 2] + 0.5 * rows[(size - 1) * size + size // 2]
    )  # a is 0 or 1, b in the middle
    tally.counts[:] = np.random.default_rng(2).multinomial(N, mix / mix.sum())
    tally.n_reports = N
    a = hd.ask(tally, "cdf", "a", x=[0.2, 0.8])
    b = hd.ask(tally, "cdf", "b", x=[0.2, 0.8])
    for answer, true in ((a, [0.5, 0.5]), (b, [0.0, 1.0])):
        low, high = answer.interval()
        assert (low <= true).all()
        assert (high >= true).all()
    np.testing.assert_allclose(a.value, [0.5, 0.5], atol=0.1)
    np.testing.assert_allclose(b.value, [0.0, 1.0], atol=0.1)


@pytest.mark.parametrize("statistic", ["distribution", "quantile", "variance", "sd"])
def test_two_cells_carry_no_distribution(survey_of, tally_of, statistic):
    tally = tally_of(np.zeros(100), survey_of(mechanism="duchi"), 1)
    with pytest.raises(InvalidInput, match=r"cannot be estimated from reports by 'duchi'.*square_wave"):
        hd.ask(tally, statistic, "x")
    assert len(hd.ask(tally, statistic)) == 0


def test_a_category_is_referred_to_its_frequency():
    tally = hd.Tally(hd.Survey(hd.Schema([hd.Categorical("c", ["a", "b"])])))
    with pytest.raises(InvalidInput, match="ask for its frequency"):
        hd.ask(tally, "quantile", "c")


@pytest.mark.parametrize(
    ("statistic", "options", "named"),
    [
        ("histogram", {}, "edges"),
        ("histogram", {"edges": [1.0]}, "edges"),
        ("histogram", {"edges": [0.5, 0.2]}, "edges"),
        ("histogram", {"edges": [-2.0, 0.2]}, "edges"),
        ("cdf", {"x": "a"}, "x"),
        ("cdf", {"x": [float("nan")]}, "x"),
        ("distribution", {"bins": 1}, "bins"),
        ("distribution", {"edges": [0, 1]}, "'edges'"),
        ("quantile", {"p": 1.0}, "p"),
        ("quantile", {"q": 0.5}, "'q'"),
        ("variance", {"p": 1.0}, "'p'"),
        ("sd", {"p": 1.0}, "'p'"),
    ],
)
def test_wrong_options_are_named(survey_of, tally_of, statistic, options, named):
    with pytest.raises(InvalidInput, match=named):
        hd.ask(tally_of(np.zeros(100), survey_of(), 1), statistic, "x", **options)


def test_a_wrong_kind_of_interval_is_named(survey_of, tally_of):
    answer = hd.ask(tally_of(np.zeros(100), survey_of(), 1), "quantile", "x")
    with pytest.raises(InvalidInput, match="kind"):
        answer.interval(kind="credible")


def test_without_reports_nothing_is_known(survey_of):
    answer = hd.ask(hd.Tally(survey_of()), "quantile", "x")
    assert answer.status == ("no reports",) * 3
    assert [row["estimate"] for row in answer.table()] == [None] * 3
    assert hd.ask(hd.Tally(survey_of()), "cdf", x=0.0).status == ("no reports",)
    assert hd.ask(hd.Tally(survey_of()), "variance").status == ("no reports",)


def test_progress_is_reported(survey_of):
    survey = hd.Survey(hd.Schema([hd.Numeric(f"x{j}", -1, 1) for j in range(5)]))
    tally = hd.Tally(survey)
    tally.counts[:] = 10
    tally.n_reports = 78 * 25
    calls = []
    hd.ask(tally, "distribution", progress=lambda done, of: calls.append((done, of)))
    assert calls[-1] == (5, 5)


def test_the_purpose_chooses_the_mechanism():
    schema = hd.Schema([hd.Numeric("x", 0, 1)])
    for purpose, mechanism in (("mean", "optimal"), ("distribution", "square_wave"), ("both", "piecewise")):
        assert hd.Survey(schema, purpose=purpose) == hd.Survey(schema, mechanism=mechanism)
    with pytest.raises(InvalidInput, match="purpose"):
        hd.Survey(schema, purpose="fun")
    with pytest.raises(InvalidInput, match="either mechanism or purpose"):
        hd.Survey(schema, purpose="mean", mechanism="duchi")
