"""`hdr4me plan` with units, and with a tally of an earlier collection as its prior."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import pytest

from hdr4me.survey import Categorical, Numeric, Schema, Selection, Survey, Vector
from hdr4me.tally import Tally


@pytest.fixture
def question(tmp_path: Path) -> tuple[object, ...]:
    schema = Schema([Numeric("delay", -60, 300, unit="min"), Numeric("distance", 0, 3000)])
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(schema.to_dict()), encoding="utf-8")
    return ("plan", "--schema", path, "--users", 300_000, "--epsilon", 2, "--mechanism", "piecewise")


def test_a_unit_of_the_schema_is_accepted_and_shown(run: Any, question: tuple[object, ...]) -> None:
    shown = run(*question, "--tolerance", "delay=5 min")
    assert shown.code == 0
    assert "The tolerance ±5 min for delay is met with" in shown.out
    assert "unit" in shown.out


def test_another_unit_is_refused(run: Any, question: tuple[object, ...]) -> None:
    refused = run(*question, "--tolerance", "delay=5 hours")
    assert refused.code != 0
    assert "a positive number in the dimension's own units ('min')" in " ".join(refused.err.split())
    refused = run(*question, "--tolerance", "distance=5 miles")
    assert "own units (the schema gives no unit)" in " ".join(refused.err.split())


def test_a_plain_tolerance_is_converted_to_own_units(run: Any, question: tuple[object, ...]) -> None:
    document = run(*question, "--tolerance", "0.1", "--json").json
    assert document["tolerances"] == pytest.approx({"delay": 18.0, "distance": 150.0})


def test_a_tally_is_a_prior(run: Any, tmp_path: Path) -> None:
    survey = Survey(Schema([Categorical("c", ["a", "b", "c"])]), epsilon=3.0, categorical="grr")
    tally = Tally(survey)
    tally.counts[:] = [900, 50, 50]
    tally.n_reports = 1000
    tally.save(tmp_path / "pilot.tally")
    asked = ("plan", "--users", 1000, "--epsilon", 1, "--prior", tmp_path / "pilot.tally")
    shown = run(*asked, "-v")
    assert shown.code == 0
    assert "would have" in shown.err
    assert "Zipf" not in shown.err  # the baseline has the frequencies of the tally
    assert run(*asked, "--json").json["prior"] == "given"


def test_every_kind_of_question_from_a_schema_to_a_survey(run: Any, tmp_path: Path) -> None:
    kinds = [
        Vector("v", 2, norm=2.0),
        Numeric("pay", 0, 10, optional=True),
        Selection("s", ["a", "b", "c"], 2),
    ]
    schema, pilot = tmp_path / "schema.json", tmp_path / "pilot.csv"
    schema.write_text(json.dumps(Schema([*kinds, Numeric("age", 0, 100)]).to_dict()), encoding="utf-8")
    pilot.write_text("v,pay,s,age\n0|1,3,a|b,20\n1|0,,c,40\n", encoding="utf-8")
    asked = (
        "plan",
        "--schema",
        schema,
        "--users",
        20_000,
        "--epsilon",
        2,
        "--mechanism",
        "duchi",
        "--prior",
        pilot,
    )
    page, survey = tmp_path / "plan.html", tmp_path / "survey.json"
    shown = run(*asked, "--tolerance", "v=0.2", "--poisoned", "0.01", "--output", page, "--output", survey)
    assert shown.code == 0
    assert "The tolerance ±0.2 for coordinates of v is met with" in shown.out
    assert "Standard errors of selections, vectors and optional numbers" in shown.out
    assert "coordinate of v" in page.read_text(encoding="utf-8")
    assert Survey.load(survey).sampled == 1
    document = run(*asked, "--json").json
    names = [
        "share choosing each of s",
        "number chosen of s",
        "coordinate of v",
        "mean of pay",
        "share with pay",
    ]
    assert sorted(document["errors"]) == sorted(names)
    assert document["prior"] == "given"


def test_the_page_has_everything_that_the_terminal_shows(
    run: Any, question: tuple[object, ...], tmp_path: Path
) -> None:
    page = tmp_path / "plan.html"
    asked = (
        "--poisoned",
        0.01,
        "--delta",
        1e-6,
        "--rounds",
        53,
        "--second-round",
    )
    shown = run(*question, *asked, "--output", page)
    assert shown.code == 0, shown.err
    text = page.read_text("utf-8")
    for part in (
        "margins of error in the units of each dimension",
        "Manipulation bound",
        "shuffle model",
        "memoized responses",
        "second round",
    ):
        assert part in shown.out, part
        assert part in text, part
    notes = run(*question, *asked, "--verbose").err.splitlines()[:-1]  # the last one is on the second round
    assert len(notes) > 3
    assert not [note for note in notes if note[:60].strip() not in html.unescape(text)]
