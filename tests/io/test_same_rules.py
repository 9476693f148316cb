"""Fractions as categories, and choices of which some are unknown: one rule in every form, and all of it counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hdr4me as hd
from hdr4me.io.quality import DataQuality, RecordsWarning

DOSE = hd.Categorical("dose", ["0.5", "2.1", "3", "other"], default="other")


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_a_fraction_is_the_same_category_in_csv_and_parquet(kind: pa.DataType, tmp_path: Path) -> None:
    values = [0.5, 2.1, 3.0, 0.75, None]
    (tmp_path / "a.csv").write_text('dose\n0.5\n2.1\n3.0\n0.75\n""\n', encoding="utf-8")
    pq.write_table(pa.table({"dose": pa.array(values, kind)}), tmp_path / "a.parquet")
    survey = hd.Survey(hd.Schema([DOSE]), epsilon=2.0, categorical="grr")
    engine = hd.engines.Local(threads=1)
    rows = [engine.data_quality(tmp_path / f"a.{suffix}", survey).rows()[0] for suffix in ("csv", "parquet")]
    assert (
        rows[0] == rows[1] == {"column": "dose", "read": 5, "missing": 1, "unknown": 1, "low": 0, "high": 0}
    )
    assert [DOSE.find(x) for x in (*values, "2.1", np.float64(0.5), 1e-9, float("inf"))] == [
        0, 1, 2, None, None, 1, 0, None, None,
    ]  # fmt: skip


def test_choices_of_which_some_are_unknown_are_counted(tmp_path: Path) -> None:
    spoken = hd.Selection("spoken", ["de", "en", "fr"], 2)
    survey = hd.Survey(hd.Schema([spoken]), epsilon=2.0)
    path = tmp_path / "a.csv"
    path.write_text("spoken\n" + "de|nl\n" * 10 + "de|en|fr\n" * 2 + "nl\n" + "en\n" * 7, encoding="utf-8")
    quality = hd.engines.Local(threads=1).data_quality(path, survey)
    assert quality.rows() == [
        {"column": "spoken", "read": 20, "missing": 0, "unknown": 1, "low": 10, "high": 2}
    ]
    notes = " ".join(quality.notes())
    assert "10 of 20 values (50 %) are partly unknown and only the known categories count" in notes
    assert "1 of 20 values (5 %) are none of the categories, and the schema" in quality.refused()[0]
    path.write_text("spoken\n" + "de|nl\n" * 10, encoding="utf-8")
    with pytest.warns(RecordsWarning, match="only the known categories count"):
        hd.engines.Local(threads=1).perturb(path, survey, tmp_path / "out.parquet")


def test_a_column_whose_choices_are_all_unknown_is_unusable() -> None:
    schema = hd.Schema([hd.Selection("spoken", ["de", "en"], 1)])
    assert DataQuality(schema, np.array([[5, 0, 5, 0, 0]])).unusable()
    assert DataQuality(
        schema, np.array([[5, 5, 0, 0, 0]])
    ).unusable()  # missing is not the same as nothing chosen
