from typing import Any

import numpy as np
import pytest

from hdr4me.errors import InvalidInput, NotReachable
from hdr4me.framework import deviation
from hdr4me.mechanisms import mechanism, names
from hdr4me.mechanisms.registry import registered, scaled_mechanism
from hdr4me.planner import plan
from hdr4me.planner.search import MAX_DIMS, MAX_EPSILON, MAX_USERS
from hdr4me.survey import Categorical, Numeric, Schema

# The best m for d = 100 and uniform data; n large, as in the table of n·MSE.
BEST_M = {
    0.1: {"laplace": 1, "duchi": 1, "piecewise": 1, "hybrid": 1, "square_wave": 1},
    1.0: {"laplace": 1, "duchi": 1, "piecewise": 1, "hybrid": 1, "square_wave": 1},
    4.0: {"laplace": 1, "duchi": 2, "piecewise": 1, "hybrid": 1, "square_wave": 1},
    8.0: {"laplace": 2, "duchi": 4, "piecewise": 2, "hybrid": 2, "square_wave": 3},
}


@pytest.mark.parametrize("users", [100_000, 8_000_000_000])
@pytest.mark.parametrize("epsilon", BEST_M)
def test_the_planner_picks_the_best_m(epsilon: float, users: int) -> None:
    found = plan(users=users, dims=100, epsilon=epsilon)
    picked = {option.mechanism: option.sampled for option in found.mechanisms}
    assert {name: picked[name] for name in BEST_M[epsilon]} == BEST_M[epsilon]
    errors = [option.mse for option in found]
    assert errors == sorted(errors)
    assert {option.sampled for option in found} >= {1, 100}  # the paper's m = d is always shown


@pytest.mark.parametrize("name", [n for n in names() if not n.startswith("optimal")])
@pytest.mark.parametrize("prior", ["uniform", "worst"])
def test_numbers_are_the_frameworks(name: str, prior: Any) -> None:
    best = plan(users=50_000, dims=30, epsilon=3.0, mechanisms=[name], prior=prior, tolerance=0.05).best
    law: Any = scaled_mechanism(name, epsilon=3.0 / best.sampled)
    if best.epsilon_per_value >= registered(name).table_from:  # what is deployed
        law = law.exact()
    setting: dict[str, Any] = {
        "users": 50_000,
        "dims": 30,
        "sampled": best.sampled,
        "calibrated": True,
    }
    dev = deviation(law, prior="uniform" if prior == "uniform" else None, **setting)
    worst = deviation(law, **setting)
    # A worst case is a finite population, whose variance has the divisor n − 1: 2e-5 at 50,000 users.
    assert best.mse == pytest.approx(dev.mse, rel=1e-8 if prior == "uniform" else 3e-4)
    assert best.worst_mse == pytest.approx(worst.mse, rel=3e-4)
    assert best.probability_within == pytest.approx(float(dev.probability_within(0.05)), rel=3e-4)
    assert best.joint_probability_within == pytest.approx(dev.joint_probability_within(0.05), rel=1e-2)
    assert best.tolerance_each == pytest.approx(dev.tolerance(0.95), rel=3e-4)
    assert best.tolerance_joint == pytest.approx(dev.tolerance(0.95, jointly=True), rel=3e-4)
    assert best.deviation(worst=prior == "worst").mse == pytest.approx(best.mse, rel=1e-12)


@pytest.mark.parametrize("jointly", [True, False])
def test_fewest_users(jointly: bool) -> None:
    found = plan(dims=40, epsilon=2.0, tolerance=0.05, probability=0.9, per_dimension=not jointly)
    n = found.best.users
    assert found.solved == "users"
    reached = [
        plan(users=k, dims=40, epsilon=2.0, tolerance=0.05, per_dimension=not jointly) for k in (n, n - 1)
    ]
    at = [
        max(o.joint_probability_within if jointly else o.probability_within for o in options)
        for options in reached
    ]
    assert at[0] >= 0.9 > at[1]


