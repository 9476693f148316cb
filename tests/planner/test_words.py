from typing import Any

import numpy as np
import pytest

from hdr4me.planner import plan
from hdr4me.planner.words import number, percent
from hdr4me.survey import Categorical, Numeric, Schema


def test_each_question_has_its_own_opening() -> None:
    setting: Any = {"mechanisms": ["duchi"]}
    assert plan(users=9000, dims=4, epsilon=1.0, **setting).summary.startswith(
        "With 9,000 users and ε = 1, each of 4"
    )
    assert plan(dims=4, epsilon=1.0, tolerance=0.1, **setting).summary.startswith("You need ")
    needed = plan(users=9000, dims=4, tolerance=0.1, **setting).summary
    assert needed.startswith("You need ε = ")
    assert "with 9,000 users. Then each" in needed
    asked = plan(users=9000, epsilon=1.0, tolerance=0.1, **setting)
    assert asked.summary.startswith(
        f"The survey can have {asked.best.dims:,} dimensions with 9,000 users at ε = 1. Then"
    )


def test_one_mean_needs_no_joint_promise() -> None:
    words = plan(users=9000, dims=1, epsilon=1.0, tolerance=0.1).summary
    assert "the estimate will be within ±" in words
    assert "all of them at once" not in words
    assert "by all of them at once" not in words


def test_frequencies_and_methods_are_named() -> None:
    assert "each of 12 frequencies" in plan(users=9000, dims=4, category_count=3, epsilon=1.0).summary
    schema = Schema([Numeric("a", 0, 1), Categorical("b", ["x", "y"])])
    mixed = plan(users=9000, schema=schema, epsilon=1.0, mechanisms=["duchi"], categorical=["oue"]).summary
    assert "each of 1 mean and 2 frequencies" in mixed
    assert "(mechanism for numbers: duchi; categories: oue)" in mixed


def test_all_zeros_in_both_directions() -> None:
    hopeless = plan(users=50, dims=100, epsilon=0.5).summary
    assert hopeless.startswith(
        "Not recommended: guessing zero for every mean without any data has a smaller expected error."
    )
    good = plan(users=10**7, dims=10, epsilon=1.0)
    assert any("times the mean squared error" in note for note in good.notes)
    assert "Not recommended" not in good.summary


def test_optimal_is_not_always_first() -> None:
    setting: Any = {"users": 100_000, "dims": 100, "epsilon": 2.0}
    assert plan(mechanisms=["optimal", "piecewise"], **setting).best.mechanism == "piecewise"
    assert plan(prior="worst", **setting).best.mechanism != "optimal"


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


def test_a_plan_reads_as_sentences() -> None:
    choices = [Categorical(f"c{i}", [str(k) for k in range(size)]) for i, size in enumerate((3, 4))]
    schema = Schema(
        [*(Numeric(f"n{i}", 0, 100) for i in range(5)), *choices, Numeric("pay", 0, 1, optional=True)]
    )
    found = plan(users=20_000, schema=schema, epsilon=1.0, mechanisms=["optimal_mean"], categorical=["auto"])
    answers = (
        "(mechanism for numbers: optimal_mean; optional numbers: optional; categories: chosen automatically)"
    )
    assert found.summary.endswith(f"Each person answers 1 of the 8 questions {answers}.")
    assert (
        found.notes[0] == "Assumes that 90 % of people have a value; pass --prior FILE to use your own share."
    )
    assert found.notes[1].startswith(
        "Assumes that values are spread evenly over their ranges; pass --prior FILE"
    )


def test_the_ranking_is_by_the_tolerance_that_is_shown() -> None:
    """Two numbers and ten categories: pairs have the smaller MSE over all rows, and the larger tolerance."""
    labels = [str(k) for k in range(10)]
    schema = Schema([Numeric("a", 0, 100), Numeric("b", 0, 10), Categorical("c", labels)])
    setting: Any = {"users": 20_000, "schema": schema, "epsilon": 2.0}
    found, by_mse = plan(**setting), plan(rank_by="mse", **setting)
    assert (found.best.mechanism, by_mse.best.mechanism) == ("optimal_mean", "pair")
    assert found.best.tolerance_each == pytest.approx(0.0240, abs=1e-4)
    assert by_mse.best.tolerance_each == pytest.approx(0.0269, abs=1e-4)
    assert all(found.best.tolerance_joint <= option.tolerance_joint for option in found)
    each = plan(per_dimension=True, **setting)
    assert all(each.best.tolerance_each <= option.tolerance_each for option in each)


def test_each_row_has_its_own_tolerance_in_own_units() -> None:
    """Frequencies are predicted with their own error, not with that of the least accurate mean."""
    schema = Schema([Numeric("a", 0, 100), Categorical("c", [str(k) for k in range(10)])])
    found = plan(users=20_000, schema=schema, epsilon=2.0, mechanisms=["duchi"], categorical=["grr"])
    kept, law = found.own_units, found.best.deviation()
    sds = {row.dimension: error for row, error in law.standard_errors.items()}
    assert kept["a"]["each"] == pytest.approx(1.959964 * sds["a"])
    assert kept["c"]["each"] == pytest.approx(1.959964 * sds["c"])
    assert kept["c"]["each"] < 0.8 * kept["a"]["each"] / 50
    assert kept["c"]["all"] / kept["c"]["each"] == pytest.approx(kept["a"]["all"] / kept["a"]["each"])
    within = law.probabilities_within({row: kept[row.dimension]["all"] for row in law.rows})
    assert np.prod([p ** (10 if row.dimension == "c" else 1) for row, p in within.items()]) == pytest.approx(
        0.95
    )
    assert "The least accurate row is the mean of a." in found.notes
