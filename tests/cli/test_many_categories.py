"""Thousands of categories on the command line: the largest are printed, and why the oracle was chosen."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from hdr4me.client import Client
from hdr4me.engines import Local
from hdr4me.survey import Categorical, Numeric, Schema, Selection, Survey, Vector
from hdr4me.tally import Tally

from .conftest import Run

V = 300
SURVEY = Survey(Schema([Categorical("town", [f"t{i}" for i in range(V)]), Numeric("age", 0, 1)]), epsilon=4.0)


def test_only_the_most_frequent_categories_are_printed(run: Run, tmp_path: Path) -> None:
    """Three of four users are in one town: noise hides that once in 10^20 runs."""
    rows = np.stack([np.where(np.arange(4000) % 4, 17, np.arange(4000) % V), np.full(4000, 0.5)], axis=1)
    tally = Tally(SURVEY)
    for block in Local().reports(rows, SURVEY):
        tally.add_block(block)
    tally.save(tmp_path / "x.tally")
    short = run("estimate", tmp_path / "x.tally")
    assert short.code == 0
    text = short.out + short.err
    assert [line.split()[1] for line in short.out.splitlines() if line.split()[:1] == ["town"]] == ["t17"]
    text = " ".join(text.split())
    assert (
        "town: the largest category differs significantly; the order of the other 299 is not significant"
        in text
    )
    assert "Intervals: 95 %, simultaneous" in text
    assert run("estimate", tmp_path / "x.tally", "--verbose").out.count("\n") > V
    assert len(run("estimate", tmp_path / "x.tally", "--json").json["rows"]) == V + 1


def test_categories_without_significance_are_not_printed(run: Run, tmp_path: Path) -> None:
    """Two of 500 towns exist, half of the users in each: they are shown with intervals of all towns at once.

    Their shares are more than 30 standard errors above the others; the statement at 1 − 10⁻⁹ fails at most as often.
    """
    survey = Survey(Schema([Categorical("town", [f"t{i}" for i in range(500)])]), epsilon=4.0)
    tally = Tally(survey)
    for block in Local().reports((np.arange(8000) % 2).reshape(-1, 1).astype(float), survey):
        tally.add_block(block)
    path = tmp_path / "x.tally"
    tally.save(path)
    plain = {row["category"]: row for row in run("estimate", path, "--json").json["rows"]}
    low, high = tally.estimate().interval(0.999999999, simultaneous=True)
    for more in ((), ("--recalibrate", "norm_sub")):
        done = run("estimate", path, "--confidence", 0.999999999, *more, "--output", tmp_path / "x.html")
        assert done.code == 0, done.err
        rows = done.out.partition("town")[2].split()
        assert sorted(word for word in rows if word.startswith("t")) == ["t0", "t1"]
        text = " ".join((done.out + done.err).split())
        assert "town: the top 2 differ significantly; the order of the other 498 is not significant" in text
        assert ("before re-calibration and clipped to [0, 1]" in text) == bool(more)
        page = (tmp_path / "x.html").read_text()
        assert "the top 2 differ significantly" in page
        assert page.count("<tr>") == 3
    shown = tally.estimate()._repr_html_()
    assert "answer.table()" in shown
    assert "t499" not in shown
    from hdr4me.statistics.answer import largest_rows

    answer = tally.estimate()
    for row in largest_rows(answer, answer.table(0.999999999), 0.999999999)[0]:
        i = int(row["category"][1:])
        assert (row["lower"], row["upper"]) == (low[i], high[i])
        assert row["lower"] < plain[row["category"]]["lower"]
        assert row["lower"] < 0.5 < row["upper"]


def test_one_row_is_shown_if_nothing_is_significant(run: Run, tmp_path: Path) -> None:
    """All users are spread evenly: at 1 − 10⁻⁹ a town is called the largest at most once in 10⁹ runs."""
    tally = Tally(SURVEY)
    for block in Local().reports(np.stack([np.arange(900) % V, np.full(900, 0.5)], axis=1), SURVEY):
        tally.add_block(block)
    tally.save(tmp_path / "x.tally")
    done = run("estimate", tmp_path / "x.tally", "--confidence", 0.999999999)
    assert sum(line.split()[:1] == ["town"] for line in done.out.splitlines()) == 1
    text = " ".join((done.out + done.err).split())
    assert (
        "town: no category differs significantly from all others; the largest of 300 estimates is shown"
        in text
    )


def test_recalibration_says_what_it_did(run: Run, tmp_path: Path) -> None:
    """Small samples, a selection and a vector have notes, and shares are in [0, 1].

    Fails if fewer than 2 of 120 answer one question: 10⁻¹⁹.
    """
    survey = Survey(
        Schema([Selection("spoken", list("abcdefgh"), at_most=2), Vector("g", 4), Numeric("age", 0, 1)]),
        epsilon=1.0,
    )
    record = {"spoken": ["a"], "g": [0.1] * 4, "age": 0.5}
    client = Client(survey)
    Tally(survey).add(client.report(record) for _ in range(120)).save(tmp_path / "x.tally")
    raw, done = (
        run("estimate", tmp_path / "x.tally", *more, "-v") for more in ((), ("--recalibrate", "clip"))
    )
    small_sample = [line for line in (raw.out + raw.err).splitlines() if line.startswith("a: small sample")]
    assert small_sample
    text = " ".join((done.out + done.err).split())
    assert small_sample[0].strip() in text
    assert "Shares of selections are clipped to [0, 1]" in text
    assert "Coordinates of vectors are re-calibrated together with the means" in text
    rows = run("estimate", tmp_path / "x.tally", "--recalibrate", "clip", "--json").json["rows"]
    for row in rows:
        if row["statistic"] in ("chosen", "number chosen"):
            most = 1 if row["statistic"] == "chosen" else 2
            assert 0 <= row["lower"] <= row["estimate"] <= row["upper"] <= most
    left = run("estimate", tmp_path / "x.tally", "--recalibrate", "norm_sub", "-v")
    assert "means are unchanged: norm_sub is a method for frequencies" in left.out + left.err


def test_a_survey_says_why(run: Run, tmp_path: Path) -> None:
    categories = {"small_sample": 4, "some": 100, "many": 4043}
    schema = {
        "dimensions": [
            {"name": name, "categories": [str(i) for i in range(v)]} for name, v in categories.items()
        ]
        + [{"name": "age", "low": 0, "high": 1}]
    }
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    made = run("survey", tmp_path / "schema.json", "--epsilon", 1, "-o", tmp_path / "survey.json")
    assert made.code == 0
    shown = run("survey", tmp_path / "survey.json", "--verbose")
    text = " ".join((shown.out + shown.err).split())
    assert "grr for 4 categories: least expected error" in text
    assert "subset for 100 categories: least expected error; a report is a set of 27" in text
    assert "projective for 4,043 categories: one number of 2 bytes instead of the 1,087 numbers" in text
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
