"""Numbers asked in pairs: when a plan uses them, and their predicted error."""

from __future__ import annotations

import pytest
from scipy import stats

import hdr4me as hd
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.priors import as_prior
from hdr4me.planner.candidates import PAIR, arrangement, neighbors
from hdr4me.planner.reports import pair_moments
from planner_curves import pair_row

UNIFORM = as_prior("uniform")
EVEN = UNIFORM, UNIFORM


@pytest.mark.parametrize(("epsilon", "single", "paired"), [(2.0, 117.0, 102.5), (4.0, 45.5, 29.7)])
def test_the_published_errors_of_100_numbers(epsilon: float, single: float, paired: float) -> None:
    """n·MSE of 100 numbers spread evenly, one of them sent, and one pair sent: at most as published."""
    n = 10**9
    plan = hd.plan(users=n, dims=100, epsilon=epsilon, mechanisms=["optimal_mean", "pair"])
    best = {option.mechanism: option for option in plan.mechanisms}
    assert plan.best.mechanism == PAIR
    assert best["optimal_mean"].mse * n <= single
    assert best[PAIR].mse * n <= paired * 1.001
    assert best[PAIR].reports_per_dimension == pytest.approx(2 * best["optimal_mean"].reports_per_dimension)
    assert "(mechanism for numbers: in pairs)" in plan.summary


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_the_stored_curve_is_what_designs_have(epsilon: float) -> None:
    """At a stored budget the table is not designed for a plan: the curve has its numbers."""
    mean, largest = pair_row(epsilon)
    assert pair_moments(epsilon, EVEN, EVEN, exact=True)[0] == pytest.approx(mean - 1 / 3, rel=1e-5)
    assert pair_moments(epsilon, EVEN, EVEN, exact=True)[2] == pytest.approx(largest, rel=1e-5)


def test_between_stored_budgets() -> None:
    """Interpolated within 2 % while a plan searches; what is shown is the design's own number."""
    quick, exact = (pair_moments(0.6, EVEN, EVEN, exact=x)[0] for x in (False, True))
    assert quick == pytest.approx(exact, rel=0.02)
    assert exact == pytest.approx(pair_row(0.6)[0] - 1 / 3, rel=1e-9)


def test_small_and_large_budgets() -> None:
    """Below the least budget of designs second moments grow as 1/ε²; beyond the largest there is nothing to gain."""
    assert pair_moments(0.005, EVEN, EVEN, exact=True)[2] == pytest.approx(
        100 * pair_moments(0.05, EVEN, EVEN, exact=True)[2], rel=1e-9
    )
    assert (pair_moments(0.01, EVEN, EVEN, exact=True) > pair_moments(0.1, EVEN, EVEN, exact=True)).all()
    assert (pair_moments(20.0, EVEN, EVEN, exact=True) == pair_moments(10.0, EVEN, EVEN, exact=True)).all()


@pytest.mark.parametrize(("epsilon", "gain"), [(2.0, "1.1"), (4.0, "1.6")])
def test_a_plan_pairs_numbers_by_default(epsilon: float, gain: str) -> None:
    """By default neighbors are paired if that lowers the error, and a note gives the gain."""
    schema = hd.Schema([hd.Numeric(f"x{i}", 0, 10) for i in range(6)])
    plan = hd.plan(schema=schema, users=100_000, epsilon=epsilon)
    assert plan.best.mechanism == PAIR
    gained = f"Asking numbers in pairs divides the mean squared error by {gain}, compared with optimal_mean."
    assert gained in plan.notes
    assert "(mechanism for numbers: in pairs)" in plan.summary
    survey = plan.best.survey()
    assert [question.dimensions for question in survey.questions] == [(0, 1), (2, 3), (4, 5)]
    assert hd.Survey.from_json(survey.to_json()) == survey


def test_a_plan_does_not_pair_where_nothing_is_gained() -> None:
    """Small budget, one number, optional numbers, categories, values near the middle: no pair is first."""
    optional = hd.Schema([hd.Numeric(x, 0, 1, optional=True) for x in "ab"])
    near = stats.norm(0, 0.05)
    setting: dict[str, int] = {"users": 100_000}
    for plan in (
        hd.plan(dims=10, epsilon=1.0, **setting),
        hd.plan(dims=1, epsilon=4.0, **setting),
        hd.plan(schema=optional, epsilon=4.0, **setting),
        hd.plan(dims=10, category_count=5, epsilon=4.0, **setting),
        hd.plan(dims=10, epsilon=2.0, prior=near, mechanisms=["optimal_mean", "pair"], **setting),
    ):
        assert plan.best.mechanism != PAIR


def test_pairs_and_blocks_do_not_keep_other_statistics_from_being_planned() -> None:
    """Of blocks and pairs only means are predicted: they are left out, and the others are ranked."""
    for statistic in ("variance", "covariance"):
        plan = hd.plan(users=100_000, dims=4, epsilon=4.0, statistic=statistic)
        assert not {option.mechanism for option in plan.options} & {"pair", "agreement"}
    with pytest.raises(InvalidInput, match="by mechanisms other than pair and agreement"):
        hd.plan(users=100_000, dims=4, epsilon=4.0, statistic="covariance", mechanisms=["pair"])


def test_no_option_asks_for_a_pair_under_less_than_a_pair_needs() -> None:
    """Every option's survey can be made: a pair needs ε/m of at least 0.05."""
    schema = hd.Schema([hd.Numeric(f"x{i}", 0, 1) for i in range(80)])
    plan = hd.plan(schema=schema, users=10**6, epsilon=1.6, mechanisms=["pair"])
    assert {option.sampled for option in plan.options} >= {1, 2}
    assert all(option.epsilon_per_value >= 0.05 for option in plan.options)


def test_a_list_of_mechanisms_without_pairs_leaves_them_out() -> None:
    plan = hd.plan(users=100_000, dims=40, epsilon=4.0, mechanisms=["optimal_mean"])
    assert {option.mechanism for option in plan} == {"optimal_mean"}
    assert "pairs" not in plan.summary


def test_the_survey_asks_neighbours_together() -> None:
    schema = hd.Schema(
        [*(hd.Numeric(f"x{i}", 0, 1) for i in range(5)), hd.Categorical("pet", ["cat", "dog"])]
    )
    assert neighbors(schema) == [("x0", "x1"), ("x2", "x3")]
    option = hd.plan(schema=schema, users=10_000, epsilon=2.0, mechanisms=["pair"]).best
    survey = option.survey()
    assert [question.dimensions for question in survey.questions] == [(0, 1), (2, 3), (4,), (5,)]
    assert arrangement(PAIR).n_questions(option.workload) == len(survey.questions)


def test_what_cannot_be_paired() -> None:
    optional = hd.Schema([hd.Numeric("a", 0, 1, optional=True), hd.Numeric("b", 0, 1)])
    with pytest.raises(InvalidInput, match=r"not optional.*remove optional and give a default"):
        hd.plan(schema=optional, users=100, epsilon=1.0, mechanisms=["pair"])
    with pytest.raises(InvalidInput, match=r"at least 0\.05"):
        hd.plan(users=100, dims=4, epsilon=0.01, mechanisms=["pair"])
