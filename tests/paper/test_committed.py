"""What docs/reproduction shows: complete, of modest size, and its verdicts follow from its own numbers."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from hdr4me.paper.claims import CLAIMS, judge
from hdr4me.paper.methods import DEFAULT
from hdr4me.paper.studies import SCALES, cells_for

FOLDER = Path(__file__).parents[2] / "docs" / "reproduction"


@pytest.fixture(scope="module")
def committed(read_back):
    return read_back(FOLDER)


@pytest.fixture(scope="module")
def claims():
    return {item["name"]: item for item in json.loads((FOLDER / "claims.json").read_text())["claims"]}


def test_it_is_the_full_run_and_every_cell_is_there(committed):
    about = json.loads((FOLDER / "run.json").read_text())
    assert about["command"].startswith("hdr4me reproduce all --scale full")
    assert about["kept"] == 0
    assert about["processor_seconds"] < 30 * 60  # what the README says; the clock counts other work too
    wanted = [cell for cell in cells_for("all", SCALES["full"]) if cell.figure in ("fig4", "fig5")]
    assert {result.cell.key for result in committed.cells} == {cell.key for cell in wanted}
    assert all(result.cell.repeats == 100 for result in committed.cells)


def test_verdicts_follow_from_the_committed_numbers(committed, claims):
    found = judge(CLAIMS, committed, DEFAULT)
    assert found
    for verdict in found:
        assert claims[verdict.name]["verdict"] == verdict.verdict
        assert tuple(claims[verdict.name]["choices_for"]) == verdict.choices_for
        assert claims[verdict.name]["evidence"] == verdict.evidence


def test_the_default_reading_is_the_closest(claims):
    counted = json.loads((FOLDER / "claims.json").read_text())["claims_that_hold_under_a_choice"]
    assert counted[DEFAULT.name] == max(counted.values())


def test_figure_2_passes_kolmogorov_smirnov_at_full_size(claims):
    with (FOLDER / "deviations.csv").open(encoding="utf-8", newline="") as lines:
        panels = [row for row in csv.DictReader(lines) if row["figure"] == "fig2"]
    assert {(row["users"], row["dims"], row["sampled"], row["repeats"]) for row in panels} == {
        ("200000", "5000", "50", "1000")
    }
    assert len(panels) == 3
    assert all(float(row["ks_p_value"]) > 0.01 for row in panels)


def test_every_naive_curve_is_as_foretold(committed):
    """|t| ≤ 3.96: over 72 cells of 100 repeats, a right prediction fails in one run of a hundred."""
    for result in committed.cells:
        if result.cell.figure == "fig4":
            naive = next(item for item in result.outcomes if item.method == "naive")
            assert abs(naive.mse - result.predicted_mse) <= 3.96 * naive.standard_error, result.cell.key


def test_the_rule_first_set_and_its_outcome_are_told(committed, claims):
    """The report must say how many cells lie beyond 3 standard errors, whatever the verdict."""
    beyond = sum(
        abs(naive.mse - result.predicted_mse) > 3 * naive.standard_error
        for result in committed.cells
        if result.cell.figure == "fig4"
        for naive in result.outcomes
        if naive.method == "naive"
    )
    claim = claims["framework-predicts-mse"]
    assert f"{beyond} of 72 cells beyond 3" in claim["evidence"]
    assert "the rule was replaced" in claim["why"]


def test_the_files_are_of_modest_size_and_name_no_path():
    files = [path for path in FOLDER.iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 8e6
    for path in files:
        if path.suffix in (".html", ".md", ".csv", ".json", ".svg"):
            text = path.read_text(encoding="utf-8")
            assert "/work/" not in text
            assert "/tmp/" not in text
            assert "/home/" not in text
