"""Alarms: none for users who follow the protocol, and alarms for poisoned reports. All draws are seeded."""

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import hdr4me as hd
from hdr4me.accounting.poisoning import ManipulationBound, manipulation_bounds
from hdr4me.auditing import alarms, present_shares, watch
from hdr4me.auditing.alarms import evidence, most_copies
from hdr4me.channels import UnaryEncoding
from hdr4me.channels.proof import ONE
from hdr4me.cli.app import app
from hdr4me.errors import InvalidInput
from hdr4me.io.files import write_reports
from hdr4me.mechanisms import mechanism
from hdr4me.tally import Tally

R = 100_000


def populations(n_levels: int) -> list[np.ndarray]:
    """Difficult populations of honest users: all at one end, half at each end, narrow, uniform, skewed."""
    level = np.linspace(0, 1, n_levels)
    at_end, ends = np.zeros(n_levels), np.zeros(n_levels)
    at_end[-1] = 1.0
    ends[[0, -1]] = 0.5
    narrow = np.exp(-(((level - 0.6) / 0.02) ** 2)) + 1e-12
    skewed = level * (1 - level) ** 4 + 1e-9
    return [at_end, ends, narrow / narrow.sum(), np.full(n_levels, 1 / n_levels), skewed / skewed.sum()]


def table_tally(name: str, epsilon: float) -> Tally:
    return Tally(hd.Survey(hd.Schema([hd.Numeric("a", 0, 1)]), epsilon=epsilon, mechanism=name))


def fill(tally: Tally, counts: np.ndarray) -> Tally:
    tally.counts[:] = counts
    tally.n_reports = int(counts.sum()) // tally.survey.questions[0].channel.per_report
    return tally


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["piecewise", "hybrid", "optimal", "duchi", "three_outputs"])
def test_tables_of_honest_reports_raise_no_alarm(name: str) -> None:
    """50 tallies at a nominal 20 %: more than 20 false alarms have probability 3e-4 if the level is kept exactly."""
    rng = np.random.default_rng(7)
    tally = table_tally(name, 1.0)
    rows = np.array(tally.survey.channels[0].rows) / ONE
    alarms = 0
    for shares in populations(len(rows)):
        for _ in range(10):
            counts = rng.multinomial(20_000, shares @ rows / (shares @ rows).sum())
            alarms += bool(watch(fill(tally, counts), false_alarm_rate=0.2).alarms)
    assert alarms <= 20


class Seeded:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def bits(self, n: int) -> int:
        return self._random.getrandbits(n)

    def below(self, n: int) -> int:
        return self._random.randrange(n)


@pytest.mark.no_cover
@pytest.mark.parametrize("categorical", ["grr", "subset", "projective", "oue", "histogram"])
def test_categories_of_honest_reports_raise_no_alarm(categorical: str) -> None:
    """30 tallies at a nominal 20 %: more than 14 false alarms have probability 4e-4 if the level is kept exactly."""
    schema = hd.Schema([hd.Categorical("c", [str(i) for i in range(12)])])
    survey = hd.Survey(schema, epsilon=1.0, categorical=categorical)
    channel, draws, alarms = survey.channels[0], Seeded(3), 0
    for run in range(30):
        counts = np.zeros(channel.n_counters, np.int64)
        for i in range(400):
            x = (0, i % 2, i % 12)[run % 3]
            counts[list(channel.counters(channel.sample(x, draws)))] += 1
        alarms += bool(watch(fill(Tally(survey), counts), false_alarm_rate=0.2).alarms)
    assert alarms <= 14


TABLES = [
    (name, epsilon)
    for name in ("laplace", "staircase", "piecewise", "hybrid", "pm_sub", "optimal", "optimal_mean")
    for epsilon in (0.5, 1.0, 2.0, 4.0)
] + [("square_wave", 0.5)]  # at larger ε its 250 cells take seconds: benchmarks/alarms.py


