"""Thousands of categories on the command line: the largest are printed, and why the oracle was chosen."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from hdr4me.engines import Local
from hdr4me.survey import Categorical, Numeric, Schema, Survey
from hdr4me.tally import Tally

from .conftest import Run

V = 300
SURVEY = Survey(Schema([Categorical("town", [f"t{i}" for i in range(V)]), Numeric("age", 0, 1)]), epsilon=4.0)


def test_a_dimension_with_many_categories_is_cut_when_printed(run: Run, tmp_path: Path) -> None:
    """Three of four users are in one town: noise hides that once in 10^20 runs."""
    rows = np.stack([np.where(np.arange(4000) % 4, 17, np.arange(4000) % V), np.full(4000, 0.5)], axis=1)
    tally = Tally(SURVEY)
    for block in Local().reports(rows, SURVEY):
        tally.add_block(block)
    tally.save(tmp_path / "x.tally")
    short = run("estimate", tmp_path / "x.tally")
    assert short.code == 0
    text = short.out + short.err
    assert "280 smaller categories are not shown" in text
    assert "t17" in text
    assert "town: the first one is surely larger than all the others" in text
    assert text.count("\n") < 40
    assert run("estimate", tmp_path / "x.tally", "--all").out.count("\n") > V
    assert len(run("estimate", tmp_path / "x.tally", "--json").json["rows"]) == V + 1


def test_a_survey_says_why(run: Run, tmp_path: Path) -> None:
    categories = {"few": 4, "some": 100, "many": 4043}
    schema = {
        "dimensions": [
            {"name": name, "categories": [str(i) for i in range(v)]} for name, v in categories.items()
        ]
        + [{"name": "age", "low": 0, "high": 1}]
    }
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    made = run("survey", tmp_path / "schema.json", "--epsilon", 1, "-o", tmp_path / "survey.json")
    assert made.code == 0
    shown = run("survey", tmp_path / "survey.json")
    text = " ".join((shown.out + shown.err).split())
    assert "grr for 4 categories: least expected error" in text
    assert "subset for 100 categories: least expected error, with sets of 27" in text
    assert (
        "projective for 4,043 categories: one number of 2 bytes instead of subset selection's 2,174" in text
    )
    why = [channel["why"] for channel in run("survey", tmp_path / "survey.json", "--json").json["channels"]]
    assert sum(reason is None for reason in why) == 1


def test_several_choices(run: Run, tmp_path: Path) -> None:
    """From a schema and a CSV to shares, on the command line."""
    dimension = {"name": "spoken", "type": "selection", "categories": ["de", "en", "fr"], "at_most": 2}
    (tmp_path / "schema.json").write_text(json.dumps({"dimensions": [dimension]}))
    (tmp_path / "r.csv").write_text("spoken\n" + "de|en\nfr\n" * 500)
    survey, reports, tally = (tmp_path / name for name in ("s.json", "r.parquet", "t.tally"))
    assert run("survey", tmp_path / "schema.json", "--epsilon", 2, "-o", survey).code == 0
    assert run("perturb", survey, tmp_path / "r.csv", "-o", reports).code == 0
    assert run("tally", survey, reports, "-o", tally).code == 0
    rows = run("estimate", tally, "--json").json["rows"]
    assert [row["statistic"] for row in rows] == ["chosen"] * 3 + ["number chosen"]
    for row, truth in zip(rows, (0.5, 0.5, 0.5, 1.5), strict=True):
        assert abs(row["estimate"] - truth) < 7 * row["standard_error"]  # false alarm 3e-12
