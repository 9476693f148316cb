"""Dimensions of another package: whole columns are cleaned by their rule for one value, and counted."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import make_archive
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from acme.dimension import Agreement, Count, Gain

import hdr4me as hd
from hdr4me import checks
from hdr4me.comparison.data import cleaned
from hdr4me.engines import Local
from hdr4me.io.columns import from_batch, from_matrix
from hdr4me.survey import Dimension
from hdr4me.survey.dimension import FAULTS

VISITS = Count("v", 20)
LIKES = Agreement("v")
COLUMNS: dict[str, tuple[Dimension, Any]] = {
    "integers": (VISITS, pa.array([3, 25, -1, None, 20, 3, 0], pa.int64())),
    "floats": (VISITS, pa.array([3.5, 25.0, float("nan"), None, float("-inf")], pa.float32())),
    "texts": (VISITS, pa.array(["3", " 7 ", "often", "", None, "NA", "1e9"])),
    "dictionary": (VISITS, pa.array(["3", None, "x", "3"]).dictionary_encode()),
    "truth": (VISITS, pa.array([True, False, None])),
    "lists": (VISITS, pa.array([[1, 2], None])),
    "nothing": (VISITS, pa.nulls(3)),
    "no rows": (VISITS, pa.array([], pa.int64())),
    "slice": (VISITS, pa.array([1, 2, None, 30, 4, 5]).slice(2, 3)),
    "words": (LIKES, pa.array(["much", "no word", None, "", "fully", "much"])),
    "grades": (LIKES, pa.array([1, 5, 9, None, 3])),
    "no grades": (LIKES, pa.nulls(2)),
}


def positions(column: Any, dimension: Dimension) -> list[float]:
    """What the kernel makes of a clean column, null being the position of a missing value."""
    missing = float(dimension.encode(None, 9))
    found = [missing if x is None else float(x) for x in column.array.to_pylist()]
    if column.lut is None:
        return found
    given = column.array.to_pylist()
    return [missing if k is None else float(column.lut[k] << 16) for k in given]


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_is_cleaned_and_counted_as_one_by_one(name: str) -> None:
    dimension, column = COLUMNS[name]
    values = column.to_pylist()
    found = dimension.clean_column([column], 9)
    assert positions(found, dimension) == [dimension.encode(value, 9) for value in values]
    qualities = [dimension.quality(value) for value in values]
    assert found.counts() == tuple(qualities.count(fault) for fault in FAULTS)


def test_the_data_quality_report_counts_faults(tmp_path: Path) -> None:
    survey = hd.Survey(hd.Schema([VISITS]), epsilon=1.0, mechanism="duchi")
    values = [3] * 90 + ["often"] * 3 + [None] * 2 + [-1] + [99] * 4
    (tmp_path / "a.csv").write_text("v,w\n" + "".join(f"{'' if x is None else x},1\n" for x in values))
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"v": x}) + "\n" for x in values))
    for name in ("a.csv", "a.jsonl"):
        quality = Local(1).data_quality(tmp_path / name, survey)
        assert quality.rows() == [
            {"column": "v", "read": 100, "missing": 2, "unknown": 3, "low": 1, "high": 4}
        ]
        assert quality.notes() == [
            "column 'v': 2 of 100 values (2 %) are missing and count as the default",
            "column 'v': 3 of 100 values (3 %) are not numbers and count as the default",
            "column 'v': 4 of 100 values (4 %) are above 20 and count as 20",
        ]
    far = pa.table({"v": [99] * 5})
    with pytest.raises(hd.errors.InvalidInput, match=r"no usable value among 5 .*5 above 20"):
        Local(1).perturb(far, survey, tmp_path / "r.parquet")


def test_json_keeps_the_types_that_their_rule_asks_for(tmp_path: Path) -> None:
    survey = hd.Survey(hd.Schema([LIKES]), epsilon=1.0)
    (tmp_path / "a.jsonl").write_text('{"v": 4}\n{"v": 5}\n{"v": null}\n{"v": 9}\n')
    assert Local(1).data_quality(tmp_path / "a.jsonl", survey).counts.tolist() == [[4, 1, 1, 0, 0]]


def test_the_mean_of_a_column_is_that_of_a_built_in(tmp_path: Path) -> None:
    """The same survey with a built-in number; false alarm rate below 10^-6 (five standard errors, twice)."""
    rng = np.random.default_rng(11)
    table = pa.table({"v": rng.poisson(6, 50_000)})
    pq.write_table(table, tmp_path / "r.parquet")
    truth = float(np.minimum(np.asarray(table["v"]), 20).mean())
    for dimension in (VISITS, hd.Numeric("v", 0, 20)):
        survey = hd.Survey(hd.Schema([dimension]), epsilon=2.0)
        Local(1).perturb(tmp_path / "r.parquet", survey, tmp_path / "out.parquet")
        answer = Local(1).tally(tmp_path / "out.parquet", survey).estimate()
        assert abs(answer.value[0] - truth) < 5 * answer.standard_error[0]


def test_a_matrix_holds_their_numbers_and_indices() -> None:
    survey = hd.Survey(hd.Schema([VISITS, Agreement("w")]), epsilon=2.0, sampled=2, mechanism="duchi")
    values = np.array([[3.0, 0], [25.0, 4], [np.nan, 2]])
    assert Local(1).data_quality(values, survey).counts.tolist() == [[3, 1, 0, 0, 1], [3, 0, 0, 0, 0]]
    assert from_matrix(values, survey).owners[0][:, 0].tolist() == [VISITS.encode(x, 2) for x in values[:, 0]]


def test_their_kinds_are_compared() -> None:
    schema = hd.Schema([VISITS, Agreement("w")])
    table = pa.table({"v": [3, 25, None, 7] * 25, "w": ["much", "fully", None, "?"] * 25})
    clean, quality = cleaned(table, schema)
    assert clean.column("v").to_pylist() == pytest.approx([3, 20, 0, 7] * 25, abs=1e-6)
    assert clean.column("w").to_pylist() == ["much", "fully", "somewhat", "somewhat"] * 25
    assert quality.counts.tolist() == [[100, 25, 0, 0, 25], [100, 25, 25, 0, 0]]
    with pytest.raises(hd.errors.InvalidInput, match=r"column 'v': 25 of 100 values \(25 %\) are missing"):
        hd.compare(table, schema=schema, epsilon=2.0)
    usable = pa.table({"v": [3, 25, 7, 7] * 25, "w": ["much", "fully"] * 50})
    found = hd.compare(
        usable, schema=schema, epsilon=2.0, repeats=1, mechanisms=["duchi", "grr"], recalibrate=False
    )
    assert {row.kind for row in found.rows} == {"numbers", "categories"}
    assert all(row.predicted is not None and row.predicted > 0 for row in found.rows)


def test_each_distinct_value_is_cleaned_once() -> None:
    seen: list[Any] = []

    class Slow(Count):
        def encode(self, value: Any, size: int) -> int:
            seen.append(value)
            return super().encode(value, size)

    survey = hd.Survey(hd.Schema([Slow("v", 20)]), epsilon=1.0, mechanism="duchi")
    seen.clear()
    from_batch(pa.record_batch([pa.array(list(range(10)) * 1000)], names=["v"]), survey)
    assert len(seen) == 11  # and what stands for a missing value


def test_the_contract_holds() -> None:
    checks.check_dimension(Count("v", 20), [3, "4", 99, -1])


# -- a dimension that reads several columns ------------------------------------------------------------------------

GAIN = Gain("gain", "monday", "friday")


def gains(n: int) -> tuple[pa.Table, float]:
    rng = np.random.default_rng(3)
    monday, friday = rng.normal(0, 3, n), rng.normal(2, 3, n)
    return pa.table({"monday": monday, "friday": friday}), float(np.clip(friday - monday, -10, 10).mean())


def test_several_columns_in_files_of_every_kind(tmp_path: Path) -> None:
    """From records to an estimate; five standard errors, four times: a false alarm in 10^5 runs."""
    import pyarrow.csv as pv

    table, truth = gains(20_000)
    survey = hd.Survey(hd.Schema([GAIN]), epsilon=4.0)
    pq.write_table(table, tmp_path / "r.parquet")
    pv.write_csv(table, tmp_path / "r.csv")
    rows = table.to_pylist()
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for records in (table, *(tmp_path / name for name in ("r.parquet", "r.csv", "r.jsonl"))):
        Local(1).perturb(records, survey, tmp_path / "out.parquet")
        answer = Local(1).tally(tmp_path / "out.parquet", survey).estimate()
        assert answer.n_answers[0] == 20_000
        assert abs(answer.value[0] - truth) < 5 * answer.standard_error[0]


def test_several_columns_in_the_client() -> None:
    survey = hd.Survey(hd.Schema([GAIN]), epsilon=4.0)
    client = hd.Client(survey)
    assert survey.schema.columns == ("monday", "friday")
    tally = hd.Tally(survey).add(client.report({"monday": 1, "friday": 6}) for _ in range(2000))
    answer = tally.estimate()
    assert abs(answer.value[0] - 5) < 5 * answer.standard_error[0]  # a false alarm in 10^6 runs
    with pytest.raises(hd.errors.InvalidInput, match="'gain': the value is missing"):
        client.report({"monday": 1})
    with pytest.raises(hd.errors.InvalidInput, match="field 'gain' that the survey does not have"):
        client.report({"gain": 1})


@pytest.mark.spark
def test_several_columns_on_spark(spark_session: Any, tmp_path: Path) -> None:
    table, truth = gains(20_000)
    survey = hd.Survey(hd.Schema([GAIN]), epsilon=4.0)
    folder = Path(__file__).parent
    spark_session.sparkContext.addPyFile(make_archive(str(tmp_path / "plugin"), "zip", folder, "acme"))
    engine = hd.engines.spark(spark_session)
    engine.perturb(table, survey, tmp_path / "out")
    answer = engine.tally(tmp_path / "out", survey).estimate()
    assert abs(answer.value[0] - truth) < 5 * answer.standard_error[0]  # a false alarm in 10^6 runs
