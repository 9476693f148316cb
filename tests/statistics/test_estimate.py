"""The answer in the user's units, and what is said when there is too little to say."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys

import numpy as np
import pytest

from hdr4me.errors import InvalidInput
from hdr4me.reports import Report
from hdr4me.statistics import Estimate, estimate, quantile
from hdr4me.survey import Numeric, Randomizer, Schema, Survey
from hdr4me.tally import Tally


@pytest.fixture(scope="session")
def answer(mixed: Survey, some_reports: np.ndarray) -> Estimate:
    return Tally(mixed).add_block(some_reports).estimate()


def test_means_by_hand(mixed: Survey, some_reports: np.ndarray, answer: Estimate) -> None:
    tally = Tally(mixed).add_block(some_reports)
    low, middle, high = tally.counts[:3]
    r = low + middle + high
    mean = 4 * (high - low) / r
    assert answer.names == ("age", "debt")
    assert answer.n_users == 1000
    assert answer.n_answers[0] == r
    assert answer.scaled_mean[0] == pytest.approx(mean, rel=1e-14)
    assert answer.mean[0] == pytest.approx(60 + 60 * mean, rel=1e-14)
    assert answer.standard_error[0] == pytest.approx(60 * answer.scaled_standard_error[0], rel=1e-14)
    assert answer.mean[1] == pytest.approx(-500 + 500 * answer.scaled_mean[1], rel=1e-14)


def test_the_standard_error_by_hand(mixed: Survey, some_reports: np.ndarray, answer: Estimate) -> None:
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
    assert answer.scaled_standard_error[0] ** 2 == pytest.approx(expected, rel=1e-10)


def test_a_coin_carries_no_square(mixed: Survey, some_reports: np.ndarray, answer: Estimate) -> None:
    """Two cells: no correction for the finite population, so the plain s²/r."""
    counts = Tally(mixed).add_block(some_reports).counts[3:5].astype(float)
    r = counts.sum()
    s2 = 4 * (1 - ((counts[1] - counts[0]) / r) ** 2) * r / (r - 1)
    assert answer.scaled_standard_error[1] ** 2 == pytest.approx(
        s2 / r, rel=5e-3
    )  # Ŝ² was kept below n/(n−1)


def test_frequencies_by_hand(mixed: Survey, some_reports: np.ndarray, answer: Estimate) -> None:
    tally = Tally(mixed).add_block(some_reports)
    colour, pet = answer.frequencies("colour"), answer.frequencies("pet")
    counts = tally.counts[5:9]
    r = counts.sum()
    assert colour.categories == ("red", "green", "blue", "grey")
    assert colour.frequency == pytest.approx((counts / r - 0.125) / 0.5, rel=1e-12)
    assert colour.frequency.sum() == pytest.approx(1, rel=1e-12)
    ones = tally.counts[9:15].reshape(3, 2)
    assert pet.frequency == pytest.approx((ones[:, 1] / ones.sum(axis=1) - 0.25) / 0.25, rel=1e-12)
    f = np.clip(pet.frequency, 0, 1)
    r = ones[0].sum()
    noise = (f * 0.25 + (1 - f) * 0.1875) / 0.25**2
    expected = noise / r + f * (1 - f) * (1 / r - 1 / 1000) * 1000 / 999
    assert pet.standard_error**2 == pytest.approx(expected, rel=1e-12)
    assert answer.categorical_names == ("colour", "pet")
    with pytest.raises(InvalidInput, match="'age' is not a categorical"):
        answer.frequencies("age")


def test_nothing_is_clipped(mixed: Survey) -> None:
    reports = [Report(mixed.fingerprint, ((0, 2), (2, 0)))] * 50
    answer = Tally(mixed).add(reports).estimate()
    assert answer.mean[0] == 300.0
    assert answer.frequencies("colour").frequency.tolist() == [1.75, -0.25, -0.25, -0.25]
    assert (answer.frequencies("colour").standard_error > 0).all()


def test_an_error_is_never_zero_for_lack_of_variety(mixed: Survey) -> None:
    """Fifty equal reports: s² is 0, but the table's own smallest variance over r is a floor."""
    answer = Tally(mixed).add([Report(mixed.fingerprint, ((0, 2), (2, 0)))] * 50).estimate()
    probabilities = np.array(mixed.randomizers[0].weights) / 2**32
    variances = probabilities @ [16, 0, 16] - np.array(mixed.randomizers[0].levels) ** 2
    assert answer.scaled_standard_error[0] ** 2 >= variances.min() / 50


