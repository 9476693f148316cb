"""The benchmark measures what it says: rivals do the same work, clocks add up, peers may be absent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench import growth, rivals, suites
from bench.clock import cpu, interleave, slope, wall
from bench.peers import PEERS, open_peers
from bench.run import markdown, plot
from bench.suites import Suite
from hdr4me.mechanisms import mechanism

VALUES = np.random.default_rng(1).uniform(0, 1, (20_000, 5))


@pytest.mark.parametrize("name", ["piecewise", "square_wave"])
def test_rival_mixtures_have_the_right_moments(name: str) -> None:
    """Unseeded, as the rivals are: 7 σ, false alarm once in 10^11."""
    mech = mechanism(name, epsilon=1.0)
    sums, squares = rivals.mixture(name, 1.0, VALUES)
    mean, variance = mech.mean(VALUES), mech.variance(VALUES)
    assert (np.abs(sums - mean.sum(0)) < 7 * np.sqrt(variance.sum(0))).all()
    assert np.allclose(squares, (variance + mean**2).sum(0), rtol=0.1)


@pytest.mark.parametrize("way", [rivals.laplace_library, rivals.laplace_difference, rivals.laplace_sign])
def test_rival_laplaces_have_the_right_moments(way: object) -> None:
    """7 σ again; squares of 20,000 Laplace variates vary by 1.6 %, so 0.15 is 9 σ."""
    sums, squares = way(1.0, VALUES)  # type: ignore[operator]
    assert (np.abs(sums - VALUES.sum(0)) < 7 * np.sqrt(8.0 * len(VALUES))).all()
    assert np.allclose(squares, 8 * len(VALUES) + (VALUES**2).sum(0), rtol=0.15)


@pytest.mark.parametrize("sampled", [2, 5])
def test_the_loop_over_users_counts_each(sampled: int) -> None:
    sums, counts = rivals.per_user(1.0, VALUES[:200], sampled)
    assert counts.sum() == 200 * sampled
    assert np.isfinite(sums).all()


def test_numba_rival_has_the_right_mean() -> None:
    sums, _ = rivals.numba_random(1.0)(VALUES)
    assert (np.abs(sums - VALUES.sum(0)) < 7 * np.sqrt(5.0 * len(VALUES))).all()


def test_tasks_take_turns_and_keep_their_best() -> None:
    times = iter([9.0, 1.0, 3.0, 2.0, 2.0, 4.0])
    order: list[str] = []

    def task(name: str) -> float:
        order.append(name)
        return next(times)

    best = interleave({"a": lambda: task("a"), "b": lambda: task("b")}, 2)
    assert order == ["a", "b"] * 3
    assert best == {"a": 2.0, "b": 2.0}  # the first round only warms up
    assert cpu(lambda: None)() >= 0
    assert wall(lambda: None)() >= 0


def test_slope_of_a_power() -> None:
    assert slope([1.0, 10.0, 100.0], [2.0, 20.0, 200.0]) == pytest.approx(1.0)


def test_absent_peers_are_named() -> None:
    with open_peers(None) as peers:
        assert peers.seconds("no_such_task") == (float("inf"), 1.0)
        assert peers.seconds("no_such_task") == (float("inf"), 1.0)
        assert "KeyError" in peers.absent["no_such_task"]
    assert set(PEERS) == {"opendp", "diffprivlib", "pure_ldp", "multi_freq_ldpy", "duckdb", "polars"}


def test_suites_run_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every suite once, at sizes that take seconds; rates are positive and ratios are there."""
    monkeypatch.setattr(suites, "_N", 2_000)
    with open_peers(None) as peers:
        made = [suites.limits(1), suites.simulation(1, peers), suites.exact(1, peers)]
    for suite in made:
        assert all(rate >= 0 for rate in suite.rates.values())
        assert any(rate > 0 for rate in suite.rates.values())
    assert len(made[1].ratios) == 5
    assert len(made[2].ratios) == 2


def test_the_tasks_whose_growth_is_measured(tmp_path: Path) -> None:
    tasks = growth._tasks(500, 20, 2, tmp_path)
    assert set(tasks) == {"perturb", "tally of a file", "counting in memory"}
    assert all(task() >= 0 for task in tasks.values())


def test_document_tables_and_plot(tmp_path: Path) -> None:
    suite = Suite("A suite", "million values", {"hdr4me": 100.0, "absent": 0.0, "other": 0.5})
    suite.ratio("over other", 200.0, 5)
    document = {
        "date": "2026-01-01",
        "machine": {"processor": "any"},
        "suites": [vars(suite), vars(Suite("Growth", "", {"exponent": -0.01}))],
        "memory_megabytes": {"tally": {"1000000": 10.0, "10000000": 11.0}},
        "absent": {"peer": "not installed"},
    }
    text = markdown(document)
    assert "| over other | 200.00 | 5 |" in text
    assert "| exponent | -0.01 |" in text
    assert "peer: absent (not installed)" in text
    assert "| absent |" not in text
    plot(document, tmp_path / "bench.svg")
    assert (tmp_path / "bench.svg").read_text().startswith("<?xml")
