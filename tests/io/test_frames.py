"""Frames of pandas and polars are records, through Arrow's C stream interface alone."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hdr4me.engines import Local
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.io import infer_schema, record_batches
from hdr4me.io.draft import draft_schema
from hdr4me.io.reading import read_table
from hdr4me.survey import Categorical, Numeric, Schema, Survey

SURVEY = Survey(
    Schema([Numeric("age", 0, 120), Categorical("smoker", ["no", "yes"], optional=True)]), mechanism="duchi"
)
COLUMNS: dict[str, Any] = {
    "name": ["a", "b", "c"], "age": [31.0, None, 44.0], "smoker": ["no", "yes", None]
}  # fmt: skip


class Stream:
    """Whatever has the interface and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def frames() -> list[Any]:
    table = pa.table(COLUMNS)
    found: list[Any] = [table, Stream(table), table.to_reader()]
    for library in ("pandas", "polars"):
        try:
            found.append(__import__(library).DataFrame(COLUMNS))
        except ImportError:
            continue
    return found


@pytest.mark.parametrize("frame", frames(), ids=lambda frame: type(frame).__module__)
def test_frames_are_records(frame: Any) -> None:
    (batch,) = record_batches(frame, SURVEY)
    rows = batch.to_pylist()
    assert [row["smoker"] for row in rows] == ["no", "yes", None]
    assert [row["age"] for row in rows][::2] == [31.0, 44.0]
    assert rows[1]["age"] is None or np.isnan(rows[1]["age"])


def test_pandas_categories_and_odd_columns() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1, 2], "smoker": pandas.Categorical(["no", "yes"]), "odd": [{}, 1]})
    assert sum(len(block) for block in Local(1).reports(frame, SURVEY)) == 2
    with pytest.raises(FormatError, match="the DataFrame has no column 'smoker'"):
        list(record_batches(frame[["age"]], SURVEY))
    mixed = pandas.DataFrame({"age": [1, "secret"], "smoker": ["no", "yes"]})
    with pytest.raises(InvalidInput, match="'age' mixes types") as caught:
        list(record_batches(mixed, SURVEY))
    assert "secret" not in str(caught.value)


def test_reports_go_out_as_an_arrow_table() -> None:
    """The table converts to every frame library and back."""
    table = Local(1).table(pa.table({"age": [31.0] * 50, "smoker": ["no"] * 50}), SURVEY)
    assert table.num_rows == 50
    assert table.schema.metadata[b"hdr4me.survey"].decode() == SURVEY.fingerprint
    assert hasattr(table, "__arrow_c_stream__")
    assert len(table.column("report")[0].as_py()) == SURVEY.report_size


def test_neither_library_is_imported() -> None:
    code = (
        "import sys, hdr4me.io, hdr4me.io.infer, hdr4me.engines.local\n"
        "assert not {'pandas', 'polars', 'pyspark'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_frame_of_mixed_types_is_refused_without_a_value() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [3, "secret"], "town": ["Bath", "Ely"]})
    for read in (read_table, infer_schema, draft_schema):
        with pytest.raises(InvalidInput, match="'age' mixes types; convert it to numbers") as refused:
            read(frame)
        assert "secret" not in str(refused.value)
