"""Pairs of numbers on the command line, from a schema to an answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Run


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps({"dimensions": [{"name": x, "low": 0, "high": 1} for x in "abc"]}))
    return path


def test_a_pair_from_a_schema_to_means(run: Run, schema: Path, tmp_path: Path) -> None:
    made = run(
        "survey", schema, "--epsilon", 4, "--pair-question", "a, c", "-o", tmp_path / "s.json", "--json"
    )
    assert made.code == 0, made.err
    pair, alone = made.json["channels"]
    assert (pair["mechanism"], pair["dimensions"], alone["dimensions"]) == ("pair", 2, 1)
    (tmp_path / "in.csv").write_text("a,b,c\n" + "0.2,0.5,0.9\n" * 2000)
    for command in (
        ("perturb", tmp_path / "s.json", tmp_path / "in.csv", "-o", tmp_path / "r.parquet"),
        ("tally", tmp_path / "s.json", tmp_path / "r.parquet", "-o", tmp_path / "t"),
    ):
        done = run(*command)
        assert done.code == 0, done.err
    rows = run("estimate", tmp_path / "t", "--json").json["rows"]
    for row, truth in zip(rows, (0.2, 0.5, 0.9), strict=True):
        assert abs(row["estimate"] - truth) < 7 * row["standard_error"]  # false alarm below 1e-10


@pytest.mark.parametrize("pair", ["a", "a,b,c", "a,a"])
def test_wrong_pairs(plain, schema: Path, pair: str) -> None:
    assert "--pair-question" in plain("survey", schema, "--pair-question", pair)


def test_a_number_is_in_one_pair_only(plain, schema: Path) -> None:
    assert "--pair-question" in plain("survey", schema, "--pair-question", "a,b", "--pair-question", "b,c")