def test_fewest_users_is_one_where_the_tolerance_is_wide() -> None:
    assert plan(dims=1, epsilon=20.0, tolerance=50.0).best.users == 1


def test_smallest_epsilon() -> None:
    found = plan(users=200_000, dims=50, tolerance=0.05)
    ε = found.best.epsilon
    assert found.solved == "epsilon"
    assert max(o.joint_probability_within for o in found) >= 0.95
    less = plan(users=200_000, dims=50, epsilon=ε * 0.998, tolerance=0.05)
    assert max(o.joint_probability_within for o in less) < 0.95
    assert float(f"{ε:.4g}") == ε  # four digits, rounded up
    assert plan(users=10**9, dims=1, tolerance=3.0).best.epsilon == 1e-4


def test_most_dimensions() -> None:
    found = plan(users=100_000, epsilon=1.0, tolerance=0.1)
    d = found.best.dims
    assert found.solved == "dims"
    more = plan(users=100_000, dims=d + 1, epsilon=1.0, tolerance=0.1)
    assert max(o.joint_probability_within for o in found) >= 0.95
    assert max(o.joint_probability_within for o in more) < 0.95
    assert plan(users=MAX_USERS, epsilon=8.0, tolerance=1.0).best.dims == MAX_DIMS
    frequencies = plan(users=100_000, epsilon=1.0, tolerance=0.1, category_count=8)
    assert frequencies.best.workload.categorical == ((8, frequencies.best.dims),)


def test_not_reachable_states_what_is_reachable() -> None:
    with pytest.raises(
        NotReachable, match=r"With 30,000 users and ε = 1, the tolerance ±0\.2 for 750 means is not reached"
    ) as refusal:
        plan(users=30_000, dims=750, epsilon=1.0, tolerance=0.2, probability=0.95)
    nearest = refusal.value.nearest
    assert nearest.best.tolerance_joint > 0.2
    assert "; ±" in str(refusal.value)
    users = plan(dims=750, epsilon=1.0, tolerance=0.2).best.users
    assert f"{users:,} users" in str(refusal.value)
    with pytest.raises(NotReachable, match=r"\. .* users or ε = .* would suffice"):
        plan(users=100_000, dims=10, epsilon=0.1, tolerance=0.05, probability=0.95)


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ({"dims": 750, "epsilon": 1e-3, "tolerance": 1e-4}, f"Even with {MAX_USERS:,} users"),
        ({"dims": 750, "users": 100, "tolerance": 1e-3}, f"Even with ε = {MAX_EPSILON:g}"),
        ({"users": 10, "epsilon": 0.1, "tolerance": 1e-3}, "Even with one dimension"),
    ],
)
def test_beyond_every_limit(question: dict[str, Any], says: str) -> None:
    with pytest.raises(NotReachable) as refusal:
        plan(**question)
    assert says in str(refusal.value)
    assert len(refusal.value.nearest) > 0


def test_reachable_when_everything_is_given() -> None:
    found = plan(users=10**7, dims=10, epsilon=1.0, tolerance=0.05, probability=0.95)
    assert found.solved == ""
    assert found.best.joint_probability_within >= 0.95


def test_everything_given_is_ranked_and_says_what_is_not_reached() -> None:
    found = plan(users=150_000, dims=750, epsilon=1.0, tolerance=0.05)
    assert not found.reachable
    assert len(found) > 1
    reached = f"±{found.best.tolerance_joint:.2g} is"
    assert (
        f"The tolerance ±0.05 is not reached by all at once with 95 % probability; {reached}" in found.summary
    )
    refusal = found.refusal()
    assert isinstance(refusal, NotReachable)
    assert refusal.nearest.reachable
    alone = plan(users=150_000, dims=750, epsilon=1.0, tolerance=0.4, per_dimension=True)
    assert alone.reachable
    assert alone.shortfall == ""
    assert not plan(users=150_000, dims=750, epsilon=1.0, tolerance=0.4).reachable


