"""One rule for labels: Booleans and integers mean the same in every reader, engine and client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from hdr4me.engines import Local
from hdr4me.errors import InvalidInput
from hdr4me.io.columns import from_batch
from hdr4me.io.infer import infer_schema
from hdr4me.io.reading import record_batches
from hdr4me.survey import Categorical, Numeric, Schema, Survey
from hdr4me.survey.values import as_number

LISTS = [["true", "false"], ["True", "False"], ["FALSE", "TRUE"], ["false", "true", "unknown"]]


@pytest.mark.parametrize("categories", LISTS, ids=repr)
@pytest.mark.parametrize("value", [True, "True", "true", "TRUE", np.True_])
def test_booleans_in_any_spelling(categories: list[str], value: Any) -> None:
    late = Categorical("late", categories)
    assert late.categories[late.find(value)].lower() == "true"  # type: ignore[index]
    assert late.categories[late.clean(value)].lower() == "true"


def test_the_exact_label_comes_first() -> None:
    odd = Categorical("x", ["true", "True", "3", "3.0", "no"], default="no")
    assert [odd.find(x) for x in ("true", "True", True, "3", "3.0", 3, 3.0)] == [0, 1, 0, 2, 3, 2, 2]
    assert [odd.find(x) for x in ("TRUE", "3.00", "False", "yes", None, 2.5)] == [
        None
    ] * 6  # two would do: neither
    assert [odd.clean(x) for x in ("TRUE", None)] == [4, 4]


def test_integers_with_zeros_after_the_point() -> None:
    """pandas writes a column of integers with gaps as 3.0; Parquet has the number."""
    rooms = Categorical("rooms", [1, 2, 3], default=1)
    assert [rooms.find(x) for x in (3, 3.0, "3", "3.0", "3.000", "03", "3.5", " 3")] == [
        2,
        2,
        2,
        2,
        2,
        None,
        None,
        None,
    ]
    assert Categorical("rooms", ["1.0", "2.0"]).find(2) == 1


def test_what_a_first_survey_matched_exactly_stays() -> None:
    town = Categorical("town", ["Bath", "bath", "7", "true"])
    assert [town.find(x) for x in ("Bath", "bath", 7, True, "BATH", "7.5")] == [0, 1, 2, 3, None, None]


def codes(path: Path, survey: Survey) -> list[int]:
    """The number of the category of each record."""
    found: list[int] = []
    for batch in record_batches(path, survey):
        source = from_batch(batch, survey)
        lut = source.columns.lut[source.columns.lut_start[0] :]
        found += lut[source.owners[0].to_numpy(zero_copy_only=False).astype(int)].tolist()
    return found


def write(table: pa.Table, path: Path) -> Path:
    if path.suffix == ".csv":
        pv.write_csv(table, path)
    elif path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        feather.write_feather(table, str(path))
    return path


@pytest.mark.parametrize("categories", LISTS, ids=repr)
def test_the_same_rows_in_every_file(categories: list[str], tmp_path: Path) -> None:
    """`late=true,false` gave 1.00 from pandas' CSV, where the truth and Parquet said 0.23."""
    survey = Survey(Schema([Categorical("late", categories)]), epsilon=1.0)
    truth = [i % 4 == 0 for i in range(40)]
    pandas_like = pa.table({"late": ["True" if x else "False" for x in truth]})
    paths = [
        write(pa.table({"late": truth}), tmp_path / "a.parquet"),
        write(pa.table({"late": truth}), tmp_path / "a.arrow"),
        write(pa.table({"late": truth}), tmp_path / "a.csv"),
        write(pandas_like, tmp_path / "b.csv"),
        write(pandas_like, tmp_path / "b.parquet"),
    ]
    (tmp_path / "a.jsonl").write_text("".join(f'{{"late": {str(x).lower()}}}\n' for x in truth))
    expected = [survey.schema.dimensions[0].clean(x) for x in truth]  # type: ignore[attr-defined]
    for path in [*paths, tmp_path / "a.jsonl"]:
        assert codes(path, survey) == expected, path


def test_booleans_as_numbers_in_every_file(tmp_path: Path) -> None:
    survey = Survey(Schema([Numeric("late", 0, 1)]), mechanism="duchi")
    (tmp_path / "a.csv").write_text("late\nTrue\nFalse\nTRUE\n")
    write(pa.table({"late": [True, False, True]}), tmp_path / "a.parquet")
    for path in (tmp_path / "a.csv", tmp_path / "a.parquet"):
        (batch,) = record_batches(path, survey)
        assert [float(x) for x in from_batch(batch, survey).owners[0].to_pylist()] == [1.0, 0.0, 1.0]
    assert [as_number(x) for x in ("True", "false", True)] == [1.0, 0.0, 1.0]


def test_categories_without_true_and_false_for_booleans_are_refused(tmp_path: Path) -> None:
    """`night=no,yes` on a boolean column gave 99.9 % no."""
    survey = Survey(Schema([Categorical("night", ["no", "yes"])]))
    table = pa.table({"night": [True, False] * 50})
    with pytest.raises(InvalidInput, match="column 'night' holds Booleans, but neither"):
        Local(1).perturb(table, survey, tmp_path / "r.parquet")
    for path in (write(table, tmp_path / "a.csv"), write(table, tmp_path / "a.parquet")):
        with pytest.raises(InvalidInput, match="column 'night' holds Booleans"):
            infer_schema(path, categories={"night": ["no", "yes"]})
        with pytest.raises(InvalidInput, match="column 'night'"):
            Local(1).perturb(path, survey, tmp_path / "r.parquet")
    assert not (tmp_path / "r.parquet").exists()


def test_missing_as_a_category(tmp_path: Path) -> None:
    """2,512 missing tail numbers made one aircraft the most frequent."""
    town = Categorical("town", ["Bath", "Ely"], optional=True)
    assert town == Categorical("town", ["Bath", "Ely", "missing"], default="missing")
    assert (town.optional, Categorical("town", ["a", "b"]).optional) == (True, False)
    assert [town.clean(x) for x in ("Bath", None, "", "Wells")] == [0, 2, 2, 2]
    again = Schema.from_dict(
        {"dimensions": [{"name": "town", "categories": ["Bath", "Ely"], "optional": True}]}
    )
    assert again == Schema([town]) == Schema.from_dict(again.to_dict())
    survey = Survey(Schema([town]), epsilon=1.0)
    write(pa.table({"town": pa.array(["Bath", "Ely", "Wells"])}), tmp_path / "a.parquet")
    assert codes(tmp_path / "a.parquet", survey) == [0, 1, 2]
    for bad in ({"default": "Bath", "optional": True}, {"optional": 1}):
        with pytest.raises(InvalidInput, match="optional"):
            Categorical("town", ["Bath", "Ely"], **bad)  # type: ignore[arg-type]


def test_a_surveys_file_is_a_schema_too(tmp_path: Path) -> None:
    survey = Survey(Schema([Numeric("age", 0, 120), Categorical("c", ["a", "b"])]), mechanism="duchi")
    survey.save(tmp_path / "survey.json")
    assert Schema.load(tmp_path / "survey.json") == survey.schema


def test_an_empty_text_can_be_a_category(tmp_path: Path) -> None:
    survey = Survey(Schema([Categorical("c", ["a", ""], default="a"), Numeric("x", 0, 1)]), mechanism="duchi")
    (tmp_path / "a.csv").write_text("c,x\na,1\n,1\n")
    assert codes(tmp_path / "a.csv", survey) == [0, 1]
