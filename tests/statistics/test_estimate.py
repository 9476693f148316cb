"""The answer in the user's units, and what is said when there is too little to say."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from hdr4me.channels import Table
from hdr4me.errors import InvalidInput
from hdr4me.io import Report
from hdr4me.statistics import Answer, ask, estimate, quantile
from hdr4me.statistics.calibrate import indicator_moments
from hdr4me.survey import Categorical, Numeric, Question, Schema, Survey
from hdr4me.tally import Tally


@pytest.fixture(scope="session")
def answer(mixed: Survey, some_reports: np.ndarray) -> Answer:
    return Tally(mixed).add_block(some_reports).estimate()


def test_means_by_hand(mixed: Survey, some_reports: np.ndarray, answer: Answer) -> None:
    tally = Tally(mixed).add_block(some_reports)
    low, middle, high = tally.counts[:3]
    r = low + middle + high
    mean = 4 * (high - low) / r
    means = answer.means
    assert means.dimensions == ("age", "debt")
    assert means.statistics == ("mean", "mean")
    assert means.categories == (None, None)
    assert answer.n_reports == means.n_reports == 1000
    assert means.n_answers[0] == r
    assert means.scaled_value[0] == pytest.approx(mean, rel=1e-14)
    assert means.value[0] == pytest.approx(60 + 60 * mean, rel=1e-14)
    assert means.standard_error[0] == pytest.approx(60 * means.scaled_error[0], rel=1e-14)
    assert means.value[1] == pytest.approx(-500 + 500 * means.scaled_value[1], rel=1e-14)


def test_the_standard_error_by_hand(mixed: Survey, some_reports: np.ndarray, answer: Answer) -> None:
    """Three cells, symmetric: g and h take one value outside and one in the middle, so two levels settle them."""
    counts = Tally(mixed).add_block(some_reports).counts[:3].astype(float)
    r, n = counts.sum(), 1000
    mean = 4 * (counts[2] - counts[0]) / r
    law = [[0.625, 0.375], [0.5, 0.5]]  # outside and middle, at level ±1 and at 0
    g, h = np.linalg.solve(law, [1, 0]), np.linalg.solve(law, [16 * 0.625 - 1, 16 * 0.5])
    share = np.array([counts[0] + counts[2], counts[1]]) / r
    noise = np.clip(share @ h, 8, 9)
    spread = (share @ g - mean**2 + noise / r) * r / (r - 1)
    assert 1 / 16 < spread < 1
    expected = (noise + spread) / r - (spread - 1 / 16) / n
    assert answer.means.scaled_error[0] ** 2 == pytest.approx(expected, rel=1e-10)


def test_two_cells_carry_no_square(mixed: Survey, some_reports: np.ndarray, answer: Answer) -> None:
    """Two cells: no correction for the finite population, so the plain s²/r."""
    counts = Tally(mixed).add_block(some_reports).counts[3:5].astype(float)
    r = counts.sum()
    s2 = 4 * (1 - ((counts[1] - counts[0]) / r) ** 2) * r / (r - 1)
    # Ŝ² was kept below n/(n−1)
    assert answer.means.scaled_error[1] ** 2 == pytest.approx(s2 / r, rel=5e-3)


def test_frequencies_by_hand(mixed: Survey, some_reports: np.ndarray, answer: Answer) -> None:
    tally = Tally(mixed).add_block(some_reports)
    color, pet = answer.frequencies("colour"), answer.frequencies("pet")
    counts = tally.counts[5:9]
    r = counts.sum()
    assert color.categories == ("red", "green", "blue", "grey")
    assert color.value == pytest.approx((counts / r - 0.125) / 0.5, rel=1e-12)
    assert color.value.sum() == pytest.approx(1, rel=1e-12)
    ones = tally.counts[9:15].reshape(3, 2)
    assert pet.value == pytest.approx((ones[:, 1] / ones.sum(axis=1) - 0.25) / 0.25, rel=1e-12)
    f = np.clip(pet.value, 0, 1)
    r = ones[0].sum()
    noise = (f * 0.25 + (1 - f) * 0.1875) / 0.25**2
    expected = noise / r + f * (1 - f) * (1 / r - 1 / 1000) * 1000 / 999
    assert pet.standard_error**2 == pytest.approx(expected, rel=1e-12)
    assert tuple(dict.fromkeys(answer.of("frequency").dimensions)) == ("colour", "pet")
    with pytest.raises(InvalidInput, match="'age' is not a categorical"):
        answer.frequencies("age")


def test_nothing_is_clipped(mixed: Survey) -> None:
    reports = [Report(mixed.fingerprint, ((0, 2), (2, 0)))] * 50
    answer = Tally(mixed).add(reports).estimate()
    assert answer.means.value[0] == 300.0
    assert answer.frequencies("colour").value.tolist() == [1.75, -0.25, -0.25, -0.25]
    assert (answer.frequencies("colour").standard_error > 0).all()


def test_equal_reports_do_not_give_a_zero_error(mixed: Survey) -> None:
    """Fifty equal reports: s² is 0, but the table's own smallest variance over r is a floor."""
    answer = Tally(mixed).add([Report(mixed.fingerprint, ((0, 2), (2, 0)))] * 50).estimate()
    table = mixed.channels[0]
    assert isinstance(table, Table)
    variances = np.array(table.weights) / 2**32 @ [16, 0, 16] - np.array(table.targets["value"]) ** 2
    assert answer.means.scaled_error[0] ** 2 >= variances.min() / 50


