"""Constants of the planner are fixed by the quantities they bound."""

from __future__ import annotations

import numpy as np
import pytest

import hdr4me as hd
from hdr4me.framework.population import Population
from hdr4me.framework.prediction import survey_prediction
from hdr4me.mechanisms.joint import optional_number, optional_reach
from hdr4me.planner.candidates import PAIR, PAIRS_FROM, _number_chosen
from hdr4me.planner.workload import Group, Workload, baseline


def test_the_bound_for_optional_numbers_is_just_beyond_the_outputs_of_the_designs() -> None:
    """The largest output of a table, over (e^ε + 2)/(e^ε − 1), is 1.46 at ε = 3 and less at other budgets.

    A promise for few reports is false if it assumes less, and wasteful if it assumes much more.
    """
    ratios = []
    for epsilon in (1.0, 2.0, 3.0, 4.0):
        made = optional_number(epsilon)
        largest = max(float(np.abs(made.decoders[name]).max()) for name in ("value", "present"))
        ratios.append(optional_reach(epsilon) / largest)
    assert min(ratios) >= 1.0
    assert min(ratios) < 1.15


def test_pairs_are_tried_from_the_budget_at_which_they_gain_two_per_cent() -> None:
    """100 numbers spread evenly: the gain is below 2 % at the limit and above it 0.1 later."""

    def gain(epsilon: float) -> float:
        plan = hd.plan(users=10**9, dims=100, epsilon=epsilon, mechanisms=["optimal_mean", PAIR])
        mse = {option.mechanism: option.mse for option in plan.mechanisms}
        return mse["optimal_mean"] / mse[PAIR]

    assert gain(PAIRS_FROM) < 1.02 < gain(PAIRS_FROM + 0.1)
    for epsilon, tried in ((PAIRS_FROM - 0.01, False), (PAIRS_FROM, True)):
        plan = hd.plan(users=100_000, dims=4, epsilon=epsilon)
        assert (PAIR in {option.mechanism for option in plan.options}) is tried


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [
        ("laplace", 29.0),
        ("laplace", 60.0),
        ("scdf", 7.9),
        ("scdf", 30.0),
        ("staircase", 7.9),
        ("staircase", 20.0),
    ],
)
@pytest.mark.filterwarnings("ignore::hdr4me.errors.PrivacyWarning")
def test_a_plan_of_unbounded_noise_predicts_the_error_of_its_survey(name: str, epsilon: float) -> None:
    """A table has 256 cells: from some budget on its error is no longer that of the law, by up to half at ε = 20."""
    best = hd.plan(users=1000, dims=1, epsilon=epsilon, mechanisms=[name]).best
    survey = hd.Survey(hd.Schema([hd.Numeric("x", -1, 1)]), epsilon=epsilon, mechanism=name)
    even = Population(np.linspace(-1, 1, 4001)[None], np.full(4001, 1 / 4001), finite=False)
    assert best.mse == pytest.approx(float(survey_prediction(survey, [even], 1000).variance), rel=0.005)


def test_a_plan_asks_for_the_fewest_users() -> None:
    """The table of the first number of users is better than its law by 0.35 %, and the second number needs one more."""
    schema = hd.Schema([hd.Numeric(name, 0, 1, optional=True) for name in "ab"])
    users = hd.plan(schema=schema, epsilon=5.5, tolerance=0.02).best.users
    for n, keeps in ((users, True), (int(0.998 * users), False)):
        assert (hd.plan(schema=schema, epsilon=5.5, users=n).best.tolerance_joint <= 0.02) is keeps


def test_fewer_users_with_a_small_sample_are_not_replaced_by_more_than_before() -> None:
    """400 users keep ±0.04, and 300 have bounds for small samples, which keep ±0.11: 400 is the answer, not 1,447."""
    values = np.clip(np.random.default_rng(2).normal(0.3, 0.1, 4000), -1, 1)
    best = hd.plan(dims=4, epsilon=5.0, tolerance=0.05, mechanisms=["optimal_mean"], prior=values).best
    assert best.users == 400
    assert best.tolerance_joint < 0.05


def test_the_worst_spread_of_the_number_of_choices_is_that_of_none_and_all() -> None:
    """Half of the users choose nothing and half choose the most: the largest variance of a number in [0, 1]."""
    group = Group(1, size=10, choices=3)
    spread = _number_chosen(group, 1.0, 1.0, worst=True) - _number_chosen(group, 1.0, 0.0, worst=True)
    assert spread == pytest.approx(np.var([0.0, 1.0]))


def test_the_baseline_of_numbers_is_the_mean_square_of_uniform_means() -> None:
    means = np.random.default_rng(4).uniform(-1, 1, 200_000)
    assert baseline(Workload((Group(5),))).zeros == pytest.approx(np.mean(means**2), rel=0.01)