def test_no_reports_and_one_report(mixed: Survey) -> None:
    nothing = Tally(mixed).estimate()
    assert nothing.status == ("no reports", "no reports")
    assert nothing.frequencies("pet").status == "no reports"
    one = Tally(mixed).add([Report(mixed.fingerprint, ((0, 2), (3, 1, 0, 0)))]).estimate()
    assert one.status == ("one report", "no reports")
    assert one.mean[0] == 300.0
    assert one.frequencies("pet").status == "one report"
    assert one.frequencies("pet").frequency.tolist() == [3.0, -1.0, -1.0]
    for answer in (nothing, one):
        assert len(answer.interval(simultaneous=True)[0]) == 2
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
    assert answer.status == ("ok", "no reports")
    assert np.isfinite(answer.standard_error[0])


def test_the_table_follows_the_schema_and_the_intervals(mixed: Survey, answer: Estimate) -> None:
    rows = answer.table(0.9)
    expected = [("age", None), ("debt", None)]
    expected += [("colour", c) for c in ("red", "green", "blue", "grey")] + [
        ("pet", c) for c in ("none", "cat", "dog")
    ]
    assert [(row["dimension"], row["category"]) for row in rows] == expected
    low, high = answer.interval(0.9)
    assert (rows[0]["lower"], rows[0]["upper"]) == pytest.approx((low[0], high[0]))
    low, high = answer.frequencies("pet").interval(0.9)
    assert (rows[8]["lower"], rows[8]["upper"]) == pytest.approx((low[2], high[2]))
    file = io.StringIO()
    writer = csv.DictWriter(file, rows[0])
    writer.writerows(rows)
    json.dumps(rows, allow_nan=False)


def test_intervals(answer: Estimate) -> None:
    low, high = answer.interval(0.95)
    assert (low + high) / 2 == pytest.approx(answer.mean)
    assert (high - low) / 2 == pytest.approx(quantile(0.95, answer.n_answers) * answer.standard_error)
    scaled_low, scaled_high = answer.scaled_interval(0.95)
    assert 60 + 60 * scaled_low[0] == pytest.approx(low[0])
    assert 60 + 60 * scaled_high[0] == pytest.approx(high[0])
    wide_low, wide_high = answer.interval(0.95, simultaneous=True)
    assert (wide_low < low).all()
    assert (wide_high > high).all()
    joint = answer.table(0.95, simultaneous=True)[0]
    assert joint["lower"] < wide_low[0]  # all nine rows at once, not two


@pytest.mark.parametrize("level", [0.0, 1.0, -1, 95, float("nan")])
def test_a_level_lies_between_0_and_1(answer: Estimate, level: float) -> None:
    with pytest.raises(InvalidInput, match="level"):
        answer.interval(level)


def test_sidak_by_its_definition() -> None:
    """(1 − α')^k = level, against the normal quantile."""
    from scipy.stats import norm

    for k in (1, 5, 65536):
        assert quantile(0.95, 10**9, k) == pytest.approx(norm.isf((1 - 0.95 ** (1 / k)) / 2), rel=1e-6)


def test_many_dimensions_at_once(mixed: Survey) -> None:
    """Dimension by dimension and together are the same numbers."""
    tables: tuple[Randomizer, ...] = mixed.randomizers[:2]
    schema = Schema([Numeric(f"x{j}", -1, 1) for j in range(40)])
    survey = Survey.from_tables(
        schema, epsilon=1.1, n_sampled=1, randomizers=tables, assignment=tuple(j % 2 for j in range(40))
    )
    rng = np.random.default_rng(1)
    block = np.zeros((2000, 3), np.uint8)
    block[:, 0], block[:, 2] = rng.integers(0, 40, 2000), rng.integers(0, 2, 2000)
    tally = Tally(survey).add_block(block)
    answer = estimate(tally)
    for j in range(40):
        mine = block[block[:, 0] == j][:, 2]
        decoded = np.array(tables[j % 2].decode)[mine]
        assert answer.scaled_mean[j] == pytest.approx(decoded.mean(), abs=1e-12)


def test_the_next_step_is_one_call(answer: Estimate) -> None:
    better = answer.recalibrate("auto")
    assert better.mean.shape == answer.mean.shape
    assert better.frequencies("pet").sum() == pytest.approx(1)


def test_the_rooms_above_are_loaded_only_when_asked() -> None:
    code = """
import sys, hdr4me.tally
assert "hdr4me.statistics" not in sys.modules
import hdr4me.statistics
assert "hdr4me.recalibration" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