def test_no_reports_and_one_report(mixed: Survey) -> None:
    nothing = Tally(mixed).estimate()
    assert nothing.status == ("no reports",) * 9
    assert np.isnan(nothing.value).all()
    one = Tally(mixed).add([Report(mixed.fingerprint, ((0, 2), (3, 1, 0, 0)))]).estimate()
    assert one.means.status == ("one report", "no reports")
    assert one.means.value[0] == 300.0
    assert one.frequencies("pet").status == ("one report",) * 3
    assert one.frequencies("pet").value.tolist() == [3.0, -1.0, -1.0]
    for answer in (nothing, one):
        assert len(answer.means.interval(simultaneous=True)[0]) == 2
        assert len(answer.interval(simultaneous=True)[0]) == 9
        assert len(answer.frequencies("pet").interval()[0]) == 3
        rows = answer.table(simultaneous=True)
        assert len(rows) == 2 + 4 + 3
        assert all(
            row["standard_error"] is None and row["lower"] is None and row["upper"] is None for row in rows
        )
        assert "NaN" not in json.dumps(rows)
        assert {row["status"] for row in rows} <= {"no reports", "one report"}


def test_two_reports_do_not_crash(mixed: Survey) -> None:
    answer = Tally(mixed).add([Report(mixed.fingerprint, ((0, 2), (3, 1, 0, 0)))] * 2).estimate()
    assert answer.means.status == ("ok", "no reports")
    assert np.isfinite(answer.means.standard_error[0])


def test_the_table_follows_the_schema_and_the_intervals(mixed: Survey, answer: Answer) -> None:
    rows = answer.table(0.9)
    expected = [("age", None), ("debt", None)]
    expected += [("colour", c) for c in ("red", "green", "blue", "grey")] + [
        ("pet", c) for c in ("none", "cat", "dog")
    ]
    assert [(row["dimension"], row["category"]) for row in rows] == expected
    assert [row["statistic"] for row in rows] == ["mean"] * 2 + ["frequency"] * 7
    low, high = answer.means.interval(0.9)
    assert (rows[0]["lower"], rows[0]["upper"]) == pytest.approx((low[0], high[0]))
    low, high = answer.frequencies("pet").interval(0.9)
    assert (rows[8]["lower"], rows[8]["upper"]) == pytest.approx((low[2], high[2]))
    file = io.StringIO()
    writer = csv.DictWriter(file, rows[0])
    writer.writerows(rows)
    json.dumps(rows, allow_nan=False)


