"""hdr4me tables, and surveys for tables, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from hdr4me.cli import main

SCHEMA = """
[[dimensions]]
name = "sex"
categories = ["f", "m"]
[[dimensions]]
name = "age"
edges = [0, 18, 65, 120]
[[dimensions]]
name = "smoker"
categories = ["no", "yes"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection of 20,000 people at ε = 6, in which men smoke twice as often as women."""
    place = tmp_path_factory.mktemp("tables")
    (place / "schema.toml").write_text(SCHEMA)
    rng = np.random.default_rng(1)
    sex = rng.choice(["f", "m"], 20_000)
    smoker = np.where(rng.random(20_000) < np.where(sex == "m", 0.4, 0.2), "yes", "no")
    pc.write_csv(
        pa.table({"sex": sex, "age": rng.uniform(0, 110, 20_000), "smoker": smoker}), place / "people.csv"
    )
    survey, reports, tally = (str(place / name) for name in ("survey.json", "reports.parquet", "week.tally"))
    main(["survey", str(place / "schema.toml"), "--tables", "pairs", "--epsilon", "6", "--output", survey])
    main(["perturb", survey, str(place / "people.csv"), "--output", reports])
    main(["tally", survey, reports, "--output", tally])
    return place


def test_a_table_with_its_files(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / name for name in ("t.html", "t.png", "t.csv", "people.parquet")]
    options = [
        x
        for pair in zip(("--output", "--output", "--output", "--synthetic"), map(str, files), strict=True)
        for x in pair
    ]
    main(["tables", str(folder / "week.tally"), "--table", "sex,smoker", *options, "--rows", "500"])
    shown = capsys.readouterr()
    assert "Shares of sex × smoker, 95 % confidence intervals" in shown.out
    assert "no association between attributes that are asked apart" in shown.err
    assert all(path.stat().st_size > 100 for path in files)
    assert "the fit does not shorten them" in files[0].read_text("utf-8")
    assert pq.read_table(files[3]).num_rows == 500
    assert pq.read_table(files[3]).column_names == ["sex", "age", "smoker"]


def test_json_has_associations_and_cells(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(
        ["tables", str(folder / "week.tally"), "--table", "sex,smoker", "--table", "sex,age,smoker", "--json"]
    )
    found = json.loads(capsys.readouterr().out)
    assert {found["associations"][0]["first"], found["associations"][0]["second"]} == {"sex", "smoker"}
    two, three = found["tables"]
    assert two["measured"]
    assert not three["measured"]
    cells = {(row["sex"], row["smoker"]): row for row in two["cells"]}
    assert cells["m", "yes"]["lower"] - 0.02 < 0.2 < cells["m", "yes"]["upper"] + 0.02


def test_without_a_table_the_associations_are_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["tables", str(folder / "week.tally")])
    shown = capsys.readouterr().out
    assert "Association of attributes (Cramér's V)" in shown
    assert shown.index("smoker") < shown.index("age")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--table", "sex,height"], "'height' is not an attribute: known are sex, age, smoker"),
        (["--synthetic", "people.txt"], "--synthetic people.txt is not allowed"),
        (["--synthetic", "people.csv", "--rows", "0"], "--rows 0"),
        (["--confidence", "2"], "--confidence 2"),
    ],
)
def test_bad_options_are_named(
    folder: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert main(["tables", str(folder / "week.tally"), *options]) == 2
    assert message in capsys.readouterr().err


def test_a_plan_ranks_the_designs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [
        "plan",
        "--statistic",
        "tables",
        "--schema",
        str(folder / "schema.toml"),
        "--users",
        "5000",
        "--epsilon",
        "4",
    ]
    main([*asked, "--prior", str(folder / "people.csv"), "--json"])
    rows = json.loads(capsys.readouterr().out)["designs"]
    assert [row["design"] for row in rows][-1] == "one-way"
    assert rows[0]["two_way"] <= rows[1]["two_way"] <= rows[2]["two_way"]
    main(asked)
    shown = capsys.readouterr()
    assert "Assumes associations that are as strong as in census data" in shown.err
    assert "Best: triples, with a predicted distance of" in shown.out
    main([*asked[:-3], "300", "--epsilon", "0.5"])
    assert "Best: one-way (independence is assumed)" in capsys.readouterr().out
    assert main([*asked, "--prior", "worst"]) == 2
    assert main(asked[:5]) == 2


def test_named_tables(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "s.json"
    main(
        [
            "survey",
            str(folder / "schema.toml"),
            "--tables",
            "sex,smoker",
            "--tables",
            "age",
            "--output",
            str(target),
        ]
    )
    names = [item["name"] for item in json.loads(target.read_text())["dimensions"]]
    assert names == ["sex × smoker", "age"]


def test_several_kinds_of_tables(folder: Path, tmp_path: Path) -> None:
    """Kinds and named tables together; a table that two of them name is asked once."""
    target = tmp_path / "s.json"
    kinds = ["--tables", "triples", "--tables", "sex,smoker", "--tables", "pairs"]
    main(["survey", str(folder / "schema.toml"), *kinds, "--output", str(target)])
    names = [item["name"] for item in json.loads(target.read_text())["dimensions"]]
    assert names == ["sex × age × smoker", "sex × smoker", "sex × age", "age × smoker"]


def test_attributes_asked_alone(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without joint questions the tables assume independence, and the command says so."""
    survey, reports, tally = (
        str(tmp_path / name) for name in ("survey.json", "reports.parquet", "week.tally")
    )
    main(["survey", str(folder / "schema.toml"), "--epsilon", "6", "--output", survey])
    main(["perturb", survey, str(folder / "people.csv"), "--output", reports])
    main(["tally", survey, reports, "--output", tally])
    capsys.readouterr()
    assert main(["tables", tally]) == 0
    shown = capsys.readouterr()
    assert "Cramér's V" not in shown.out
    assert "65 to 120" in shown.out
    assert "assume independence" in shown.err
    main(["tables", tally, "--table", "sex,smoker", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["independent"]
    assert found["associations"] == []
    assert "assume independence" in found["tables"][0]["note"]
