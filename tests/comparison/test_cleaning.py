"""Comparisons of data that are not clean: values are cleaned and counted as `perturb` does; all draws are seeded."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import hdr4me as hd
from hdr4me.cli.app import app
from hdr4me.comparison import compare
from hdr4me.comparison.data import cleaned, public_table
from hdr4me.comparison.measure import truth_of
from hdr4me.engines import Local
from hdr4me.errors import InvalidInput
from hdr4me.survey import Dimension

AGE = hd.Numeric("age", 0, 100, default=40)
PLANET = hd.Categorical("planet", ["earth", "mars"], default="earth")
QUICK = {"epsilon": 1.0, "repeats": 1, "mechanisms": ["duchi", "grr"], "recalibrate": False}


def _files(folder: Path, dimensions: list, rows: list[str]) -> list[str]:
    (folder / "schema.json").write_text(json.dumps(hd.Schema(dimensions).to_dict()))
    (folder / "d.csv").write_text("\n".join(rows) + "\n")
    options = "--epsilon 1 --repeats 1 --mechanism duchi --mechanism grr"
    return ["compare", str(folder / "d.csv"), "--schema", str(folder / "schema.json"), *options.split()]


def test_texts_and_unknown_categories_are_cleaned_and_counted(tmp_path: Path) -> None:
    rows = ["age,planet", "abc,earth", "30,alien", "-5,mars", "200,mars", ",", *["50,earth"] * 35]
    command = _files(tmp_path, [AGE, PLANET], rows)
    given = CliRunner().invoke(app, command, catch_exceptions=False)
    assert given.exit_code == 0
    shown = " ".join(given.output.split())
    for sentence in (
        "warning: column 'age': 1 of 40 values (2.5 %) are not numbers and count as 40",
        "warning: column 'planet': 1 of 40 values (2.5 %) are none of the categories and count as 'earth'",
        "(counted from true values: not private)",
    ):
        assert sentence in shown
    document = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    schema = hd.Schema([AGE, PLANET])
    survey = hd.Survey(schema, epsilon=1.0, mechanism="duchi")
    assert document["data_quality"] == Local().data_quality(tmp_path / "d.csv", survey).rows()
    assert document["data_quality"] == [
        {"column": "age", "read": 40, "missing": 1, "unknown": 1, "low": 1, "high": 1},
        {"column": "planet", "read": 40, "missing": 1, "unknown": 1, "low": 0, "high": 0},
    ]
    assert document["users"] == 40


def test_cleaned_values_are_those_that_a_client_sends() -> None:
    ages = ["abc", "30", "-5", "1e9", None, " 7 ", "nan", "inf"]
    planets = ["earth", "alien", "mars", None, "", "mars", "mars", "earth"]
    schema = hd.Schema([AGE, PLANET])
    table, _ = cleaned(pa.table({"age": ages, "planet": planets}), schema)
    assert table.column("age").to_pylist() == [AGE.clean(x) for x in ages]
    assert table.column("planet").to_pylist() == [PLANET.categories[PLANET.clean(x)] for x in planets]
    assert truth_of(hd.Schema([PLANET]), table, "frequency").tolist() == [5 / 8, 3 / 8]
    optional = hd.Categorical("planet", ["earth", "mars"], optional=True)
    table, _ = cleaned(pa.table({"planet": planets}), hd.Schema([optional]))
    assert table.column("planet").to_pylist().count("missing") == 3
    indices = pa.table({"planet": pa.array(planets).dictionary_encode()})
    assert cleaned(indices, hd.Schema([optional]))[0].equals(table)


def test_a_text_far_down_a_file_is_no_damage(tmp_path: Path) -> None:
    """Arrow takes a column's type from its first megabyte."""
    rows = ["age,planet", *["50,earth"] * 150_000, "abc,mars"]
    _files(tmp_path, [AGE, PLANET], rows)
    table, quality = cleaned(tmp_path / "d.csv", hd.Schema([AGE, PLANET]))
    assert table.num_rows == 150_001
    assert quality.rows()[0]["unknown"] == 1
    assert table.column("age")[-1].as_py() == 40


