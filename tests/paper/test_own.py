"""`hdr4me study` on one's own file, sizes, budgets and mechanisms."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from hdr4me.cli import main
from hdr4me.errors import FormatError
from hdr4me.paper.cells import Cell, law_for, predicted
from hdr4me.paper.datasets import describe, load_own, moments
from hdr4me.paper.runner import Settings, run_cells


@pytest.fixture
def mine(tmp_path):
    rng = np.random.default_rng(1)
    rows = [f"row {i},{a:.4f},{b:.4f},{int(c)}" for i, (a, b, c) in enumerate(rng.normal(size=(400, 3)))]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(["who,height,weight,count", *rows]) + "\n")
    return path


def _study(output, *options):
    return main(["study", *map(str, options), "--output", str(output), "--workers", "1"])


def test_a_file_is_studied_under_its_own_name(tmp_path, mine, capsys):
    output = tmp_path / "out"
    options = [
        mine,
        "--epsilon",
        30,
        "--epsilon",
        90,
        "--mechanism",
        "hybrid",
        "--mechanism",
        "scdf",
    ]
    assert _study(output, *options, "--json") == 0
    captured = capsys.readouterr()
    assert "these columns are not numeric and are not used: who" in captured.err
    document = json.loads(captured.out)
    assert document["claims"] == []
    cells = document["cells"]
    assert list(dict.fromkeys((cell["mechanism"], cell["epsilon"]) for cell in cells)) == [
        ("hybrid", 30.0),
        ("hybrid", 90.0),
        ("scdf", 30.0),
        ("scdf", 90.0),
    ]
    assert {"naive", "l1", "l2", "auto", "oracle"} <= {cell["method"] for cell in cells}
    assert all(isinstance(cell["predicted_mse"], float) for cell in cells)
    assert "case_study" not in document
    assert {"figure-own.svg", "numbers.csv", "report.md"} <= set(document["files"])
    assert not {"table-2.csv", "figure-4.svg", "claims.json"} & set(document["files"])
    report = (output / "report.md").read_text()
    assert "mine.csv: 400 users, 4 settings, Hybrid, Scdf." in report
    assert re.search(r"\| Hybrid, ε = 30 \| .*\| [\d.]+ \([\d.]+\) \|", report.replace("\u00a0", " "))
    everything = report + (output / "numbers.csv").read_text() + (output / "figure-own.svg").read_text()
    assert "COV-19" not in everything
    assert str(tmp_path) not in everything
    command = json.loads((output / "run.json").read_text())["command"]
    assert command == ("hdr4me study mine.csv --epsilon 30 --epsilon 90 --mechanism hybrid --mechanism scdf")


def test_an_embeddings_file_keeps_its_name_too(tmp_path):
    path = tmp_path / "ours.csv"
    path.write_text("".join(f"u{i},{i % 7},{(3 * i) % 11}\n" for i in range(50)))
    (found,) = run_cells(
        [Cell("fig5", "cov19", "laplace", 0.8, 384, 2, 2)], Settings(cov19=str(path)), tmp_path / "w"
    )
    assert found.title == "ours.csv"


@pytest.mark.usefixtures("one_rule")
def test_users_and_dimensions_are_ours(tmp_path, mine, capsys):
    output = tmp_path / "out"
    assert _study(output, mine, "--users", 100, "--dims", 2, "--dims", 6, "--epsilon", 50) == 0
    rows = (output / "numbers.csv").read_text().splitlines()[1:]
    assert {tuple(row.split(",")[7:9]) for row in rows} == {("100", "2"), ("100", "6")}  # 6 of 3: drawn again
    assert "number of dimensions" in (output / "report.md").read_text()
    shown = capsys.readouterr().out
    assert "predicted" in shown
    assert "Laplace" in shown


@pytest.mark.usefixtures("one_rule")
def test_a_synthetic_data_set_by_name(tmp_path, capsys):
    assert _study(tmp_path, "gaussian", "--users", 200, "--dims", 4, "--epsilon", 40) == 0
    assert "Gaussian: 200 users" in (tmp_path / "report.md").read_text()


def test_parquet_and_tabs_are_read(tmp_path, mine):
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    pq.write_table(pc.read_csv(mine), tmp_path / "mine.parquet")
    (tmp_path / "mine.tsv").write_text(mine.read_text().replace(",", "\t"))
    expected = load_own(mine, 400)
    for name in ("mine.parquet", "mine.tsv"):
        found = load_own(tmp_path / name, 400)
        assert (found.title, found.users, found.dims) == (name, 400, 3)
        for j in range(3):
            assert np.array_equal(found.column(j), expected.column(j))
    assert expected.column(0).min() == -1
    assert expected.column(0).max() == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,x\n2,\n", None),
        ("a,b\n1,2\n,3\n", "column 'a': 1 of 2 values are missing"),
        ("a,b\n1,2\nnan,3\n", "column 'a': 1 of 2 values are missing or not finite"),
        ("a,b\nx,y\n", "no numeric column among 2"),
        ("a,b\n1,2\n", "at least two rows"),
        ("a,b\n1,2,3\n", "not a valid CSV file: line 2 has 3 columns, the header has 2"),
    ],
)
def test_an_unusable_file_is_named(tmp_path, text, message):
    path = tmp_path / "f.csv"
    path.write_text(text)
    if message is None:
        assert describe(path).left_out == ("b",)
        return
    with pytest.raises(FormatError, match=message) as refusal:
        describe(path)
    assert "f.csv" in str(refusal.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["none.csv"], "DATA 'none.csv' is not allowed: there is no such file"),
        (["--users", "1"], "--users 1 is not allowed: an integer of at least 2"),
        (["--dims", "0"], "--dims 0 is not allowed: integers from 1 to 65536"),
        (["--epsilon", "-1"], "--epsilon -1 is not allowed: finite numbers > 0"),
        (["--mechanism", "magic"], "--mechanism 'magic' is not allowed"),
    ],
)
def test_bad_options_are_one_plain_line(tmp_path, capsys, options, message):
    assert _study(tmp_path / "out", *options) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_more_users_than_rows_are_refused(tmp_path, mine, capsys):
    assert _study(tmp_path / "out", mine, "--users", 401) == 2
    assert "--users 401 is not allowed: at most 400, the rows of mine.csv" in capsys.readouterr().err


def test_a_law_that_is_not_quadratic_is_predicted_from_every_value():
    """The optimal table's variance has a kink at every level: two values per dimension cannot stand for the data."""
    law = law_for("optimal", 1.0)
    column = np.random.default_rng(1).uniform(-1, 1, 500).astype(np.float32)
    found = predicted(law, moments([column]), 500, [column])
    values = column.astype(np.float64)
    assert float(found.variance) == pytest.approx(float(law.variance(values).mean()) / 500, rel=1e-12)
    plain = law_for("hybrid", 1.0)
    one = predicted(plain, moments([column]), 500)
    assert float(one.variance) == pytest.approx(float(plain.variance(values).mean()) / 500, rel=1e-6)
