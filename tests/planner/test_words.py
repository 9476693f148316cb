from typing import Any

import pytest

from hdr4me.planner import plan
from hdr4me.planner.words import number, percent
from hdr4me.survey import Categorical, Numeric, Schema


def test_each_question_has_its_own_opening() -> None:
    small_sample: Any = {"mechanisms": ["duchi"]}
    assert plan(users=9000, dims=4, epsilon=1.0, **small_sample).summary.startswith(
        "With 9,000 users and ε = 1, each of 4"
    )
    assert plan(dims=4, epsilon=1.0, tolerance=0.1, **small_sample).summary.startswith("You need ")
    needed = plan(users=9000, dims=4, tolerance=0.1, **small_sample).summary
    assert needed.startswith("You need ε = ")
    assert "with 9,000 users: then each" in needed
    asked = plan(users=9000, epsilon=1.0, tolerance=0.1, **small_sample)
    assert asked.summary.startswith(
        f"You can ask {asked.best.dims:,} dimensions of 9,000 users at ε = 1: then"
    )


def test_one_mean_needs_no_joint_promise() -> None:
    words = plan(users=9000, dims=1, epsilon=1.0, tolerance=0.1).summary
    assert "the estimate will be within ±" in words
    assert "all of them at once" not in words
    assert "and by all at once" not in words


def test_frequencies_and_methods_are_named() -> None:
    assert "each of 12 frequencies" in plan(users=9000, dims=4, category_count=3, epsilon=1.0).summary
    schema = Schema([Numeric("a", 0, 1), Categorical("b", ["x", "y"])])
    mixed = plan(users=9000, schema=schema, epsilon=1.0, mechanisms=["duchi"], categorical=["oue"]).summary
    assert "each of 1 mean and 2 frequencies" in mixed
    assert "by duchi and oue" in mixed


def test_all_zeros_in_both_directions() -> None:
    hopeless = plan(users=50, dims=100, epsilon=0.5).summary
    assert hopeless.startswith(
        "NOT WORTH ASKING AS IT IS: answering all zeros without asking anybody would score BETTER"
    )
    assert "times the error" in plan(users=10**7, dims=10, epsilon=1.0).summary


def test_optimal_is_not_always_first() -> None:
    small_sample: Any = {"users": 100_000, "dims": 100, "epsilon": 2.0}
    assert plan(mechanisms=["optimal", "piecewise"], **small_sample).best.mechanism == "piecewise"
    assert plan(prior="worst", **small_sample).best.mechanism != "optimal"


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (0.2134, "0.21"),
        (0.1, "0.1"),
        (3.0, "3"),
        (12.7, "13"),
        (1234.0, "1200"),
        (0.00031, "0.00031"),
        (4.2e-6, "0.0000042"),
    ],
)
def test_numbers_are_plain(x: float, text: str) -> None:
    assert number(x) == text


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (0.95, "95 %"),
        (0.9994, "over 99.9 %"),
        (1.0, "100 %"),
        (0.0, "0 %"),
        (1e-5, "under 0.1 %"),
        (0.735, "73.5 %"),
    ],
)
def test_percentages_never_round_to_certainty(p: float, text: str) -> None:
    assert percent(p) == text
