"""Commands for repeated collection: rounds of a series, and ledgers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hdr4me.client import Client, Ledger, MemoizedClient
from hdr4me.survey import Categorical, Numeric, Schema, Survey
from hdr4me.tally import Tally


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three rounds of 400 reports each; the survey has another name in each round."""
    folder = tmp_path_factory.mktemp("weeks")
    schema = Schema([Numeric("age", 0, 120), Categorical("pet", ["no", "cat"])])
    paths = []
    for week in range(3):
        survey = Survey(schema, epsilon=4.0, mechanism="duchi", sampled=2, name=f"week {week}")
        client = Client(survey)
        tally = Tally(survey).add(client.report({"age": 30 + 20 * week, "pet": "no"}) for _ in range(400))
        paths.append(folder / f"week-{week}.tally")
        tally.save(paths[-1])
    return paths


def test_rounds_by_hand(run: Any, weeks: list[Path]) -> None:
    """The numbers are those of three estimates, combined by their formulas."""
    rounds = [Tally.load(path).estimate().table()[0] for path in weeks]
    x = np.array([row["estimate"] for row in rounds])
    s = np.array([row["standard_error"] for row in rounds])
    fresh = run("rounds", *weeks, "--noise", "fresh", "--json").json
    held = run("rounds", *weeks, "--row-budget", 3, "--json").json
    assert (fresh["noise"], held["noise"], held["users"]) == ("fresh", "memoized", [400, 400, 400])
    row, other = fresh["rows"][0], held["rows"][0]
    assert row["rounds"] == other["rounds"] == x.tolist()
    z = 1.959963984540054
    for name, weights in (("average", [1 / 3] * 3), ("change", [0, -1, 1]), ("trend", [-0.5, 0, 0.5])):
        a = np.array(weights)
        assert row[name]["estimate"] == pytest.approx(float(a @ x))
        assert row[name]["upper"] - row[name]["estimate"] == pytest.approx(z * float(np.sqrt(a**2 @ s**2)))
        assert other[name]["upper"] - other[name]["estimate"] == pytest.approx(z * float(np.abs(a) @ s))


def test_rounds_as_a_table_and_a_figure(run: Any, weeks: list[Path], tmp_path: Path) -> None:
    shown = run("rounds", *weeks, "--row-budget", 3, "--output", tmp_path / "trend.svg")
    assert shown.code == 0
    assert "3 rounds" in shown.out
    assert "age" in shown.out
    assert "does not average out" in shown.err
    assert (tmp_path / "trend.svg").read_text().startswith("<?xml")
    stale = run("rounds", *weeks)  # a row budget of 1: averages, last changes and trends of three rows
    assert "last round" in stale.out
    assert "±" not in stale.out.partition("confidence")[2]
    assert "Changes after round 1 cannot be estimated" in stale.err


def test_rounds_that_cannot_be_compared(plain: Any, weeks: list[Path], tmp_path: Path) -> None:
    other = Survey(Schema([Numeric("x", 0, 1)]), mechanism="duchi")
    Tally(other).save(tmp_path / "other.tally")
    assert "have different surveys" in plain("rounds", weeks[0], tmp_path / "other.tally")
    assert "at least two" in plain("rounds", weeks[0])
    assert "--noise 'new' is not allowed" in plain("rounds", *weeks, "--noise", "new")
    assert "--confidence" in plain("rounds", *weeks, "--confidence", 1)
    assert "--output" in plain("rounds", *weeks, "--output", tmp_path / "a.gif")


def test_a_ledger_in_words(run: Any, plain: Any, tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    assert "does not exist" in plain("ledger", "show", path)
    survey = Survey(Schema([Numeric("x", 0, 1)]), epsilon=2.0, mechanism="duchi")
    MemoizedClient(survey, Ledger(path)).report({"x": 1})
    shown = run("ledger", "show", path, "--every", "week")
    assert shown.code == 0
    assert survey.series[:12] in shown.out
    assert "ε = 2 of the limit of 16 is used in the last 7 days" in shown.out
    assert "ε = 14 left; the checksum of the file is valid" in shown.err
    document = run("ledger", "show", path, "--json").json
    assert document["total"] == 2.0
    assert document["series"][0]["memoized_responses"] == 1
    assert "--every 'sometimes' is not allowed" in plain("ledger", "show", path, "--every", "sometimes")
    assert "--limit -1 is not allowed" in plain("ledger", "show", path, "--limit", -1)
    path.write_text("{}")
    assert "not a ledger" in plain("ledger", "show", path)


def test_a_plan_in_the_shuffle_model_and_over_time(run: Any, plain: Any) -> None:
    plan = ("plan", "--users", 100_000, "--dims", 1, "--epsilon", 4, "--mechanism", "duchi")
    shown = run(*plan, "--delta", "1e-6", "--rounds", "30")
    assert shown.code == 0
    assert "the collection of 100,000 reports has ε = 0.0848 at δ = 1e-06" in shown.out
    assert "each report may have a local ε of up to" in shown.out
    assert "30 rounds with fresh noise: up to ε = 120 in total" in shown.out
    assert "Participation is not hidden" not in shown.out + shown.err
    whole = run(*plan, "--rounds", "30", "--verbose").err
    assert "Participation is not hidden" in whole
    small_sample = ("plan", "--users", 2_000, "--dims", 1, "--epsilon", 1, "--mechanism", "duchi")
    document = run(*small_sample, "--delta", "1e-6", "--rounds", "53", "--json").json
    assert 0.05 < document["shuffled"]["epsilon"] < 0.15
    assert document["shuffled"]["local_epsilon_for_this_central_epsilon"] > 3
    assert document["repeated"]["rounds"] == 53
    assert "shuffled" not in run(*plan, "--json").json
    assert "--delta 2 is not allowed" in plain(*plan, "--delta", 2)
    assert "--rounds 0 is not allowed" in plain(*plan, "--rounds", 0)
    kinds = run(
        "plan",
        "--users",
        1_000,
        "--dims",
        3,
        "--category-count",
        4,
        "--epsilon",
        1,
        "--delta",
        1e-6,
        "--json",
    ).json
    assert 0 < kinds["shuffled"]["epsilon"] < 1