def test_intervals(answer: Answer) -> None:
    means = answer.means
    low, high = means.interval(0.95)
    assert (low + high) / 2 == pytest.approx(means.value)
    assert (high - low) / 2 == pytest.approx(quantile(0.95, means.n_answers) * means.standard_error)
    reach = quantile(0.95, means.n_answers) * means.scaled_error
    assert 60 + 60 * (means.scaled_value - reach)[0] == pytest.approx(low[0])
    assert 60 + 60 * (means.scaled_value + reach)[0] == pytest.approx(high[0])
    wide_low, wide_high = means.interval(0.95, simultaneous=True)
    assert (wide_low < low).all()
    assert (wide_high > high).all()
    joint = answer.table(0.95, simultaneous=True)[0]
    assert joint["lower"] < wide_low[0]  # all nine rows at once, not two


@pytest.mark.parametrize("level", [0.0, 1.0, -1, 95, float("nan")])
def test_a_level_lies_between_0_and_1(answer: Answer, level: float) -> None:
    with pytest.raises(InvalidInput, match="confidence"):
        answer.interval(level)


def test_sidak_by_its_definition() -> None:
    """(1 − α')^k = level, against the normal quantile."""
    from scipy.stats import norm

    for k in (1, 5, 65536):
        assert quantile(0.95, 10**9, k) == pytest.approx(norm.isf((1 - 0.95 ** (1 / k)) / 2), rel=1e-6)


def test_many_dimensions_at_once(mixed: Survey) -> None:
    """Dimension by dimension and together are the same numbers."""
    schema = Schema([Numeric(f"x{j}", -1, 1) for j in range(40)])
    tables = mixed.channels[:2]
    questions = [Question((j,), tables[j % 2]) for j in range(40)]
    survey = Survey.from_questions(schema, epsilon=1.1, sampled=1, questions=questions)
    rng = np.random.default_rng(1)
    block = np.zeros((2000, 3), np.uint8)
    block[:, 0], block[:, 2] = rng.integers(0, 40, 2000), rng.integers(0, 2, 2000)
    tally = Tally(survey).add_block(block)
    answer = estimate(tally)
    for j in range(40):
        mine = block[block[:, 0] == j][:, 2]
        decoded = np.array(tables[j % 2].decoders["value"])[mine]  # type: ignore[attr-defined]
        assert answer.scaled_value[j] == pytest.approx(decoded.mean(), abs=1e-12)


def test_the_next_step_is_one_call(answer: Answer) -> None:
    better = answer.recalibrate("auto")
    assert isinstance(better, Answer)
    assert better.value.shape == answer.value.shape
    assert better.method == "auto"
    assert better.frequencies("pet").value.sum() == pytest.approx(1)