@pytest.mark.parametrize(("name", "epsilon"), TABLES)
def test_one_per_cent_at_the_top_cell_is_detected(name: str, epsilon: float) -> None:
    """Poisoned reports at the cell with the largest decoded value, among three populations of honest users."""
    rng = np.random.default_rng(11)
    tally = table_tally(name, epsilon)
    channel = tally.survey.channels[0]
    rows = np.array(channel.rows) / ONE
    if rows.shape[1] == 2:
        pytest.skip("nothing can be detected in a table of two cells")
    for shares in populations(len(rows))[1:4]:
        counts = rng.multinomial(R - R // 100, shares @ rows / (shares @ rows).sum())
        counts[int(np.argmax(channel.decoders["value"]))] += R // 100  # type: ignore[attr-defined]
        found = watch(fill(tally, counts), false_alarm_rate=0.001)
        assert found.alarms, (name, epsilon)


def test_three_cells_and_three_rows_explain_all_counts() -> None:
    rows = np.array(table_tally("three_outputs", 1.0).survey.channels[0].rows) / ONE
    assert rows.shape == (3, 3)
    shares = np.full(3, 1 / 3) @ rows
    counts = (R * 0.99 * shares).astype(np.int64)
    counts[-1] += R // 100
    # There is a population of honest users with exactly these shares.
    weights = np.linalg.solve(rows.T, counts / counts.sum())
    assert weights.min() > 0
    assert evidence(rows, counts, np.random.default_rng(1)) < math.log(1000)


def test_evidence_is_computed_where_it_may_be_large_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """24 seeded tallies with an excess of twelve standard deviations in one cell, and 24 of honest reports.

    With the limit of 3 for the residual, at most one case with evidence of 10⁴ is lost (with 3.75 four of 19), and
    alternatives are fitted to 4 % of the halves of honest reports (with 2.25 to 44 %).
    """

    def found(epsilon: float, excess: float) -> int:
        rows = np.array(mechanism("optimal", epsilon=epsilon).exact().channel().weights, float)
        rows /= rows.sum(axis=1, keepdims=True)
        large = 0
        for rng in map(np.random.default_rng, range(24)):
            counts = rng.multinomial(R, rows.mean(axis=0))
            counts[7] += round(excess * np.sqrt(R * rows[:, 7].mean()))
            large += evidence(rows, counts, rng) > math.log(1e4)
        return large

    fits: list[int] = []
    nearest = alarms._nearest

    def counted(rows: Any, shares: Any, *steps: int) -> Any:
        fits.append(len(shares))
        return nearest(rows, shares, *steps)

    limited = found(1.0, 12.0)
    with monkeypatch.context() as patch:
        patch.setattr(alarms, "_nearest", counted)
        assert found(4.0, 0.0) == 0
    assert sum(size > 1 for size in fits) <= 0.1 * 48
    monkeypatch.setattr(alarms, "_LEAST_RESIDUAL", 0.0)
    everything = found(1.0, 12.0)
    assert everything >= 15
    assert limited >= everything - 1


def test_the_sum_over_unary_entries_has_a_known_law() -> None:
    schema = hd.Schema([hd.Categorical("c", [str(i) for i in range(20)])])
    survey = hd.Survey(schema, epsilon=1.0, categorical="oue")
    channel = survey.channels[0]
    assert isinstance(channel, UnaryEncoding)
    p = np.array(channel.weights, np.float64) / ONE
    honest = np.tile(np.rint(R * p[0]), (20, 1))
    honest[4] = np.rint(R * p[1])
    assert not watch(fill(Tally(survey), honest.astype(np.int64).ravel())).alarms
    poisoned = honest.copy()
    poisoned += R // 100 * (np.array([0, 1]) - p[0])  # 1 % of the reports with every entry present
    poisoned[4] += R // 100 * (p[0] - p[1])
    poisoned = np.rint(poisoned)
    poisoned[:, 0] = R - poisoned[:, 1]
    alarms = watch(fill(Tally(survey), poisoned.astype(np.int64).ravel())).alarms
    assert [alarm.kind for alarm in alarms] == ["shape"]


def test_poisoned_reports_that_all_answer_one_question() -> None:
    survey = hd.Survey(
        hd.Schema([hd.Numeric(f"x{i}", 0, 1) for i in range(10)]), epsilon=1.0, mechanism="duchi"
    )
    tally = Tally(survey)
    tally.counts[:] = 500
    tally.n_reports = 10_000
    assert not watch(tally).alarms
    tally.counts[:2] += 200
    tally.n_reports += 400
    alarm = watch(tally).alarms[0]
    assert (alarm.kind, alarm.dimension) == ("answers", "x0")
    assert "'x0' has 1,400 answers, but 1,040 are expected" in alarm.sentence


def test_copies() -> None:
    survey = hd.Survey(hd.Schema([hd.Numeric(f"x{i}", 0, 1) for i in range(40)]), epsilon=8.0, sampled=8)
    tally = Tally(survey)
    tally.n_reports = 1000
    assert not watch(tally, copies=1).alarms or all(a.kind != "copies" for a in watch(tally, copies=1).alarms)
    assert "copies" in {a.kind for a in watch(tally, copies=3).alarms}
    two_cells = table_tally("duchi", 1.0)
    fill(two_cells, np.array([500, 500]))
    assert not watch(two_cells, copies=500).alarms


def test_looks_share_the_false_alarm_rate() -> None:
    """All audits together: Σ 6/(π²k²) = 1. A p-value that is an alarm at the first audit is none at the thousandth."""
    tally = table_tally("duchi", 1.0)
    low = 0.2689
    counts = np.array([int(1000 * low) - 65, 0])
    counts[1] = 1000 - counts[0]
    fill(tally, counts)
    first, later = (watch(tally, audits_before=k) for k in (0, 999))
    assert first.alarms
    assert not later.alarms
    assert sum(6 / (math.pi * k) ** 2 for k in range(1, 100_000)) < 1


@pytest.mark.parametrize("kind", ["number", "pair", "optional", "selection"])
def test_bounds_of_counters_are_those_of_every_input(kind: str) -> None:
    schemas = {
        "number": hd.Schema([hd.Numeric("a", 0, 1)]),
        "pair": hd.Schema([hd.Numeric("a", 0, 1), hd.Numeric("b", 0, 1)]),
        "optional": hd.Schema([hd.Numeric("a", 0, 1, optional=True)]),
        "selection": hd.Schema([hd.Selection("s", ["a", "b", "c", "d"], at_most=2)]),
    }
    survey = hd.Survey(schemas[kind], epsilon=1.0, pair_questions=[("a", "b")] if kind == "pair" else ())
    channel = survey.channels[0]
    bounds = channel.response.bounds()
    assert bounds is not None
    met = np.zeros((channel.n_inputs, channel.n_counters))
    for output in channel.outputs():
        for x in range(channel.n_inputs):
            met[x, list(channel.counters(output))] += float(channel.probability(x, output))
    assert np.allclose(bounds[0], met.min(axis=0), rtol=0, atol=1e-12)
    assert np.allclose(bounds[1], met.max(axis=0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["duchi", "optimal"])
def test_poisoned_reports_attain_the_manipulation_bound(name: str) -> None:
    survey = hd.Survey(hd.Schema([hd.Numeric("age", 0, 120)]), epsilon=1.0, mechanism=name)
    channel = survey.channels[0]
    rows, decode = np.array(channel.rows) / ONE, np.array(channel.decoders["value"])  # type: ignore[attr-defined]
    honest = rows[0] @ decode  # all users at the lowest level
    moved = 0.98 * honest + 0.02 * decode.max()
    found = manipulation_bounds(survey)[0]
    assert 60 * (moved - honest) == pytest.approx(found.shift(0.02), rel=1e-9)


def test_manipulation_bound_of_aimed_reports_and_of_categories() -> None:
    assert ManipulationBound("a", 2.0, 1.0, 0.1).shift(1.0, aimed=True) == 2.0
    assert ManipulationBound("a", 2.0, 1.0, 0.1).shift(0.0, aimed=True) == 0.0
    share = 0.05 / (0.05 + 0.95 * 0.1)
    assert ManipulationBound("a", 2.0, 1.0, 0.1).shift(0.05, aimed=True) == pytest.approx(2 * share)
    survey = hd.Survey(hd.Schema([hd.Categorical("c", list("abcd"))]), epsilon=1.0, categorical="oue")
    channel = survey.channels[0]
    assert channel.response.reach() == pytest.approx(max(max(channel.decode), 1 - min(channel.decode)))  # type: ignore[attr-defined]
    with pytest.raises(InvalidInput, match="share = 2 is not allowed"):
        ManipulationBound("a", 2.0, 1.0, 0.1).shift(2)


def test_bad_input_is_refused() -> None:
    tally = table_tally("duchi", 1.0)
    with pytest.raises(InvalidInput, match=r"false_alarm_rate = 1\.5 is not allowed"):
        watch(tally, false_alarm_rate=1.5)
    with pytest.raises(InvalidInput, match="audits_before = -1 is not allowed"):
        watch(tally, audits_before=-1)


def test_on_the_command_line(tmp_path: Path) -> None:
    """Reports of the system's randomness; the alarms' level of 1e-7 is the test's false-alarm rate."""
    schema = hd.Schema([hd.Numeric(f"x{i}", 0, 1) for i in range(4)])
    survey = hd.Survey(schema, epsilon=4.0, sampled=4)
    survey.save(tmp_path / "survey.json")
    client = hd.Client(survey)
    reports = [client.report(dict.fromkeys(schema.names, 0.5)) for _ in range(300)]
    with write_reports(tmp_path / "reports.parquet", survey) as writer:
        rows = np.frombuffer(b"".join(r.to_bytes(survey) for r in reports), np.uint8)
        writer.write(rows.reshape(len(reports), -1))
    Tally(survey).add(reports).save(tmp_path / "day.tally")
    bad = Tally(survey).add([reports[0]] * 200 + reports)
    bad.save(tmp_path / "bad.tally")
    assert most_copies(survey, [tmp_path / "reports.parquet"]) >= 1
    assert most_copies(survey, []) == 0
    assert most_copies(survey, [tmp_path / "reports.parquet"] * 3) >= 3
    run, base = (
        CliRunner().invoke,
        ["audit", str(tmp_path / "survey.json"), "--false-alarm-rate", "1e-7", "--tally"],
    )
    stated = run(app, [*base, str(tmp_path / "day.tally"), "--reports", str(tmp_path / "reports.parquet")])
    assert stated.exit_code == 0, stated.output
    assert "No alarm" in stated.output
    assert "Poisoned reports that imitate users with other values" in stated.output
    loud = run(app, [*base, str(tmp_path / "bad.tally"), "--json"])
    assert loud.exit_code == 1
    document = json.loads(loud.stdout)
    assert document["alarms"]
    assert document["manipulation_bounds"][0]["dimension"] == "x0"
    with pytest.raises(InvalidInput, match="--reports needs --tally"):
        run(app, ["audit", str(tmp_path / "survey.json"), "--reports", "x"], catch_exceptions=False)


def test_a_channel_of_an_unknown_large_kind_has_no_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    from hdr4me.channels import response

    survey = hd.Survey(
        hd.Schema([hd.Numeric("a", 0, 1)]), epsilon=1.0, mechanism=mechanism("duchi", epsilon=1.0)
    )
    assert response.Response(survey.channels[0]).bounds() is not None
    monkeypatch.setattr(response, "MAX_ENUMERATED", 1)
    assert response.Response(survey.channels[0]).bounds() is None


@pytest.mark.parametrize("present", [0.5, 0.2, 0.05])
def test_the_manipulation_bound_of_an_optional_number_is_that_of_a_ratio(present: float) -> None:
    """Expected counts if a share of the users has the value 0, or 120, and 1 % poisoned reports are in one cell."""
    survey = hd.Survey(hd.Schema([hd.Numeric("age", 0, 120, optional=True)]), epsilon=1.0)
    marginal = survey.channels[0].response.marginal()
    value, there = marginal.decoders["value"], marginal.decoders["present"]
    moved = []
    for end, mean in ((0, -1.0), (marginal.levels.size - 1, 1.0)):
        honest = present * marginal.rows[end] + (1 - present) * marginal.rows[-1]
        counts = 0.99 * honest + 0.01 * np.eye(len(value))
        moved.append(60 * np.abs(counts @ value / (counts @ there) - mean).max())
    found = manipulation_bounds(survey, {"age": present})[0]
    assert max(moved) == pytest.approx(
        found.shift(0.01), rel=1e-6
    )  # attained: all at one end, the worst cell
    assert found.shift(0.01) <= manipulation_bounds(survey)[0].shift(0.01) * (
        1 + 1e-9
    )  # before the collection
    assert found.to_dict()["present"] == present
    assert manipulation_bounds(survey)[0] == manipulation_bounds(survey, {"age": 0.05})[0]  # if it is unknown
    assert manipulation_bounds(survey, {"age": 0.0})[0].to_dict()["shift"] is None


@pytest.mark.parametrize("present", [0.5, 0.2, 0.05])
def test_the_bound_from_a_poisoned_tally_covers_what_moved_it(present: float) -> None:
    """Poisoned reports raise the observed share of users with a value, too: the bound from the tally allows for it."""
    survey = hd.Survey(hd.Schema([hd.Numeric("age", 0, 120, optional=True)]), epsilon=1.0)
    marginal, n = survey.channels[0].response.marginal(), 10**9
    value, there = marginal.decoders["value"], marginal.decoders["present"]
    for end, mean in ((0, -1.0), (marginal.levels.size - 1, 1.0)):
        law = present * marginal.rows[end] + (1 - present) * marginal.rows[-1]
        for cell in range(len(value)):
            counts = np.rint(n * (0.99 * law + 0.01 * np.eye(len(value))[cell])).astype(np.int64)
            tally = fill(Tally(survey), counts)
            found = manipulation_bounds(survey, present_shares(tally), observed=True)[0]
            moved = 60 * abs(counts @ value / (counts @ there) - mean)
            assert moved <= found.shift(0.01)


def test_the_share_with_a_value_comes_from_the_tally() -> None:
    survey = hd.Survey(
        hd.Schema([hd.Numeric("age", 0, 120, optional=True), hd.Numeric("x", 0, 1)]), epsilon=4.0
    )
    tally, marginal = Tally(survey), survey.questions[0].channel.response.marginal()
    law = 0.3 * marginal.rows[0] + 0.7 * marginal.rows[-1]
    tally.layout.of_question(tally.counts, 0)[:] = np.random.default_rng(5).multinomial(5000, law / law.sum())
    tally.n_reports = 10_000
    shares = present_shares(tally)
    assert list(shares) == ["age"]
    assert 0.25 < shares["age"] < 0.3
    assert present_shares(Tally(survey)) == {"age": 0.0}


def test_one_per_cent_for_a_rare_category_raises_no_alarm_and_stays_within_the_bound() -> None:
    """Poisoned reports that all name one rare category; seeded. They move it by more than five standard errors."""
    schema = hd.Schema([hd.Categorical("c", [str(i) for i in range(8)])])
    survey = hd.Survey(schema, epsilon=2.0, categorical="grr")
    rows = np.array(survey.channels[0].rows) / ONE
    counts = np.random.default_rng(8).multinomial(99 * R // 100, rows[:4].mean(axis=0))
    honest = fill(Tally(survey), counts.copy()).estimate()
    counts[7] += R // 100
    tally = fill(Tally(survey), counts)
    assert not watch(tally).alarms
    moved = float(tally.estimate().value[7] - honest.value[7])
    assert moved > 5 * honest.standard_error[7]
    assert moved < manipulation_bounds(survey)[0].shift(0.01) + 3 * honest.standard_error[7]
