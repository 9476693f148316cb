"""Inference uses only the names and types of a file."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest

from hdr4me.errors import FormatError, InvalidInput
from hdr4me.io import RecordFiles
from hdr4me.io.infer import infer_schema
from hdr4me.survey import Categorical, Numeric, Schema

TABLE = pa.table({"age": [31, 47], "pay": [1.5, 2.5], "town": ["Ely", "Bath"], "owner": [True, False]})
RANGES = {"age": (0, 120), "pay": (0.0, 10.0)}
TOWNS = {"town": ["Bath", "Ely", "Wells"]}


@pytest.fixture(params=["parquet", "csv"])
def path(request: pytest.FixtureRequest, tmp_path):
    path = tmp_path / f"data.{request.param}"
    (pq.write_table if request.param == "parquet" else pv.write_csv)(TABLE, path)
    return path


def test_all_columns(path) -> None:
    assert infer_schema(path, ranges=RANGES, categories=TOWNS) == Schema(
        [
            Numeric("age", 0, 120),
            Numeric("pay", 0, 10),
            Categorical("town", ["Bath", "Ely", "Wells"]),
            Categorical("owner", ["false", "true"]),
        ]
    )


def test_some_columns_and_other_readings(path) -> None:
    schema = infer_schema(
        path, columns=["owner", "age"], ranges={"owner": (0, 1)}, categories={"age": [31, 47]}
    )
    assert schema == Schema([Numeric("owner", 0, 1), Categorical("age", ["31", "47"])])


def test_every_column_without_a_range_is_named(path) -> None:
    with pytest.raises(InvalidInput, match="'age', 'pay'"):
        infer_schema(path, categories=TOWNS)
    with pytest.raises(InvalidInput, match="'age', 'pay'"):
        infer_schema(path)


def test_a_first_line_that_may_be_a_record_is_not_quoted(tmp_path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("Bob Jones,31\nEve Smith,47\n")
    with pytest.raises(InvalidInput, match="the first line may be a record") as caught:
        infer_schema(path)
    assert "Bob" not in str(caught.value)
    assert "31" not in str(caught.value)


def test_categories_are_never_read_off_the_data(path) -> None:
    shown = "'town'"
    with pytest.raises(InvalidInput, match=f"text columns without categories: {shown}"):
        infer_schema(path, ranges=RANGES)


@pytest.mark.parametrize(
    "bad", [{"ranges": {"agee": (0, 1)}}, {"categories": {"agee": []}}, {"columns": ["agee"]}]
)
def test_an_unknown_column_is_an_error(path, bad: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="no column 'agee'"):
        infer_schema(path, **bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("pair", ["01", (1, 2, 3)])
def test_a_range_is_a_pair(path, pair: object) -> None:
    with pytest.raises(InvalidInput, match="pair"):
        infer_schema(path, columns=["age"], ranges={"age": pair})  # type: ignore[dict-item]


def test_types_that_cannot_be_asked(tmp_path) -> None:
    path = tmp_path / "odd.parquet"
    pq.write_table(
        pa.table({"when": pa.array([1], pa.timestamp("s")), "c": pa.array(["a"]).dictionary_encode()}), path
    )
    with pytest.raises(InvalidInput, match="'when' holds dates or times: its range is two of these"):
        infer_schema(path, columns=["when"], ranges={"when": (0, 1)})
    assert len(infer_schema(path, columns=["c"], categories={"c": ["a", "b"]})) == 1


def test_broken_files(tmp_path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(FormatError, match="not a complete Parquet file"):
        infer_schema(path)
    path.write_bytes(b"")
    with pytest.raises(FormatError, match="is empty"):
        infer_schema(path)
    path = tmp_path / "x.csv"
    path.write_bytes(b"a,a\n1,2\n")
    assert infer_schema(path, ranges={"a (1)": (0, 1)}, columns=["a (1)"]).names == ("a (1)",)
    with pytest.raises(FileNotFoundError):
        infer_schema(tmp_path / "none.csv")


def test_an_error_does_not_quote_the_data(tmp_path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("name,age\nBob Jones,31\nBob Jones, HIV positive,31\n")
    with pytest.raises(FormatError) as caught:
        infer_schema(path)
    assert "Bob" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_what_does_not_go_together(path, tmp_path) -> None:
    with pytest.raises(InvalidInput, match="a range and categories are given"):
        infer_schema(path, columns=["age"], ranges={"age": (0, 1)}, categories={"age": [1, 2]})
    with pytest.raises(InvalidInput, match="optional, so it cannot have a default"):
        infer_schema(path, columns=["age"], ranges={"age": (0, 1)}, optional=["age"], defaults={"age": 1})
    optional = infer_schema(path, columns=["age"], ranges={"age": (0, 1)}, optional=["age"])
    assert optional == Schema([Numeric("age", 0, 1, optional=True)])
    twice = pa.Table.from_arrays([TABLE["age"], TABLE["age"]], ["age", "age"])
    pq.write_table(twice, tmp_path / "t.parquet")
    with pytest.raises(FormatError, match="same name"):
        infer_schema(tmp_path / "t.parquet", columns=["age"], ranges={"age": (0, 1)})


def test_an_arrow_file(tmp_path) -> None:
    path = tmp_path / "x.arrow"
    table = pa.table({"age": [1.0], "colour": ["red"]})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    assert infer_schema(path, ranges={"age": (0, 1)}, categories={"colour": ["red", "blue"]}).names == (
        "age",
        "colour",
    )


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_first_row_is_named_only_if_it_is_a_header(tmp_path: Path, suffix: str) -> None:
    """A file whose first row is a record, in which one number is a word, does not appear in the message."""
    frame = pd.DataFrame([["Smith", "unknown", 31], ["Jones", 2, 44]])
    path = tmp_path / f"people.{suffix}"
    frame.to_csv(path, index=False, header=False) if suffix == "csv" else frame.to_excel(
        path, index=False, header=False
    )
    for ranges in ({}, {"age": (0, 120)}, {"*": (0, 120)}):
        with pytest.raises((InvalidInput, FormatError)) as refused:
            infer_schema(RecordFiles(path), ranges=ranges)
        message = str(refused.value).replace(str(path), "")
        assert not any(secret in message for secret in ("Smith", "unknown", "31"))
        assert re.search("must have the names of the columns|columns are numbered|name the columns", message)