def test_the_nearest_to_too_many_categories_has_categories() -> None:
    with pytest.raises(
        NotReachable, match=r"Even with one dimension, the tolerance ±0\.001 for 4 frequencies is not reached"
    ):
        plan(users=10, epsilon=0.1, tolerance=1e-3, category_count=4)


@pytest.mark.parametrize("d", [750, 10_000])
def test_thousands_of_dimensions_are_planned(d: int) -> None:
    """Whatever is left out; each takes less than a second (measured, not asserted: time is no property of a test)."""
    for question in (
        {"users": 150_000 + d, "epsilon": 1.1},
        {"epsilon": 1.2, "tolerance": 0.3},
        {"users": 10**7 + d, "tolerance": 0.3},
    ):
        found = plan(dims=d, **question)
        assert found.best.sampled >= 1
        assert f"{d:,} means" in found.summary


def test_different_tolerances_different_winners() -> None:
    """As in Table II: at a small budget raw Square wave keeps wide tolerances, and never narrow ones."""
    found = plan(users=150_000, dims=750, epsilon=1.0)
    by = {winner.tolerance: winner for winner in found.winners}
    assert not by[0.001].raw
    assert by[1.0].raw
    assert by[1.0].mechanism == "square_wave"
    assert by[1.0].probability_within > by[0.001].probability_within


def test_a_mixed_schema_becomes_a_survey() -> None:
    schema = Schema(
        [Numeric("age", 0, 120), Categorical("smoker", ["no", "yes"]), Numeric("height", 50, 250)]
    )
    found = plan(users=20_000, schema=schema, epsilon=1.0, mechanisms=["duchi", "piecewise"])
    best = found.best
    assert best.workload.n_coordinates == 4
    assert {(o.mechanism, o.categorical) for o in found} >= {("duchi", "grr"), ("piecewise", "oue")}
    survey = best.survey()
    assert (survey.epsilon, survey.sampled) == (1.0, best.sampled)
    assert survey.channels[0].mechanism == best.mechanism


def test_survey_for_a_schema_given_later() -> None:
    option = plan(users=20_000, dims=2, epsilon=1.0, mechanisms=["duchi"]).best
    schema = Schema([Numeric("a", 0, 1), Numeric("b", 0, 1)])
    assert option.survey(schema, name="late").name == "late"
    with pytest.raises(InvalidInput, match="schema is missing"):
        option.survey()
    with pytest.raises(InvalidInput, match="does not match the plan"):
        option.survey(Schema([Numeric("a", 0, 1)]))


def test_rank_by_probability() -> None:
    found = plan(users=10_000, dims=20, epsilon=1.0, tolerance=0.2, rank_by="probability")
    probabilities = [option.joint_probability_within for option in found]
    assert probabilities == sorted(probabilities, reverse=True)


def test_a_large_budget_has_a_large_m() -> None:
    """Beyond the dense part of the grid the best m is looked for between its steps."""
    found = plan(users=10_000, dims=1000, epsilon=300.0, mechanisms=["piecewise"])
    m = found.best.sampled
    assert m > 64
    for beside in (m - 8, m - 3, m + 3, m + 8):
        law = mechanism("piecewise", epsilon=300.0 / beside)
        dev = deviation(law, users=10_000, dims=1000, sampled=beside, prior="uniform")
        assert found.best.mse <= dev.mse * (1 + 1e-6)


def test_no_table_is_finer_than_its_levels() -> None:
    """However large ε is, rounding to 256 levels costs Δ²/6, and the deployed table agrees."""
    best = plan(users=1000, dims=1, epsilon=100.0, mechanisms=["piecewise"]).best
    table = mechanism("piecewise", epsilon=100.0).exact()
    assert best.mse == pytest.approx(deviation(table, users=1000, prior="uniform").mse, rel=0.01)


