"""Files of records: three formats, the same batches; broken ones named in one line."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from hdr4me.engines import Local
from hdr4me.errors import FormatError
from hdr4me.io import reading
from hdr4me.io.reading import batch_rows, count_records, record_batches
from hdr4me.survey import Numeric, Schema, Survey

TABLE = pa.table(
    {
        "rooms": pa.array([1, 2, 3, None] * 50),
        "ignored": pa.array([pa.scalar(b"x").as_py()] * 200),
        "colour": pa.array(["red", "blue", None, "?"] * 50),
        "age": pa.array([1.5, None, 1e9, -4.0] * 50),
    }
)


def write(path: Path) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(TABLE, path, row_group_size=64)
    elif path.suffix == ".arrow":
        feather.write_feather(TABLE, str(path), compression="uncompressed", chunksize=64)
    else:
        pv.write_csv(TABLE.drop_columns(["ignored"]), path)
    return path


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv"])
def test_columns_come_in_the_surveys_order(mixed_survey: Survey, tmp_path: Path, suffix: str) -> None:
    batches = list(record_batches(write(tmp_path / f"r{suffix}"), mixed_survey))
    assert sum(batch.num_rows for batch in batches) == 200
    assert all(batch.schema.names == ["age", "colour", "rooms"] for batch in batches)
    first = batches[0].slice(0, 1).to_pylist()[0]
    assert (float(first["age"]), first["colour"], int(first["rooms"])) == (1.5, "red", 1)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_batches_are_bounded(
    mixed_survey: Survey, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "batch_rows", lambda survey: 30)
    sizes = [batch.num_rows for batch in record_batches(write(tmp_path / f"r{suffix}"), mixed_survey)]
    assert max(sizes) <= 30
    assert sum(sizes) == 200
    assert max(b.num_rows for b in record_batches(TABLE, mixed_survey)) <= 30


def test_rows_held_at_once_fall_with_the_dimensions(mixed_survey: Survey) -> None:
    assert batch_rows(mixed_survey) == 1 << 17


def test_counting_without_reading(tmp_path: Path) -> None:
    assert count_records(write(tmp_path / "r.parquet")) == 200
    assert count_records(write(tmp_path / "r.csv")) is None
    assert count_records(tmp_path / "absent.csv") is None


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv"])
def test_a_missing_column_is_named(numeric_survey: Survey, tmp_path: Path, suffix: str) -> None:
    with pytest.raises(FormatError, match="x0"):
        list(record_batches(write(tmp_path / f"r{suffix}"), numeric_survey))


def test_a_missing_column_of_a_table_is_named(numeric_survey: Survey) -> None:
    with pytest.raises(FormatError, match=r"the table has no column 'x0', 'x1', 'x2', 'x3', 'x4', \.\.\."):
        list(record_batches(TABLE, numeric_survey))


def test_two_columns_of_one_name(mixed_survey: Survey, tmp_path: Path) -> None:
    twice = pa.Table.from_arrays([*TABLE.columns, TABLE["age"]], [*TABLE.column_names, "age"])
    with pytest.raises(FormatError, match="two columns of the same name"):
        list(record_batches(twice, mixed_survey))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("keep", [0.1, 0.5, 0.99])
def test_a_file_cut_short(mixed_survey: Survey, tmp_path: Path, suffix: str, keep: float) -> None:
    path = write(tmp_path / f"r{suffix}")
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])
    with pytest.raises(FormatError, match="is not a complete") as caught:
        list(record_batches(path, mixed_survey))
    assert "\n" not in str(caught.value)


def test_a_csv_with_a_ragged_row(mixed_survey: Survey, tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text('age,colour,rooms\n1,red,2\n1,"red\n"\n')
    with pytest.raises(
        FormatError, match="is not a valid CSV file: line 4 has 2 columns, the header has 3"
    ) as caught:
        list(record_batches(path, mixed_survey))
    assert caught.value.__suppress_context__, "Arrow's own message quotes the record"


def test_a_csv_with_an_open_quote_is_not_quoted(mixed_survey: Survey, tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text('age,colour,rooms\n1,red,2\n1,"secret,3\n')
    with pytest.raises(FormatError, match="is not a valid CSV file") as caught:
        list(record_batches(path, mixed_survey))
    assert "secret" not in str(caught.value)


def test_an_empty_file_and_a_wrong_suffix(mixed_survey: Survey, tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.touch()
    with pytest.raises(FormatError, match="is empty"):
        list(record_batches(empty, mixed_survey))
    text = tmp_path / "text.parquet"
    text.write_text("not parquet at all")
    with pytest.raises(FormatError, match="its first bytes are wrong"):
        list(record_batches(text, mixed_survey))


def test_an_absent_file(mixed_survey: Survey, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(record_batches(tmp_path / "absent.parquet", mixed_survey))


def test_an_empty_line_of_a_single_column_is_a_missing_value(tmp_path: Path) -> None:
    """Every record gives a report: a missing value is never skipped."""
    survey = Survey(Schema([Numeric("x", 0, 10)]), mechanism="duchi")
    path = tmp_path / "one.csv"
    path.write_text("x\n1\n\n3\n\n5\n")
    assert sum(batch.num_rows for batch in record_batches(path, survey)) == 5


def test_a_header_with_duplicates_is_refused(mixed_survey: Survey, tmp_path: Path) -> None:
    path = tmp_path / "same_names.csv"
    path.write_text("age,colour,rooms,rooms\n1,red,1,2\n")
    with pytest.raises(FormatError, match=r"several columns have this name; use 'rooms \(1\)'"):
        list(record_batches(path, mixed_survey))


def test_bytes_that_are_no_text_are_unknown_values(mixed_survey: Survey, tmp_path: Path) -> None:
    """In Parquet one user's bytes cannot stop everybody's reports; in CSV a field of megabytes cannot."""
    csv, parquet = tmp_path / "odd.csv", tmp_path / "odd.parquet"
    csv.write_bytes(b"age,colour,rooms\n1,red,1\n2,red,2\n" + b"7," + b"x" * 3_000_000 + b",3\n")
    odd = pa.array([b"\xff", b"red", None], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"age": odd, "colour": odd, "rooms": [1, 2, 3]}), parquet)
    for path in (csv, parquet):
        assert (
            sum(
                len(block)
                for block in Local(threads=1).reports(path, mixed_survey, on_quality=lambda quality: None)
            )
            == 3
        )
