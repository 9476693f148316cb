"""The data-quality report: column counts equal value-by-value counts, and unusable columns are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest

from hdr4me.engines import Local
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.io import DataQuality, RecordsWarning, check_quality, data_quality
from hdr4me.io.columns import from_batch
from hdr4me.io.quality import quality_path
from hdr4me.kernels.exact.blocks import count_outside
from hdr4me.survey import Categorical, Dimension, Numeric, Schema, Survey
from hdr4me.survey.values import as_number
from hdr4me.tally import Tally

NUMBER = Numeric("v", 0, 300)
TOWN = Categorical("v", ["Bath", "Ely"])


def survey(dimension: Any) -> Survey:
    return Survey(Schema([dimension]), mechanism="duchi")


def counts(dimension: Any, column: Any) -> list[int]:
    asked = survey(dimension)
    batch = pa.record_batch([column], names=["v"])
    return data_quality(from_batch(batch, asked), asked).counts[0].tolist()


NUMBERS = {
    "floats": pa.array([1.0, None, float("nan"), -1.0, 301.0, float("inf"), 300.0, 0.0]),
    "single precision": pa.array([1.5, None, float("nan"), -1e-30, 300.00003], pa.float32()),
    "integers": pa.array([1, None, -999, 2**62, 300], pa.int64()),
    "truth": pa.array([True, False, None]),
    "texts": pa.array(
        ["12", " 7 ", "", None, "12 min", "$20", "1,234", "-999", "1e400", "NA", "true", "1_000"]
    ),
    "only texts": pa.array(["AA", "UA", "B6"]),
    "nulls": pa.nulls(5),
    "slices": pa.array([5.0, None, -1.0, 400.0, float("nan")] * 3).slice(2, 9),
    "nothing": pa.array([], pa.float64()),
}


def numeric_state(value: Any) -> int:
    """One value, as the data-quality report counts it: 1 missing, 2 unknown, 3 low, 4 high, 0 usable."""
    number = as_number(value)
    if number != number:
        blank = value is None or value != value or str(value).strip().lower() in ("", "na", "nan")
        return 1 if blank else 2
    return 3 if number < NUMBER.low else 4 if number > NUMBER.high else 0


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_as_counted_one_by_one(name: str) -> None:
    states = [numeric_state(value) for value in NUMBERS[name].to_pylist()]  # type: ignore[attr-defined]
    assert counts(NUMBER, NUMBERS[name]) == [len(states), *(states.count(k) for k in range(1, 5))]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array(["Bath", "Ely", None, "", "Wells", " "]), [6, 3, 1, 0, 0]),
        (pa.array(["Bath", "Ely"] * 4).dictionary_encode(), [8, 0, 0, 0, 0]),
        (pa.DictionaryArray.from_arrays([0, 1, None, 1, 2], ["Bath", None, "?"]), [5, 3, 1, 0, 0]),
        (pa.array([1, 2, None]), [3, 1, 2, 0, 0]),
        (pa.array([1.5, float("nan"), None]), [3, 2, 1, 0, 0]),
        (pa.nulls(4), [4, 4, 0, 0, 0]),
    ],
)
def test_categories(column: Any, expected: list[int]) -> None:
    assert counts(TOWN, column) == expected


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_matrix(order: str) -> None:
    asked = Survey(Schema([Numeric("x", 0, 1), Categorical("c", ["a", "b"])]), mechanism="duchi")
    values = np.asarray([[0.5, 0], [np.nan, 1], [-1, 2], [2, np.nan], [1, -1]], order=order)  # type: ignore[call-overload]
    found = Local(1).data_quality(values, asked)
    assert found.counts.tolist() == [[5, 1, 0, 1, 1], [5, 1, 2, 0, 0]]
    assert Local(1).data_quality(values[:1].astype(np.float32), asked).counts[:, 1:].sum() == 0


UNUSABLE = {
    "carrier codes as numbers": ["UA", "AA", "B6"],
    "minutes": ["12 min", "7 min", "0 min"],
    "dollars": ["$20", "$1", "$7"],
    "thousands": ["1,234", "2,000", "9,999"],
    "nulls": [None, None, None],
    "out of range": ["400", "500", "1e9"],
    "minus 999": ["-999", "-999", "-999"],
}


@pytest.mark.parametrize("name", UNUSABLE)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_wholly_unusable_column_is_refused(name: str, suffix: str, tmp_path: Path) -> None:
    """A carrier code as a number in 0:300 gave a mean of 150.29 ± 0.5 without a word."""
    asked = survey(NUMBER)
    table = pa.table({"v": pa.array(UNUSABLE[name], pa.string()), "w": [1, 2, 3]})
    path, target = tmp_path / f"r{suffix}", tmp_path / "out.parquet"
    if suffix == ".csv":
        pv.write_csv(table, path)
    else:
        pq.write_table(table, path)
    with pytest.raises(InvalidInput, match=r"column 'v' has no usable value among 3 .*--allow-unusable"):
        Local(1).perturb(path, asked, target)
    assert not target.exists()
    found: list[DataQuality] = []
    assert Local(1).perturb(path, asked, target, on_quality=found.append) == 3
    assert found[0].counts[0, 0] == 3
    with pytest.warns(RecordsWarning, match="column 'v': 3 of 3 values"):
        check_quality(found[0], allow_unusable=True)


def test_above_one_in_a_hundred_is_warned_of(tmp_path: Path) -> None:
    asked = survey(Numeric("v", 0, 300, default=150))
    fewer, many = ([None] * k + [1.0] * (1000 - k) for k in (10, 11))
    Local(1).perturb(
        pa.table({"v": fewer}), asked, tmp_path / "a.parquet"
    )  # a warning would be an error here
    with pytest.warns(
        RecordsWarning, match=r"column 'v': 11 of 1,000 values \(1.1 %\) are missing and count as 150"
    ):
        Local(1).perturb(pa.table({"v": many}), asked, tmp_path / "b.parquet")


@pytest.mark.parametrize("wrong", [None, "1,234"])
def test_a_single_value_without_a_declared_treatment_is_refused(wrong: str | None, tmp_path: Path) -> None:
    """76 % of a column of numbers written as "11,960" counted as the middle of the range."""
    table = pa.table({"v": pa.array(["1"] * 999 + [wrong])})
    reason = "missing" if wrong is None else "not numbers"
    message = rf"column 'v': 1 of 1,000 values \(0.1 %\) are {reason}, and the schema declares neither"
    with pytest.raises(InvalidInput, match=message) as refused:
        Local(1).perturb(table, survey(NUMBER), tmp_path / "a.parquet")
    assert "1,234" not in str(refused.value)
    with pytest.raises(InvalidInput, match=message):
        list(Local(1).reports(table, survey(NUMBER)))
    with pytest.raises(InvalidInput, match=message):
        Local(1).table(table, survey(NUMBER))
    for declared in (Numeric("v", 0, 300, default=10), Numeric("v", 0, 300, optional=True)):
        assert len(list(Local(1).reports(table, survey(declared)))) == 1
    check_quality(Local(1).data_quality(table, survey(NUMBER)), allow_unusable=True)


@pytest.mark.parametrize(
    "dimension", [Numeric("v", 0, 300, default=10), Categorical("v", ["1", "2"], default="2")]
)
def test_more_than_five_in_a_hundred_replaced_values_are_refused(dimension: Dimension) -> None:
    asked = survey(dimension)
    fewer, many = (pa.table({"v": pa.array([None] * k + ["1"] * (1000 - k))}) for k in (50, 51))
    with pytest.warns(RecordsWarning, match=r"50 of 1,000 values \(5 %\) are missing and count as"):
        assert len(next(Local(1).reports(fewer, asked))) == 1000
    with pytest.raises(InvalidInput, match=r"51 of 1,000 values \(5.1 %\) are missing .* biases the answer"):
        next(Local(1).reports(many, asked))


def test_the_blocks_before_the_last_come_before_the_judgment() -> None:
    """The share of replaced values is known at the end; records of one block are judged before any report."""
    one = pa.RecordBatch.from_pydict({"v": pa.array(["1", None])})
    reports = Local(1).reports(pa.Table.from_batches([one]), survey(NUMBER))
    with pytest.raises(InvalidInput, match="declares neither"):
        next(reports)


def test_the_report_is_stored_next_to_the_reports_and_the_answer_shows_it(tmp_path: Path) -> None:
    """From records over reports and a saved tally to the answer; other files and the reports do not change."""
    asked = survey(Numeric("v", 0, 300, default=10))
    table = pa.table({"v": [None] * 40 + [1.0] * 960})
    for name in ("a.parquet", "b.jsonl"):
        with pytest.warns(RecordsWarning, match="40 of 1,000 values"):
            Local(1).perturb(table, asked, tmp_path / name)
    beside = quality_path(tmp_path / "a.parquet")
    assert beside.name == "_a.parquet.quality.json"
    assert beside.stat().st_mode & 0o777 == 0o600
    assert "do not publish" in beside.read_text()
    tally = Local(1).tally(tmp_path, asked)  # a folder: the data-quality reports are not read as reports
    assert tally.n_reports == 2000
    assert tally.data_quality is not None
    assert tally.data_quality.counts.tolist() == [[2000, 80, 0, 0, 0]]
    tally.save(tmp_path / "t.tally")
    loaded = Tally.load(tmp_path / "t.tally")
    remark = "80 of 2,000 values (4 %) are missing and count as 10"
    assert loaded.estimate().notes == (remark,)
    assert loaded.ask("mean", "v").notes == (remark,)
    assert (loaded + loaded).remarks["v"].startswith("160 of 4,000")
    tally.data_quality = None
    tally.save(tmp_path / "t.tally")
    assert not any(Tally.load(tmp_path / "t.tally").estimate().notes)


def test_a_damaged_data_quality_file_is_an_error(tmp_path: Path) -> None:
    asked, reports = survey(NUMBER), tmp_path / "a.parquet"
    Local(1).perturb(pa.table({"v": [1.0, 2.0]}), asked, reports)
    quality_path(reports).write_text("{}")
    with pytest.raises(FormatError, match=r"_a\.parquet\.quality\.json is not a data-quality report"):
        Local(1).tally(reports, asked)
    quality_path(reports).unlink()
    assert Local(1).tally(reports, asked).data_quality is None


def test_missing_that_is_asked_is_no_warning(tmp_path: Path) -> None:
    optional = survey(Categorical("v", ["Bath", "Ely"], optional=True))
    table = pa.table({"v": pa.array([None] * 10, pa.string())})
    assert Local(1).perturb(table, optional, tmp_path / "a.parquet") == 10
    assert Local(1).data_quality(table, optional).rows() == [
        {"column": "v", "read": 10, "missing": 10, "unknown": 0, "low": 0, "high": 0}
    ]


def test_data_quality_reports_of_batches_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hdr4me.io.reading.batch_rows", lambda survey: 7)
    values = [None if i % 5 == 0 else float(i) for i in range(400)]
    found: list[DataQuality] = []
    Local(1).perturb(pa.table({"v": values}), survey(NUMBER), tmp_path / "a.parquet", on_quality=found.append)
    assert found[0].rows() == [
        {"column": "v", "read": 400, "missing": 80, "unknown": 0, "low": 0, "high": 80}
    ]
    assert Local(1).data_quality(pa.table({"v": values}), survey(NUMBER)).rows() == found[0].rows()


def test_an_error_names_three_columns_and_counts_the_rest() -> None:
    schema = Schema(Numeric(f"x{j}", 0, 1) for j in range(6))
    with pytest.raises(InvalidInput, match=r"'x0'.*'x1'.*'x2'.*3 more columns"):
        check_quality(DataQuality(schema, np.tile([9, 9, 0, 0, 0], (6, 1))))


def test_an_optional_category_without_a_known_value_is_called_missing() -> None:
    """The word that the answer and the explanation have for it."""
    survey = Survey(Schema([Categorical("pet", ["cat", "dog"], optional=True)]), epsilon=1.0)
    notes = Local().data_quality(pa.table({"pet": ["cat", "cow", None]}), survey).notes()
    assert notes == ["column 'pet': 1 of 3 values (33.3 %) are none of the categories and count as 'missing'"]
    survey = Survey(Schema([Numeric("age", 0, 9, optional=True)]), epsilon=1.0)
    notes = Local().data_quality(pa.table({"age": ["1", "old", None]}), survey).notes()
    assert notes == ["column 'age': 1 of 3 values (33.3 %) are not numbers and count as missing"]


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.uint8, np.bool_])
@pytest.mark.parametrize("order", ["C", "F"])
def test_values_outside_are_counted_in_any_layout(kind: type, order: Any) -> None:
    values = np.random.default_rng(5).uniform(0, 2, (700, 3)).astype(kind, order=order)
    values[0, 1] = 0
    if np.dtype(kind).kind == "f":
        values[[0, 350, 699], 2] = np.nan, -np.inf, np.inf
    low, high = np.array([0.0, 0.5, 0.0]), np.array([2.0, 1.5, 1.0])
    expected = (~((values >= low) & (values <= high))).sum(axis=0)
    assert expected[1:].any()
    rows = np.ascontiguousarray(values)
    np.testing.assert_array_equal(count_outside(rows, np.tile(low, 9), np.tile(high, 9)), expected)
