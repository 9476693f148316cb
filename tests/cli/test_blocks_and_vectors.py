"""Blocks and vectors on the command line, from a schema to an answer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import hdr4me as hd

from .conftest import Run


def test_a_block_from_a_schema_to_means(run: Run, tmp_path: Path) -> None:
    names = [f"x{j}" for j in range(20)]
    schema = {"dimensions": [{"name": x, "low": -1, "high": 1} for x in names]}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    made = run(
        "survey",
        tmp_path / "schema.json",
        "--epsilon",
        8,
        "--block-question",
        "x*",
        "-o",
        tmp_path / "s.json",
        "--json",
    )
    assert made.code == 0, made.err
    (channel,) = made.json["channels"]
    assert channel["mechanism"] == "agreement"
    assert channel["dimensions"] == 20
    assert made.json["questions"] == 1
    rows = [",".join(names)] + [",".join(["0.5"] * 20)] * 2000
    (tmp_path / "in.csv").write_text("\n".join(rows) + "\n")
    for command in (
        ("perturb", tmp_path / "s.json", tmp_path / "in.csv", "-o", tmp_path / "r.parquet"),
        ("tally", tmp_path / "s.json", tmp_path / "r.parquet", "-o", tmp_path / "t"),
        ("audit", tmp_path / "s.json", "--draws", 20_000),
    ):
        done = run(*command)
        assert done.code == 0, done.err
    found = run("estimate", tmp_path / "t", "--json").json["rows"]
    z = [(row["estimate"] - 0.5) / row["standard_error"] for row in found]
    assert len(z) == 20
    assert np.abs(z).max() < 7  # false alarm below 1e-9


def test_a_vector_from_a_schema_to_a_mean(run: Run, tmp_path: Path) -> None:
    text = '[[dimensions]]\nname = "g"\ntype = "vector"\nlength = 50\nnorm = 2.0\n'
    (tmp_path / "schema.toml").write_text(text)
    made = run("survey", tmp_path / "schema.toml", "--epsilon", 1, "-o", tmp_path / "s.json", "--json")
    assert made.code == 0, made.err
    (channel,) = made.json["channels"]
    assert channel["mechanism"] == "codebook"
    assert channel["inputs"] == "2^1050"
    assert run("survey", tmp_path / "s.json").code == 0
    vector = [1.0] + [0.0] * 49
    (tmp_path / "in.jsonl").write_text(
        json.dumps({"g": vector}) + "\n" + json.dumps({"g": vector[::-1]}) + "\n"
    )
    for command in (
        ("perturb", tmp_path / "s.json", tmp_path / "in.jsonl", "-o", tmp_path / "r.jsonl"),
        ("tally", tmp_path / "s.json", tmp_path / "r.jsonl", "-o", tmp_path / "t"),
    ):
        done = run(*command)
        assert done.code == 0, done.err
    shown = run("estimate", tmp_path / "t")
    assert shown.code == 0
    assert "differ significantly" not in shown.out + shown.err
    assert len(run("estimate", tmp_path / "t", "--json").json["rows"]) == 50


def test_an_optional_vector_from_a_schema_to_a_mean(run: Run, tmp_path: Path) -> None:
    """7 standard errors: false alarm below 1e-10."""
    text = '[[dimensions]]\nname = "g"\ntype = "vector"\nlength = 2\nnorm = 2.0\noptional = true\n'
    (tmp_path / "schema.toml").write_text(text)
    made = run("survey", tmp_path / "schema.toml", "--epsilon", 4, "-o", tmp_path / "s.json", "--json")
    assert made.code == 0, made.err
    assert made.json["channels"][0]["inputs"] == "2^63"
    (tmp_path / "in.csv").write_text("g,w\n" + "1|-0.5,1\n,1\n" * 3000)
    for command in (
        ("perturb", tmp_path / "s.json", tmp_path / "in.csv", "-o", tmp_path / "r.parquet"),
        ("tally", tmp_path / "s.json", tmp_path / "r.parquet", "-o", tmp_path / "t"),
        ("audit", tmp_path / "s.json", "--draws", 2000),
        ("explain", tmp_path / "s.json"),
    ):
        done = run(*command)
        assert done.code == 0, done.err
        assert "missing and count" not in done.err
    rows = run("estimate", tmp_path / "t", "--json").json["rows"]
    assert [row["statistic"] for row in rows] == ["mean", "mean", "share"]
    found = [
        (row["estimate"] - x) / row["standard_error"] for row, x in zip(rows, [1, -0.5, 0.5], strict=True)
    ]
    assert np.abs(found).max() < 7
    assert run("estimate", tmp_path / "t", "--recalibrate", "bayes").code == 0
    for prior in (tmp_path / "in.csv", tmp_path / "t"):
        asked = ("--users", 9000, "--epsilon", 4, "--tolerance", "g=0.2", "--prior", prior)
        plan = run("plan", "--schema", tmp_path / "schema.toml", *asked, "--json")
        assert plan.code == 0, plan.err
        assert set(plan.json["errors"]) == {"coordinate of g", "share with g"}
        assert not any("have a value; pass --prior" in note for note in plan.json["notes"])
    compared = run(
        "compare",
        tmp_path / "in.csv",
        "--schema",
        tmp_path / "schema.toml",
        "--repeats",
        2,
        "--epsilon",
        4,
        "--json",
    )
    assert compared.code == 0, compared.err
    assert [row["statistic"] for row in compared.json["rows"]] == ["mean", "share"]


def test_wrong_blocks(plain, tmp_path: Path) -> None:
    schema = {"dimensions": [{"name": x, "low": 0, "high": 1} for x in "ab"]}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    assert "--block-question" in plain("survey", tmp_path / "schema.json", "--block-question", "z*")
    assert "--block-question" in plain("survey", tmp_path / "schema.json", "--block-question", "a")
    assert "--block-question" in plain(
        "survey", tmp_path / "schema.json", "--block-question", "a,b", "--block-question", "b,a"
    )


def test_an_audit_says_how_many_draws_of_a_vector_it_made(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hdr4me.auditing import auditor

    monkeypatch.setattr(auditor, "_LEAST_DRAWS", 500)
    monkeypatch.setattr(auditor, "_MOST_PRODUCTS", 2000)
    survey = hd.Survey(hd.Schema([hd.Vector("g", 8), hd.Numeric("x", 0, 1)]), epsilon=1.0, mechanism="duchi")
    survey.save(tmp_path / "s.json")
    message = run("audit", tmp_path / "s.json", "--draws", 2000, "--output", tmp_path / "audit.html")
    assert message.code == 0, message.err
    assert "codebook: 500 draws of each value instead of 2,000, because" in message.err.replace("\n", " ")
    assert "500 draws of each value instead of 2,000" in (tmp_path / "audit.html").read_text()
    tables = run("audit", tmp_path / "s.json", "--draws", 2000, "--json").json["tables"]
    assert [(table["draws"], table["draws_asked"]) for table in tables] == [(500, 2000), (2000, 2000)]


def test_a_plan_pairs_numbers_and_writes_the_survey(run: Run, tmp_path: Path) -> None:
    schema = hd.Schema([hd.Numeric(x, 0, 10) for x in "abcd"])
    (tmp_path / "schema.json").write_text(json.dumps(schema.to_dict()))
    asked = ("plan", "--schema", tmp_path / "schema.json", "--users", 100_000, "--epsilon")
    made = run(*asked, 4, "-o", tmp_path / "s.json", "-v")
    assert made.code == 0, made.err
    assert "Asking numbers in pairs divides the mean squared error by" in made.err
    survey = hd.Survey.load(tmp_path / "s.json")
    assert [question.dimensions for question in survey.questions] == [(0, 1), (2, 3)]
    small = run(*asked, 1, "--json").json
    assert "pair" not in {option["mechanism"] for option in small["options"]}