def test_what_perturb_refuses_is_refused() -> None:
    ages = pa.table({"age": [None, *range(19)]})
    with pytest.raises(InvalidInput, match="the schema declares neither a default nor optional"):
        compare(ages, schema=hd.Schema([hd.Numeric("age", 0, 100)]), **QUICK)
    compare(ages, schema=hd.Schema([AGE]), **QUICK)
    with pytest.raises(InvalidInput, match=r"2 of 20 values \(10 %\) are missing and count as 40"):
        compare(pa.table({"age": [None, None, *range(18)]}), schema=hd.Schema([AGE]), **QUICK)


def test_a_column_without_a_usable_value_is_refused() -> None:
    table = pa.table({"age": ["x"] * 20})
    with pytest.raises(InvalidInput, match="column 'age' has no usable value among 20"):
        compare(table, schema=hd.Schema([AGE]), **QUICK)


LANGS = hd.Selection("langs", ["a", "b", "c"], at_most=2)
WHERE = hd.Vector("where", 2)
PAY = hd.Numeric("pay", 0, 9, optional=True)
OTHERS = [LANGS, WHERE, PAY]


def test_what_can_be_compared_is_and_the_rest_is_named(tmp_path: Path) -> None:
    command = _files(tmp_path, [AGE, *OTHERS], ["age,langs,where,pay", *["50,a|b,0.1|0.2,3"] * 20])
    given = CliRunner().invoke(app, command, catch_exceptions=False)
    assert given.exit_code == 0
    shown = " ".join(given.output.split())
    named = "no mechanism for {} is among duchi, grr; add {}"
    assert f"'langs' is left out: {named.format('selections', 'privset')}" in shown
    assert f"'where' is left out: {named.format('vectors', 'codebook')}" in shown
    assert f"'pay' is left out: {named.format('optional numbers', 'optional')}" in shown
    assert (
        "The mean of numbers: mean squared errors (range scaled to [-1, 1]), averaged over all estimates; 20 users, "
        "1 simulated collection per row" in shown
    )
    assert "counted from true values" not in shown


def test_if_nothing_is_left_the_columns_are_named(tmp_path: Path) -> None:
    command = _files(tmp_path, OTHERS, ["langs,where,pay", *["a|b,0.1|0.2,3"] * 20])
    with pytest.raises(
        InvalidInput, match=r"no mechanism can be compared.*'pay' is.*'where' is.*'langs' is left out"
    ):
        CliRunner().invoke(app, command, catch_exceptions=False)


class Quarter(Dimension):
    """A dimension of another package: one of the four quarters of a town."""

    kind = "quarter"
    categories = ("north", "east", "south", "west")
    input_kind = "category"

    def __init__(self, name: str) -> None:
        self.name = name

    def encode(self, value: Any, size: int) -> int:
        return (self.categories.index(value) if value in self.categories else 3) << 16

    def quality(self, value: Any) -> str:
        return "usable" if value in self.categories else "missing" if value is None else "unknown"

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "type": self.kind}

    @classmethod
    def from_dict(cls, fields: Any) -> "Quarter":
        return cls(**fields)


def test_kinds_from_outside_are_compared() -> None:
    homes = ["north", "east", None, "moon"] * 10
    table, quality = cleaned(pa.table({"home": homes}), hd.Schema([Quarter("home")]))
    assert table.column("home").to_pylist() == ["north", "east", "west", "west"] * 10
    assert quality.rows() == [
        {"column": "home", "read": 40, "missing": 10, "unknown": 10, "low": 0, "high": 0}
    ]
    with pytest.raises(InvalidInput, match=r"10 of 40 values \(25 %\) are none of the categories"):
        compare(pa.table({"home": homes}), schema=hd.Schema([Quarter("home")]), **QUICK)
    found = compare(pa.table({"home": ["north", "east"] * 10}), schema=hd.Schema([Quarter("home")]), **QUICK)
    assert [(row.mechanism, row.kind) for row in found.rows] == [("grr", "categories")]


