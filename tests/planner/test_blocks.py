"""Agreement blocks in a plan: chosen where they have less error, and then as good as promised."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import hdr4me as hd
from hdr4me.channels.agreement.design import agreement_channel, block_sizes, quick_second_moment
from hdr4me.engines import Local
from hdr4me.errors import InvalidInput
from hdr4me.planner.candidates import BLOCKS, arrangement, classes
from hdr4me.planner.workload import UNIFORM, Workload

ENDS = np.array([-1.0, 1.0])
FEW: Any = {"mechanisms": ["optimal_mean", "agreement"], "users": 1_000_000, "dims": 100}


@pytest.mark.parametrize(
    ("epsilon", "prior", "best", "error"),
    [
        (4.0, ENDS, "agreement", 41.2),
        (8.0, ENDS, "agreement", 12.4),
        (4.0, "uniform", "agreement", 41.8),
        (8.0, "uniform", "agreement", 13.1),
        (1.0, "uniform", "optimal_mean", None),
        (4.0, stats.norm(0, 0.1), "optimal_mean", None),
    ],
)
def test_the_planner_chooses_by_its_prior(epsilon: float, prior, best: str, error: float | None) -> None:
    found = hd.plan(epsilon=epsilon, prior=prior, **FEW).best
    assert found.mechanism == best
    if error is not None:
        assert round(found.mse * 1_000_000, 1) == error


def test_sizes_in_floats_and_in_fractions() -> None:
    for epsilon in (1.5, 4.0, 8.0, 16.0):
        for b in (2, 3, 8, 64, 100):
            assert quick_second_moment(epsilon, b) == pytest.approx(
                agreement_channel(epsilon, b).response.contrast_c ** -2,  # type: ignore[attr-defined]
                rel=1e-6,
            )


def test_uneven_blocks_are_averaged() -> None:
    """100 numbers in blocks of at most 8 are nine of 8 and four of 7: each user answers one of 13."""
    found = classes(Workload.of_size(100), BLOCKS, "", 10_000, 6.0, (8,)).variances[0, 0]
    squares = np.repeat(
        [quick_second_moment(6.0, b) for b in block_sizes(100, 8)], block_sizes(100, 8)
    ).mean()
    expected = (13 * squares - UNIFORM.variance) / 10_000
    assert found == pytest.approx(expected, rel=2e-3)  # E[1/r] is a little more than 1/E[r]
    three = Workload.of_size(3)
    assert [arrangement(BLOCKS).possible(three, 6.0, b) for b in (1, 2, 3, 4)] == [False, False, True, False]
    assert classes(three, BLOCKS, "", 100, 6.0, (2,), worst=True).mse[0] > 1e9


def test_the_survey_of_an_option_keeps_the_promise() -> None:
    """The engine's squared error over the plan's, 60 collections of 30 numbers: false alarm below 1e-9."""
    schema = hd.Schema([hd.Numeric(f"x{j}", 0, 10) for j in range(30)])
    n = 2000
    rng = np.random.default_rng(6)
    records = np.where(rng.random((n, 30)) < 0.5, 0.0, 10.0)
    option = hd.plan(users=n, schema=schema, epsilon=6.0, prior=ENDS, mechanisms=["agreement"]).best
    survey = option.survey()
    assert {channel.mechanism for channel in survey.channels} == {"agreement"}
    assert sum(len(question.dimensions) for question in survey.questions) == 30
    assert option.reports_per_dimension == n / len(survey.questions)
    total = 0.0
    for _ in range(60):
        tally = hd.Tally(survey)
        for block in Local(threads=1).reports(records, survey):
            tally.add_block(block)
        total += float(np.mean(((tally.estimate().value - records.mean(axis=0)) / 5) ** 2))
    assert total / 60 == pytest.approx(
        option.mse, rel=0.2
    )  # its relative standard deviation is √(2/1800) = 0.033


def test_what_is_refused_and_what_is_left_out() -> None:
    with pytest.raises(InvalidInput, match="two or more numbers"):
        hd.plan(users=100, dims=1, epsilon=8.0, mechanisms=["agreement"])
    with pytest.raises(InvalidInput, match="two or more numbers"):
        hd.plan(users=100, dims=5, category_count=3, epsilon=8.0, mechanisms=["agreement"])
    optional = hd.Schema([hd.Numeric("a", 0, 1), hd.Numeric("b", 0, 1, optional=True)])
    with pytest.raises(InvalidInput, match="none of them optional"):
        hd.plan(users=100, schema=optional, epsilon=8.0, mechanisms=["agreement"])
    small = hd.plan(users=1000, dims=10, epsilon=1.0, mechanisms=["duchi", "agreement"])
    assert {option.mechanism for option in small} == {"duchi"}
    alone = hd.plan(users=1000, dims=10, epsilon=1.0, mechanisms=["agreement"])
    assert alone.best.mechanism == "agreement"
    assert "(mechanism for numbers: agreement in blocks of " in alone.summary
    assert alone.best.epsilon_per_value == 1.0
    found = hd.plan(users=20, dims=10, epsilon=4.0, mechanisms=["agreement"]).best
    assert found.small_sample
    assert found.worst_tolerance_each > found.tolerance_each
    users = hd.plan(dims=20, epsilon=8.0, tolerance=0.1, mechanisms=["agreement"])
    assert users.best.users > 100