def test_a_plan_is_a_sequence_and_a_document() -> None:
    found = plan(users=10_000, dims=20, epsilon=1.0, tolerance=0.2)
    assert found[0] is found.best is next(iter(found))
    assert found[:2] == found.options[:2]
    document = found.to_dict()
    assert document["options"][0]["mechanism"] == found.best.mechanism
    assert set(document["options"][0]) >= {
        "mechanism",
        "sampled",
        "mse",
        "probability_within",
        "recalibration",
    }
    assert len(document["winners"]) >= 6


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ({}, "users, dims and epsilon are missing"),
        ({"dims": 5}, "users and epsilon are missing"),
        ({"dims": 5, "epsilon": 1.0}, "tolerance is missing"),
        ({"users": 0, "dims": 5, "epsilon": 1.0}, "users = 0"),
        ({"users": 10**11, "dims": 5, "epsilon": 1.0}, "users = 100000000000"),
        ({"users": "many", "dims": 5, "epsilon": 1.0}, "users = 'many'"),
        ({"users": float("nan"), "dims": 5, "epsilon": 1.0}, "users = nan"),
        ({"users": 9, "dims": 0, "epsilon": 1.0}, "dims = 0"),
        ({"users": 9, "dims": 10**6, "epsilon": 1.0}, "dims = 1000000"),
        ({"users": 9, "dims": 5, "epsilon": -1.0}, "epsilon = -1.0"),
        ({"users": 9, "dims": 5, "epsilon": 1.0, "tolerance": 0.0}, "tolerance = 0.0"),
        ({"users": 9, "dims": 5, "epsilon": 1.0, "probability": 1.0}, "probability = 1.0"),
        ({"users": 9, "dims": 5, "epsilon": 1.0, "prior": "normal"}, "prior = 'normal'"),
        ({"users": 9, "dims": 5, "epsilon": 1.0, "rank_by": "luck"}, "rank_by = 'luck'"),
        ({"users": 9, "dims": 5, "epsilon": 1.0, "mechanisms": ["magic"]}, "mechanisms = 'magic'"),
        ({"users": 9, "dims": 5, "epsilon": 1.0, "mechanisms": []}, "mechanisms = []"),
        ({"users": 9, "dims": 5, "epsilon": 1.0, "category_count": 1}, "category_count = 1"),
        ({"users": 9, "dims": 5, "epsilon": 1.0, "schema": Schema([Numeric("a", 0, 1)])}, "give either"),
    ],
)
def test_refusals(question: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        plan(**question)
    assert says in str(refusal.value)


def test_one_mechanism_by_its_bare_name() -> None:
    assert {o.mechanism for o in plan(users=9, dims=5, epsilon=1.0, mechanisms="duchi")} == {"duchi"}


def test_a_simulated_plan_keeps_its_promise() -> None:
    """The fewest users for ±0.2 jointly at 80 %: 1,500 simulated collections keep it; 4 standard errors (6e-5)."""
    d, k = 6, 1500
    best = plan(dims=d, epsilon=2.0, tolerance=0.2, probability=0.8, mechanisms=["piecewise"]).best
    law, n, m = mechanism("piecewise", epsilon=2.0 / best.sampled), best.users, best.sampled
    rng = np.random.default_rng(12)
    kept = 0
    for _ in range(k):
        values = rng.uniform(-1, 1, (n, d))
        chosen = np.argsort(rng.random((n, d)), axis=1)[:, :m]
        reports = law.sample(np.take_along_axis(values, chosen, axis=1), rng)
        sums = np.bincount(chosen.ravel(), weights=reports.ravel(), minlength=d)
        received = np.bincount(chosen.ravel(), minlength=d)
        kept += int(np.all(np.abs(sums / received - values.mean(axis=0)) <= 0.2))
    assert kept / k == pytest.approx(0.8, abs=4 * np.sqrt(0.16 / k))


@pytest.mark.parametrize(
    ("mse", "verdict"),
    [(0.26, "likely to help"), (0.24, "of little help"), (0.06, "of little help"), (0.04, "not worthwhile")],
)
def test_the_verdict_on_recalibration(mse: float, verdict: str) -> None:
    """The gain of linear shrinkage, mse/(mse + mean square of the means), against 25 % and 5 %."""
    from hdr4me.planner.plan import recalibration

    assert recalibration(mse, 1.0 - mse).verdict == verdict