def test_missing_vectors_stay_missing_where_they_are_optional() -> None:
    rows = [[3.0, 4.0], None, [float("nan")] * 2, [1.0], [1.0, float("nan")], [6.0, 8.0]]
    schema = hd.Schema([hd.Vector("v", 2, norm=5.0, optional=True)])
    for column in (rows, ["|".join(map(str, row)) if row else "" for row in rows]):
        table, quality = cleaned(pa.table({"v": column}), schema)
        found = table.column("v").to_pylist()
        assert [row is None for row in found] == [False, True, True, True, False, False]
        assert found[4] == pytest.approx([1.0, 0.0], abs=1e-6)
        assert found[5] == pytest.approx([3.0, 4.0], abs=1e-6)
        assert quality.rows()[0]["missing"] == 2
        assert truth_of(schema, table, "share").tolist() == [0.5]
        assert truth_of(schema, table, "mean") == pytest.approx([7 / 15, 8 / 15], abs=1e-6)
    nobody, _ = cleaned(pa.table({"v": pa.array([None] * 3, pa.list_(pa.float64()))}), schema)
    assert np.isnan(truth_of(schema, nobody, "mean")).all()


def test_lists_and_gaps_are_those_that_a_client_sends() -> None:
    chosen = [["a", "b", "c"], ["nope"], None, [], ["c", "a"]]
    points = [[3.0, 4.0], [0.1, None], None, [1.0], [0.0, -0.5]]
    pays = [3.0, None, 12.0, float("nan"), -1.0]
    table, quality = cleaned(pa.table({"langs": chosen, "where": points, "pay": pays}), hd.Schema(OTHERS))
    assert table.column("langs").to_pylist() == [
        [LANGS.categories[k] for k in LANGS.clean(x)] for x in chosen
    ]
    assert np.array(table.column("where").to_pylist()) == pytest.approx(
        np.array([WHERE.clean(x) for x in points]), abs=1e-6
    )
    assert table.column("pay").to_pylist() == [3.0, None, 9.0, None, 0.0]
    assert quality.rows()[1]["missing"] == 1
    assert truth_of(hd.Schema([PAY]), table, "share").tolist() == [3 / 5]
    assert truth_of(hd.Schema([PAY]), table, "mean") == pytest.approx([(-1 / 3 + 1 - 1) / 3])
    assert truth_of(hd.Schema([LANGS]), table, "chosen") == pytest.approx([2 / 5, 1 / 5, 1 / 5])


def test_columns_without_a_listed_mechanism_are_named() -> None:
    table = pa.table({"x": np.linspace(0, 1, 20), "c": ["a", "b"] * 10})
    found = compare(table, **{**QUICK, "mechanisms": ["grr"]})
    assert found.notes == ("'x' is left out: no mechanism for numbers is among grr; add optimal",)
    with pytest.raises(InvalidInput, match="no mechanism can be compared: 'x' is left out"):
        compare(table.select(["x"]), **{**QUICK, "mechanisms": ["grr"]})


def test_dates_are_numbers_and_weekdays() -> None:
    """The truth of columns of dates, written as strings, with and without a schema."""
    days = pd.date_range("2013-01-01", periods=60)
    table = pa.table({"day": days.strftime("%Y-%m-%d").tolist()})
    schema = hd.Schema(
        [hd.Time("day", "2013-01-01", "2013-03-02"), hd.Calendar("weekday", "weekday", column="day")]
    )
    clean, known, _, _ = public_table(table, schema=schema)
    assert truth_of(hd.Schema([known["day"]]), clean, "mean") == pytest.approx(2 * 29.5 / 60 - 1)
    shares = np.bincount(days.weekday) / 60
    assert truth_of(hd.Schema([known["weekday"]]), clean, "frequency") == pytest.approx(shares)
    for given in (table, pa.table({"day": days})):
        found = compare(given, schema=schema, seed=1, **QUICK)
        assert [row["mechanism"] for row in found.table()] == ["duchi", "grr"]
    assert len(compare(pa.table({"day": days}), seed=1, **QUICK).table()) == 1
