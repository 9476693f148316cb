"""A list of 6,000 categories in a file, from the schema to the estimate on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from hdr4me.survey import category_file

from .conftest import Run


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(category_file, "_known", {})


def test_from_a_file_to_an_estimate(run: Run, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("\n".join(f"w{i}" for i in range(6000)))
    (tmp_path / "schema.toml").write_text('[[dimensions]]\nname = "word"\ncategories_file = "words.txt"\n')
    (tmp_path / "data.csv").write_text("word\n" + "w5\n" * 3000)
    survey, reports, tally = tmp_path / "out" / "survey.json", tmp_path / "r.parquet", tmp_path / "out" / "t"
    (tmp_path / "out").mkdir()
    assert run("survey", tmp_path / "schema.toml", "--epsilon", 4, "--output", survey).code == 0
    assert survey.stat().st_size < 2000
    for arguments in (
        ("perturb", survey, tmp_path / "data.csv", "--output", reports),
        ("tally", survey, reports, "--output", tally),
        ("audit", survey, "--draws", 2000),
    ):
        category_file._known.clear()  # each command is a process of its own
        outcome = run(*arguments)
        assert outcome.code == 0, outcome.err
    category_file._known.clear()
    rows = run("estimate", tally, "--json").json["rows"]
    assert max(rows, key=lambda row: row["estimate"])["category"] == "w5"

    (tmp_path / "out" / "words.txt").write_text("a\nb\n")
    for arguments in (("estimate", tally), ("perturb", survey, tmp_path / "data.csv", "--output", reports)):
        category_file._known.clear()
        outcome = run(*arguments)
        assert outcome.code == 2
        assert "with SHA-256" in outcome.err


def test_a_selection_is_planned(run: Run, tmp_path: Path) -> None:
    """The plan names the errors of shares and of the number chosen, and writes the survey."""
    (tmp_path / "schema.toml").write_text(
        '[[dimensions]]\nname = "spoken"\ntype = "selection"\nat_most = 2\ncategories = ["de", "en", "fr"]\n'
    )
    survey = tmp_path / "survey.json"
    outcome = run(
        "plan", "--schema", tmp_path / "schema.toml", "--users", 10_000, "--epsilon", 2, "--output", survey
    )
    text = " ".join(outcome.out.split())
    assert outcome.code == 0, outcome.err
    assert "share choosing each of spoken" in text
    assert "number chosen of spoken" in text
    assert "privset" in survey.read_text()
