"""Comparisons: the predicted error is the simulated one, on real data too; all draws are seeded."""

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from typer.testing import CliRunner

import hdr4me as hd
from hdr4me.cli.app import app
from hdr4me.comparison import compare
from hdr4me.comparison.data import public_table
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.simulation.collection import simulate_tally


@pytest.fixture(scope="module")
def wine() -> pd.DataFrame:
    frame = load_wine(as_frame=True).frame
    frame["target"] = frame["target"].map({0: "a", 1: "b", 2: "c"})
    return frame


@pytest.mark.no_cover
@pytest.mark.parametrize("sampled", [1, 4])
def test_predictions_hold_on_real_data(wine: pd.DataFrame, sampled: int) -> None:
    """Each mean over 60 collections is within 4.5 standard errors: a right prediction fails in 0.1 % of seeds."""
    columns = ["alcohol", "malic_acid", "ash", "target", "hue", "proline"]
    options = {
        "mechanisms": ["optimal", "laplace", "subset", "oue"],
        "columns": columns,
        "recalibrate": False,
    }
    found = compare(wine, epsilon=[1.0, 4.0], users=1000, repeats=60, sampled=sampled, seed=3, **options)
    assert {row.kind for row in found.rows} == {"numbers", "categories"}
    for row in found.rows:
        assert row.predicted is not None
        assert abs(row.simulated - row.predicted) < 4.5 * row.simulated_se, row
        assert row.coverage > 0.9
        assert row.recalibrated is None


def test_everybody_answers_everything() -> None:
    """With m = d the sampling of users adds no error; with that term the prediction would be 40 % too high."""
    values = np.random.default_rng(1).uniform(-1, 1, 2000)
    found = compare(
        pa.table({"x": values}), epsilon=8.0, mechanisms=["optimal"], repeats=60, seed=1, recalibrate=False
    )
    row = found.rows[0]
    assert row.predicted is not None
    assert abs(row.simulated - row.predicted) < 4.5 * row.simulated_se
    assert row.predicted < 0.75 * (row.predicted + values.var() / 2000)


def test_other_statistics_and_mechanisms_without_them() -> None:
    frame = load_breast_cancer(as_frame=True).frame[["mean radius", "mean texture"]]
    found = compare(
        frame, epsilon=2.0, users=3000, repeats=2, statistic="median", mechanisms=["duchi", "piecewise"]
    )
    assert [row.mechanism for row in found.rows] == ["piecewise"]
    assert found.rows[0].predicted is None
    assert found.notes == ("duchi is left out: it cannot estimate the median",)
    variance = compare(
        frame, epsilon=2.0, users=3000, repeats=2, statistic="variance", mechanisms=["piecewise"]
    )
    assert variance.rows[0].simulated < 0.1


def test_frames_tables_and_files_are_the_same_data(wine: pd.DataFrame, tmp_path: Path) -> None:
    columns = wine[["alcohol", "target"]]
    columns.to_csv(tmp_path / "wine.csv", index=False)
    pq.write_table(pa.Table.from_pandas(columns), tmp_path / "wine.parquet")
    columns.to_json(tmp_path / "wine.jsonl", orient="records", lines=True)
    sources = [columns, pl.from_pandas(columns), pa.Table.from_pandas(columns)]
    sources += [tmp_path / "wine.csv", str(tmp_path / "wine.parquet"), tmp_path / "wine.jsonl"]
    options = {"epsilon": 1.0, "repeats": 1, "mechanisms": ["duchi", "grr"], "seed": 5}
    tables = [compare(source, **options).table() for source in sources]
    for table in tables[1:]:
        for one, other in zip(table, tables[0], strict=True):
            assert one["simulated"] == pytest.approx(other["simulated"], rel=1e-9)


def test_notes_say_what_is_left_out() -> None:
    table = pa.table(
        {
            "x": [1.0, 2.0, None] * 10,
            "same": [3] * 30,
            "empty": pa.array([None] * 29 + [1.0]),
            "who": [f"name {i}" for i in range(30)],
            "ok": [True, False, True] * 10,
            "day": pa.array([1] * 30, pa.date32()),
        }
    )
    kept, schema, notes, _ = public_table(table)
    assert schema.names == ("x", "who", "ok") or list(schema.names) == ["x", "who", "ok"]
    assert kept.num_rows == 20
    assert notes == [
        "'same' is left out: all its values are equal",
        "'empty' is left out: more than half of its values are missing",
        "'day' is left out: all its values are equal",
        "10 of 30 rows have missing values and are left out",
    ]