def test_higher_layers_are_imported_on_demand() -> None:
    code = """
import sys, hdr4me.tally
assert "hdr4me.statistics" not in sys.modules
import hdr4me.statistics
assert "hdr4me.recalibration" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_parts_of_an_answer(answer: Answer) -> None:
    age = answer["age"]
    assert (len(age), age.dimensions, age.value[0]) == (1, ("age",), answer.value[0])
    assert answer["pet"].table() == answer.table()[6:]
    assert len(answer.of("share")) == 0
    with pytest.raises(InvalidInput, match="'nobody' is not a dimension of this answer; known are age, debt"):
        answer["nobody"]
    assert "9 of 9 rows estimated from 1,000 reports, raw" in repr(answer)
    html = answer._repr_html_()
    assert html.count("<tr") == 10


def test_a_kind_of_interval_is_for_recalibrated_answers(answer: Answer) -> None:
    with pytest.raises(InvalidInput, match="kind = 'conservative' is not allowed"):
        answer.interval(kind="conservative")
    with pytest.raises(InvalidInput, match="simultaneous"):
        answer.recalibrate("clip").interval(simultaneous=True)


def test_the_table_in_arrow(answer: Answer) -> None:
    table = answer.to_arrow(0.9)
    assert table.to_pylist() == answer.table(0.9)


def test_asking_for_one_statistic(mixed: Survey, some_reports: np.ndarray, answer: Answer) -> None:
    tally = Tally(mixed).add_block(some_reports)
    assert ask(tally, "mean").table() == answer.means.table()
    assert tally.ask("mean", "debt").table() == answer["debt"].table()
    assert tally.ask("frequency", ["pet", "colour"]).dimensions == ("pet",) * 3 + ("colour",) * 4
    with pytest.raises(InvalidInput, match="the mean of 'pet' cannot be estimated from reports by 'bits'"):
        tally.ask("mean", "pet")
    with pytest.raises(InvalidInput, match="the share of 'age' cannot be estimated"):
        tally.ask("share", ["age"])
    with pytest.raises(
        InvalidInput, match="statistic = 'mode' is not allowed: one of mean, share, frequency"
    ):
        tally.ask("mode")
    with pytest.raises(InvalidInput, match="no dimension is called 'nobody'"):
        tally.ask("mean", "nobody")


def test_subset_selection_by_hand() -> None:
    """Frequencies and errors from the counters of sets, by the formulas with p and q."""
    survey = Survey(Schema([Categorical("town", [str(i) for i in range(10)])]), epsilon=1.0)
    channel = survey.channels[0]
    rng = np.random.default_rng(8)
    tally = Tally(survey)
    tally.counts[:] = rng.multinomial(3000, np.full(10, 0.1))
    tally.n_reports = 1000
    found = tally.estimate().frequencies("town")
    p, q = channel.shares  # type: ignore[attr-defined]
    f = (tally.counts / 1000 - q) / (p - q)
    assert found.value == pytest.approx(f, rel=1e-12)
    assert found.value.sum() == pytest.approx(1, rel=1e-9)
    assert found.n_answers.tolist() == [1000] * 10
    variance = (
        (f * p * (1 - p) + (1 - f) * q * (1 - q)) / (p - q) ** 2 / 1000
    )  # all were asked: the channel's alone
    assert found.standard_error**2 == pytest.approx(variance, rel=1e-9)


@pytest.mark.parametrize("oracle", ["grr", "subset", "projective"])
@pytest.mark.parametrize("having", [0, 1, 4])
def test_the_error_stated_for_a_category_is_right_on_average(oracle: str, having: int) -> None:
    """By enumeration: 9 users, of whom `having` have the category; each number of reports that name it."""
    survey = Survey(Schema([Categorical("x", range(6))]), epsilon=1.0, categorical=oracle)
    channel: Any = survey.channels[0]
    n = 9
    p, q = channel.shares
    law = np.convolve(binom.pmf(range(n + 1), having, p), binom.pmf(range(n + 1), n - having, q))[: n + 1]
    named = [
        next(y for y in channel.outputs() if (channel.family.is_heavy(0, y)) == own) for own in (True, False)
    ]
    stated = 0.0
    for number, chance in enumerate(law):
        counts = np.zeros(channel.n_counters, np.int64)
        for output, times in zip(named, (number, n - number), strict=True):
            np.add.at(counts, list(channel.counters(output)), times)
        _, variance = indicator_moments(channel.response.cells(counts), n, channel.response.marginal())
        assert variance[0] > 0
        stated += chance * variance[0]
    true = (having * p * (1 - p) + (n - having) * q * (1 - q)) / (n * (p - q)) ** 2
    assert stated == pytest.approx(true, rel=1e-9)


def test_estimate_loads_only_the_statistics_of_its_dimensions() -> None:
    code = """
import sys
import hdr4me as hd
survey = hd.Survey(hd.Schema([hd.Numeric("age", 0, 120), hd.Categorical("smoker", ["no", "yes"])]))
assert hd.Tally(survey).estimate().statistics == ("mean", "frequency", "frequency")
loaded = [name for name in ("distribution", "pairs", "rounds", "shapes") if f"hdr4me.statistics.{name}" in sys.modules]
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True)
