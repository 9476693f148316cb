"""Formats of real files: separators of numbers, JSON arrays, lists of dictionaries, lazy frames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hdr4me.engines import Local
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.io import RecordFiles, record_batches
from hdr4me.survey import Categorical, Numeric, Schema, Survey
from hdr4me.survey.times import Time

SURVEY = Survey(
    Schema([Numeric("income", 0, 200_000), Categorical("size", ["1,5", "2"])]), epsilon=1.0, mechanism="duchi"
)
ROWS: list[dict[str, Any]] = [{"income": 11960.5, "size": "1,5"}, {"income": 1200.0, "size": "2"}]


def values(records: Any) -> list[list[Any]]:
    batches = list(record_batches(records, SURVEY))
    incomes = [x for batch in batches for x in batch.column(0).cast("float64").to_pylist()]
    return [incomes, [x for batch in batches for x in batch.column(1).to_pylist()]]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('income,size\n"11,960.5","1,5"\n"1,200",2\n', {"thousands": ","}),
        ("income;size\n11.960,5;1,5\n1.200;2\n", {"thousands": ".", "decimal": ","}),
        ("income;size\n11960,5;1,5\n1200;2\n", {"decimal": ","}),
        ("income\tsize\n11'960.5\t1,5\n1'200\t2\n", {"thousands": "'"}),
    ],
)
def test_separators_of_numbers(text: str, options: dict[str, str], tmp_path: Path) -> None:
    """Categories keep their commas; without the options the file is refused, and the message names them."""
    path = tmp_path / "a.csv"
    path.write_text(text)
    assert values(RecordFiles(path, **options)) == [[11960.5, 1200.0], ["1,5", "2"]]  # type: ignore[arg-type]
    assert Local(1).perturb(RecordFiles(path, **options), SURVEY, tmp_path / "r.parquet") == 2  # type: ignore[arg-type]
    with pytest.raises(
        InvalidInput, match=r"column 'income'.* not numbers.*--thousands and --decimal"
    ) as refused:
        Local(1).perturb(path, SURVEY, tmp_path / "r.parquet")
    assert "960" not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"thousands": "."}, "must differ"),
        ({"thousands": ",", "decimal": ","}, "must differ"),
        ({"decimal": "-"}, "decimal = '-' is not allowed"),
        ({"thousands": "00"}, "thousands = '00' is not allowed"),
    ],
)
def test_separators_that_are_not_allowed(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        RecordFiles("a.csv", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("suffix", [".json", ".txt"])
def test_a_json_array(indent: int | None, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    path.write_text(json.dumps(ROWS, indent=indent))
    assert values(path) == [[11960.5, 1200.0], ["1,5", "2"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"income": 11960', "not a valid JSON array"),
        ('[{"income": 1, "size": "2"}, 11960]', "an element of the JSON array is not an object"),
        ("[]", "contains no records"),
        ('[{"income": 1}]', "no record has a field 'size'"),
    ],
)
def test_a_json_array_that_is_not_valid(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=message) as refused:
        values(path)
    assert "11960" not in str(refused.value)


def test_a_list_of_dictionaries_and_a_lazy_frame(tmp_path: Path) -> None:
    assert values(ROWS) == [[11960.5, 1200.0], ["1,5", "2"]]
    with pytest.raises(FormatError, match="the list: no record has a field 'size'"):
        values([{"income": 1}])
    polars = pytest.importorskip("polars")
    assert values(polars.DataFrame(ROWS).lazy()) == [[11960.5, 1200.0], ["1,5", "2"]]
    assert Local(1).perturb(ROWS, SURVEY, tmp_path / "r.parquet") == 2


def test_several_forms_of_dates(tmp_path: Path) -> None:
    """Two columns of one file are written in two forms; a form that no date has is an error."""
    path = tmp_path / "p.csv"
    path.write_text("day,seen\n31.12.2024,02.01.2024 12:00\n01.01.2024,2024-01-03\n")
    schema = Schema([Time(name, "2024-01-01", "2025-01-01") for name in ("day", "seen")])
    files = RecordFiles(path, date_format="%d.%m.%Y|%d.%m.%Y %H:%M")
    (batch,) = record_batches(files, Survey(schema))
    found = [[x.number(v) for v in batch.column(x.name).to_pylist()] for x in schema]
    assert found == [[365, 0], [1.5, 2]]
    with pytest.raises(InvalidInput, match=r"several with \| between"):
        RecordFiles(path, date_format="%d.%m.%Y|")
