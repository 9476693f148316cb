"""Conservative intervals cover in small samples: a short seeded version of benchmarks/interval_coverage.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import statsmodels.api as sm

import hdr4me as hd
from hdr4me.engines.general import perturb_any
from hdr4me.io.columns import from_batch
from hdr4me.io.reading import record_batches
from hdr4me.simulation.collection import SeededDraws, simulate_tally
from hdr4me.statistics.intervals import APPROXIMATE_NOTE, NO_LAW_NOTE, SMALL_SAMPLE

FAIR = sm.datasets.fair.load().data
RANDHIE = sm.datasets.randhie.load().data
# Skewed, zero-inflated, heaped and with a handful of values; ranges as one would declare them.
COLUMNS = {
    "visits": (RANDHIE["mdvis"].to_numpy(np.float64), 0.0, 80.0),
    "affairs": (FAIR["affairs"].to_numpy(np.float64), 0.0, 60.0),
    "disease": (RANDHIE["disea"].to_numpy(np.float64), 0.0, 60.0),
    "education": (FAIR["educ"].to_numpy(np.float64), 0.0, 99.0),
}


@pytest.mark.parametrize("name", list(COLUMNS))
@pytest.mark.parametrize(("mechanism", "epsilon"), [("piecewise", 8.0), ("optimal", 4.0)])
def test_shares_of_rare_bins_cover_and_have_a_width(
    survey_of: Any, tally_of: Any, name: str, mechanism: str, epsilon: float
) -> None:
    """100 of 1,000 users answer; 30 seeded draws of 5 bins and 2 cumulative shares: right intervals cover 93 % of them.

    Below 88 % with probability 2e-3 if the rows of one draw were independent.
    """
    own, low, high = COLUMNS[name]
    survey, rng = survey_of(low, high, mechanism=mechanism, epsilon=epsilon), np.random.default_rng(5)
    edges, points = low + (high - low) * np.array([0, 0.02, 0.1, 0.3, 0.9, 1]), np.quantile(own, [0.3, 0.9])
    inside, total = 0, 0
    for seed in range(30):
        users = rng.choice(own, 1000).clip(low, high)
        tally = tally_of(users[:100], survey, seed)
        tally.n_reports = 1000
        for truth, answer in (
            (np.histogram(users, edges)[0] / 1000, hd.ask(tally, "histogram", "x", edges=edges)),
            ((users[:, None] <= points).mean(axis=0), hd.ask(tally, "cdf", "x", x=points)),
        ):
            ends = answer.interval(0.95)
            assert (ends[1] - ends[0] > 0.01).all()
            assert (ends[0] >= 0).all()
            assert (ends[1] <= 1).all()
            inside += int(((ends[0] <= truth + 1e-12) & (truth <= ends[1] + 1e-12)).sum())
            total += truth.size
    assert inside >= 0.88 * total


@pytest.mark.parametrize("epsilon", [8.0, 12.0])
def test_rare_shares_of_agreement_blocks_cover(epsilon: float) -> None:
    """A share of 3 %, 30 of about 60 users: the normal law covered 63 % at ε = 8 and 9 to 26 % at ε = 12."""
    names = [f"x{i}" for i in range(8)]
    numbers = [hd.Numeric(name, 0, 1) for name in (*names, *(f"y{i}" for i in range(8)))]
    survey = hd.Survey(
        hd.Schema(numbers), epsilon=epsilon, block_questions=[names, [f"y{i}" for i in range(8)]]
    )
    rng, inside, total = np.random.default_rng(3), 0, 0
    for seed in range(40):
        values = (rng.random((60, 16)) < 0.03).astype(float)
        records = pa.table({number.name: values[:, i] for i, number in enumerate(numbers)})
        answer = simulate_tally(records, survey, seed=seed).estimate()
        low, high = answer.interval(0.95)
        truth = values.mean(axis=0)
        inside += int(((low <= truth) & (truth <= high)).sum())
        total += truth.size
        assert set(answer.laws()) == {SMALL_SAMPLE}
    assert inside >= 0.93 * total


def test_means_by_group_cover() -> None:
    """80 users in two groups, 30 seeded draws; a group without a significant share has no interval."""
    schema = hd.Schema([hd.Numeric("visits", 0, 80), hd.Categorical("group", ["a", "b"])])
    survey = hd.Survey(schema, epsilon=8.0, sampled=2, mechanism="piecewise")
    rng, inside, total = np.random.default_rng(2), 0, 0
    for _ in range(30):
        visits, group = rng.choice(COLUMNS["visits"][0], 80), rng.choice(["a", "b"], 80, p=[0.7, 0.3])
        source = from_batch(
            next(iter(record_batches(pa.table({"visits": visits, "group": group}), survey))), survey
        )
        block = perturb_any(source.columns, survey, source.n, source.vectors, SeededDraws(rng))
        pairs = hd.PairCounts(survey, [("visits", "group")]).add_block(block)
        answer = hd.ask(hd.Tally(survey).add_block(block), "mean_by", ["visits", "group"], pair_counts=pairs)
        ok = np.array([status == "ok" for status in answer.status])
        truth = np.array([visits[group == name].mean() for name in "ab"])
        low, high = answer.interval(0.95)
        inside += int(((low <= truth) & (truth <= high))[ok].sum())
        total += int(ok.sum())
    assert total > 30
    assert inside >= 0.9 * total


def test_rows_say_what_their_intervals_assume(survey_of: Any, tally_of: Any) -> None:
    """An 11-valued score: each approximate row has a note; so has a small sample without a small-sample law."""
    score = np.random.default_rng(1).integers(0, 11, 500) / 10.0
    tally = tally_of(score, survey_of(0, 1, mechanism="piecewise", epsilon=8.0), 1)
    for statistic, options in (("quantile", {"p": [0.25, 0.5, 0.75]}), ("cdf", {"x": [0.3, 0.5]})):
        answer = hd.ask(tally, statistic, "x", **options)
        assert all(row["note"] for row in answer.table(kind="approximate"))
        low, high = answer.interval()
        truth = (
            np.quantile(score, options["p"])
            if "p" in options
            else (score[:, None] <= options["x"]).mean(axis=0)
        )
        assert ((low <= truth) & (truth <= high)).all()
    assert APPROXIMATE_NOTE in hd.ask(tally, "variance").table(kind="approximate")[0]["note"]
    vectors = hd.Survey(hd.Schema([hd.Vector("v", 3)]), epsilon=4.0)
    small = simulate_tally(pa.table({"v": [[0.1, 0.1, 0.1]] * 20}), vectors, seed=1).estimate()
    assert all(row["note"] == NO_LAW_NOTE for row in small.table())


def test_statistics_of_optional_numbers_share_one_gate(survey_of: Any, tally_of: Any) -> None:
    """Nobody has a value: no estimate of the values is printed, and no interval excludes anything."""
    survey = survey_of(0, 100, optional=True, epsilon=1.0)
    tally = tally_of(np.full(2000, np.nan), survey, 3)
    for statistic, options in (
        ("mean", {}),
        ("variance", {}),
        ("sd", {}),
        ("quantile", {"p": 0.5}),
        ("cdf", {"x": 50.0}),
        ("histogram", {"edges": [0, 50, 100]}),
    ):
        for row in hd.ask(tally, statistic, "x", **options).table():
            assert row["status"].startswith("not significant")
            assert row["estimate"] is None
            assert (row["lower"], row["upper"]) in ((None, None), (0.0, 100.0))