def test_a_schema_may_be_given() -> None:
    schema = hd.Schema([hd.Numeric("x", 0, 10)])
    found = compare(
        pa.table({"x": np.linspace(0, 5, 50)}), schema=schema, epsilon=1.0, repeats=1, mechanisms=["duchi"]
    )
    assert found.best(1.0).mechanism == "duchi"
    with pytest.raises(InvalidInput, match="nothing was compared for numbers at epsilon = 3"):
        found.best(3.0)
    with pytest.raises(FormatError, match="the table has no column 'x'"):
        compare(pa.table({"y": [1.0, 2.0] * 9}), schema=schema)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": -1.0}, "epsilon = -1.0 is not allowed: positive, finite numbers"),
        ({"epsilon": []}, "epsilon = \\[\\] is not allowed"),
        ({"statistic": "mode"}, "statistic = 'mode' is not allowed: one of mean, median, variance"),
        ({"mechanisms": ["magic"]}, "mechanisms = 'magic' is not allowed"),
        ({"mechanisms": ["grr"]}, "no mechanism can be compared: .*no mechanism for numbers is among grr"),
        ({"repeats": 0}, "repeats = 0 is not allowed"),
        ({"users": 3}, "users = 3 is not allowed"),
        ({"columns": ["z"]}, "columns = 'z' is not allowed: one of x"),
        ({"statistic": "median", "mechanisms": ["duchi"]}, "no mechanism can be compared: duchi is left out"),
    ],
)
def test_bad_input(options: dict, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        compare(pa.table({"x": [0.0, 1.0] * 20}), **{"repeats": 1, **options})


def test_bad_data(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="records of type int: expected files"):
        compare(3)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    for schema in (None, hd.Schema([hd.Numeric("x", 0, 1)])):
        with pytest.raises(FileNotFoundError):
            compare(tmp_path / "no.csv", schema=schema)
        with pytest.raises(FormatError, match=r"bad\.parquet is not a complete Parquet file"):
            compare(tmp_path / "bad.parquet", schema=schema)
    with pytest.raises(InvalidInput, match="at least 10 are needed"):
        compare(pa.table({"x": [0.0, 1.0]}))
    with pytest.raises(InvalidInput, match="no column is left to compare"):
        compare(pa.table({"x": [1.0] * 20}))


def test_a_seed_repeats_a_collection() -> None:
    survey = hd.Survey(hd.Schema([hd.Categorical("c", list("abcdef")), hd.Numeric("x", 0, 1)]), epsilon=1.0)
    table = pa.table({"c": list("abcdef") * 50, "x": np.linspace(0, 1, 300)})
    one, again, other = (simulate_tally(table, survey, seed=s) for s in (1, 1, 2))
    assert one == again
    assert one != other


def test_pictures_and_pages(tmp_path: Path) -> None:
    table = pa.table({"x": np.linspace(0, 1, 200), "c": ["a", "b"] * 100})
    pq.write_table(table, tmp_path / "d.parquet")
    found = compare(table, epsilon=[1.0, 2.0], repeats=2, mechanisms=["duchi", "grr"])
    axes = found.plot().axes
    assert len(axes) == 2
    for panel in axes:  # some tick lies in the range, however narrow it is
        low, high = panel.get_ylim()
        assert any(low <= tick <= high for tick in panel.get_yticks())
    assert all(row.recalibrated is not None for row in found.rows)
    assert found.html().startswith("<!doctype html>")
    assert "<svg" in found._repr_html_()
    base = [
        "compare",
        str(tmp_path / "d.parquet"),
        "--epsilon",
        "1,2",
        "--repeats",
        "2",
        "--mechanism",
        "duchi",
    ]
    run = CliRunner().invoke
    given = run(app, [*base, "--output", str(tmp_path / "c.html"), "--output", str(tmp_path / "c.png")])
    assert given.exit_code == 0
    assert "predicted MSE" in given.output
    assert (tmp_path / "c.png").stat().st_size > 5000
    document = json.loads(run(app, [*base, "--json"]).stdout)
    assert [row["epsilon"] for row in document["rows"]] == [1.0, 2.0]
    for bad, words in (
        (["--epsilon", "x"], "--epsilon 'x' is not allowed"),
        (["--output", "a.gif"], "must end in"),
    ):
        with pytest.raises(InvalidInput, match=words):
            run(app, [*base, *bad], catch_exceptions=False)


def test_files_are_read_as_perturb_reads_them(tmp_path: Path) -> None:
    """Compressed files, other delimiters and encodings, Arrow files and folders; with a schema or without."""
    rng = np.random.default_rng(3)
    towns = np.array(["Köln", "Bonn"])[rng.integers(0, 2, 60)]
    table = pa.table({"x": rng.uniform(0, 1, 60), "town": towns})
    text = "x;town\n" + "".join(
        f"{x!r};{town}\n" for x, town in zip(*table.to_pydict().values(), strict=True)
    )
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "b.csv").write_bytes(text.encode("utf-16"))
    with pa.OSFile(str(tmp_path / "c.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    (tmp_path / "d").mkdir()
    pq.write_table(table.slice(0, 30), tmp_path / "d" / "1.parquet")
    pq.write_table(table.slice(30), tmp_path / "d" / "2.parquet")
    options = {"epsilon": 1.0, "repeats": 1, "mechanisms": ["duchi", "grr"], "recalibrate": False}
    known = hd.Schema([hd.Numeric("x", 0, 1), hd.Categorical("town", ["Bonn", "Köln"])])
    for schema in (None, known):
        expected = [(row.kind, row.predicted) for row in compare(table, schema=schema, **options).rows]
        for name in ("a.csv.gz", "b.csv", "c.arrow", "d"):
            found = compare(tmp_path / name, schema=schema, **options)
            assert [(row.kind, pytest.approx(row.predicted, rel=1e-12)) for row in found.rows] == expected
            assert found.data_quality.n_records == 60
