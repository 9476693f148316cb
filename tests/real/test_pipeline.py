"""The whole pipeline on real data: the same answers from CSV and Parquet, on this machine and on Spark.

Reports are drawn with the system's randomness and have no seed. So every comparison is by bounds: an estimate lies
within eight standard errors of the truth (for normal errors a false alarm once in 10^15 per comparison; standard errors
are themselves estimated from thousands of answers, which leaves far more than the 10^-7 that is allowed here).
Accounts are counts, and equal.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest

from hdr4me.engines import Local
from hdr4me.errors import InvalidInput
from hdr4me.io import DataQuality, RecordsWarning, check_quality
from hdr4me.survey import Survey
from hdr4me.tally import Tally

ENGINES = ["local", pytest.param("spark", marks=pytest.mark.spark)]
SETS = ["wine", "cancer", "iris"]


def as_pandas_writes(table: pa.Table) -> pa.Table:
    """Booleans as True and False, as pandas has them in CSV files."""
    columns = {
        name: pa.array([None if x is None else str(x) for x in table.column(name).to_pylist()])
        if pa.types.is_boolean(table.schema.field(name).type)
        else table.column(name)
        for name in table.column_names
    }
    return pa.table(columns)


def write(table: pa.Table, folder: Path) -> dict[str, Path]:
    """The table as files of both formats."""
    paths = {"parquet": folder / "r.parquet", "csv": folder / "r.csv"}
    pq.write_table(table, paths["parquet"], row_group_size=9_000)
    pv.write_csv(as_pandas_writes(table), paths["csv"])
    return paths


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("kind", ENGINES)
def test_the_truth_is_found(kind: str, name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    data = request.getfixturevalue(name)
    survey = Survey(data.schema, epsilon=4.0, sampled=2, mechanism="duchi")
    engine: Any = Local(2)
    if kind == "spark":
        from hdr4me.engines import spark

        engine = spark(request.getfixturevalue("spark_session"))
    accounts: list[DataQuality] = []
    for form, path in write(data.table, tmp_path).items():
        target = tmp_path / f"{form}-reports.parquet"
        assert engine.perturb(path, survey, target, on_quality=accounts.append) == data.table.num_rows
        answer = engine.tally([target], survey).estimate()
        rows = {(row["dimension"], row["category"]): row for row in answer.table(0.95)}
        assert set(rows) == set(data.truth)
        for key, truth in data.truth.items():
            row = rows[key]
            assert abs(row["estimate"] - truth) <= 8 * row["standard_error"], (form, key)
            assert row["standard_error"] > 0
    assert accounts[0].rows() == accounts[1].rows() == Local(1).data_quality(data.table, survey).rows()


def test_one_in_fifteen_missing_is_counted_and_reported(cancer: Any, tmp_path: Path) -> None:
    survey = Survey(cancer.schema, epsilon=1.0, mechanism="duchi")
    missing, path = cancer.table.column("radius").null_count, write(cancer.table, tmp_path)["csv"]
    message = f"column 'radius': {missing:,} of 30,000 values .* missing and count as 14"
    with pytest.raises(InvalidInput, match=f"{message}, which biases the answer"):
        Local(1).perturb(path, survey, tmp_path / "a.parquet")
    with pytest.warns(RecordsWarning, match=message):
        Local(1).perturb(
            path,
            survey,
            tmp_path / "a.parquet",
            on_quality=lambda found: check_quality(found, allow_unusable=True),
        )
    assert f"{missing:,} of 30,000" in " ".join(
        Local(1).tally(tmp_path / "a.parquet", survey).estimate().notes
    )


def test_missing_species_are_an_answer_and_no_warning(iris: Any, tmp_path: Path) -> None:
    survey = Survey(iris.schema, epsilon=1.0, mechanism="duchi")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Local(1).perturb(write(iris.table, tmp_path)["csv"], survey, tmp_path / "a.parquet")
    assert iris.truth["species", "missing"] == pytest.approx(0.1)


def test_answers_are_in_the_units_of_the_data(wine: Any, tmp_path: Path) -> None:
    """Proline is near 750 and hue near 1, each within eight standard errors (see above)."""
    survey = Survey(wine.schema, epsilon=8.0, sampled=2, mechanism="duchi")
    Local(1).perturb(write(wine.table, tmp_path)["parquet"], survey, tmp_path / "a.parquet")
    answer = Local(1).tally([tmp_path / "a.parquet"], survey).estimate()
    rows = {row["dimension"]: row for row in answer.table(0.95)}
    for name in ("proline", "hue"):
        assert abs(rows[name]["estimate"] - wine.truth[name, None]) <= 8 * rows[name]["standard_error"]
    assert 600 < wine.truth["proline", None] < 900


def test_intervals_cover_the_truth(wine: Any) -> None:
    """95 % intervals over 40 collections of 3,000 reports, 7 rows each: at least 182 of 280 must cover.

    False alarms: if the seven rows of a collection stood or fell together and covered with probability 0.93, it would
    be P(Binomial(40, 0.93) <= 25) = 4e-8; for independent rows it is below 1e-30. Intervals that cover with
    probability 0.5 almost always fail here.
    """
    survey = Survey(wine.schema, epsilon=4.0, sampled=5, mechanism="duchi")
    table = wine.table.slice(0, 178 * 16)  # whole copies of the data set: the truth is that of the set itself
    means = {name: sum(table.column(name).to_pylist()) / table.num_rows for name in table.column_names}
    labels = table.column("grower").to_pylist()
    covered = 0
    for _ in range(40):
        tally = Tally(survey)
        for block in Local(1).reports(table, survey):
            tally = tally.add_block(block)
        for row in tally.estimate().table(0.95):
            category = row["category"]
            truth = means[row["dimension"]] if category is None else labels.count(int(category)) / len(labels)
            covered += row["lower"] <= truth <= row["upper"]
    assert covered >= 182
