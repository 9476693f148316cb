"""The Spark engine on two cores: what one machine says, to the last bit, whatever the reports come in."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hdr4me.channels import Table
from hdr4me.engines import Local, Spark, spark, spark_tally
from hdr4me.engines.spark_session import report_schema
from hdr4me.errors import FingerprintMismatch, FormatError, HDR4MEError, InvalidInput
from hdr4me.io import DataQuality, Reason, Report, read_reports, write_reports
from hdr4me.io.arrow import schema_of
from hdr4me.io.blocks import to_wire
from hdr4me.io.lines import longest_line
from hdr4me.survey import Numeric, Question, Schema, Survey
from hdr4me.tally import Tally

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def engine(spark_session: Any) -> Spark:
    return spark(spark_session)


def survey_of(mixed: Survey, kind: str, sampled: int) -> Survey:
    """The mixed survey's numbers alone, its categories alone, or all of it."""
    chosen = {"numeric": (0, 1), "categorical": (2, 3), "mixed": (0, 1, 2, 3)}[kind]
    return Survey.from_questions(
        Schema(mixed.schema.dimensions[j] for j in chosen),
        epsilon=12.0,
        sampled=sampled or len(chosen),
        questions=[Question((i,), mixed.questions[j].channel) for i, j in enumerate(chosen)],
    )


def write_some_bad(path: Path, survey: Survey, simulate: Callable[..., np.ndarray], n: int = 3000) -> None:
    """Reports, one in seventeen of them bad: unknown question, code out of support, trailing bytes."""
    rng = np.random.default_rng(7)
    rows = simulate(survey, n, lambda j, users: np.zeros(len(users)), rng)
    data, starts = to_wire(rows, survey)
    reports = [bytearray(data[a:b].tobytes()) for a, b in pairwise(starts.tolist())]
    for i in range(0, n, 50):
        reports[i][0] = 200
        reports[i + 1][2] = 250
        if not survey.fixed_size:
            reports[i + 2] += b"c"
    schema = schema_of(survey)
    column = pa.array([bytes(report) for report in reports], schema.field(0).type)
    pq.write_table(pa.table({"report": column}, schema=schema), path, row_group_size=n // 5)


@pytest.mark.parametrize("sampled", [1, 0], ids=["m=1", "m=d"])
@pytest.mark.parametrize("kind", ["numeric", "categorical", "mixed"])
def test_equal_to_the_last_bit(
    engine: Spark,
    mixed: Survey,
    simulate: Callable[..., np.ndarray],
    tmp_path: Path,
    kind: str,
    sampled: int,
) -> None:
    survey = survey_of(mixed, kind, sampled)
    path = tmp_path / "r.parquet"
    write_some_bad(path, survey, simulate)
    expected = Local(threads=1).tally([path], survey)
    assert len(expected.rejected) >= 2
    assert 2500 < expected.n_reports < 3000
    assert engine.tally(path, survey) == expected
    frame = engine.session.read.parquet(str(path)).repartition(3)
    assert engine.tally(frame, survey) == expected


def test_the_tree_adds_as_the_driver_does(
    engine: Spark, mixed: Survey, some_reports: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with write_reports(tmp_path / "r.parquet", mixed) as writer:
        writer.write(some_reports)
    monkeypatch.setattr(spark_tally, "_DIRECT_BYTES", 0)
    monkeypatch.setattr("hdr4me.engines.spark_session._SMALLEST", 1)
    monkeypatch.setattr("hdr4me.engines.spark_session._LARGEST", 500)
    assert engine.tally(tmp_path, mixed) == Tally(mixed).add_block(some_reports)
    frame = engine.session.read.parquet(str(tmp_path)).repartition(4)
    assert engine.tally(frame, mixed) == Tally(mixed).add_block(some_reports)


def test_bad_rows_are_written_down_as_on_one_machine(
    engine: Spark, mixed: Survey, simulate: Callable[..., np.ndarray], tmp_path: Path
) -> None:
    path = tmp_path / "r.parquet"
    write_some_bad(path, mixed, simulate, 500)
    expected = Local(threads=1).tally([path], mixed, quarantine=tmp_path / "local.jsonl")
    assert engine.tally(path, mixed, quarantine=tmp_path / "spark") == expected
    assert lines(tmp_path / "spark") == lines(tmp_path / "local.jsonl")
    # A path that is there already is never overwritten, and no bad reports leave no folder.
    with pytest.raises(InvalidInput, match="already exists"):
        engine.tally(path, mixed, quarantine=tmp_path / "spark")
    clean = engine.session.createDataFrame(pa.table({"report": pa.array([], pa.binary())}))
    assert engine.tally(clean, mixed, quarantine=tmp_path / "none") == Tally(mixed)
    assert not (tmp_path / "none").exists()


def lines(path: Path) -> list[tuple[str, ...]]:
    """Quarantined reports, in an order that does not depend on who wrote them."""
    files = path.glob("part-*") if path.is_dir() else [path]
    documents = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return sorted((x["reason"], x["where"], x["content"]) for x in documents)


def test_json_lines_as_a_file_and_as_a_frame(
    engine: Spark, mixed: Survey, some_reports: np.ndarray, tmp_path: Path
) -> None:
    path = tmp_path / "r.jsonl"
    with write_reports(path, mixed) as writer:
        writer.write(some_reports)
    with path.open("a") as file:
        file.write("nonsense\n\n")
    expected = Local(threads=1).tally([path], mixed)
    assert expected.rejected == {Reason.MALFORMED.text: 1}
    assert engine.tally([path], mixed) == expected
    assert engine.tally(engine.session.read.text(str(path)), mixed) == expected


def test_each_user_is_randomised_once(engine: Spark, tmp_path: Path) -> None:
    """A lazy frame would draw anew at every use; 2000 fair coins agree by chance once in 2^2000."""
    high, low = (1 << 31) + (1 << 24), (1 << 31) - (1 << 24)
    fair = Table("coin", 0.1, {"value": (-128.0, 128.0)}, ((high, low), (low, high)))
    survey = Survey.from_questions(
        Schema([Numeric("x", -1, 1)]), epsilon=0.1, sampled=1, questions=[Question((0,), fair)]
    )
    frame = engine.session.range(2000).selectExpr("cast(0 as double) as x", "id")
    reports = engine.perturb(frame, survey)
    first = [bytes(row["report"]) for row in reports.collect()]
    assert len(set(first)) == 2
    assert [bytes(row["report"]) for row in reports.collect()] == first
    assert engine.tally(reports, survey).counts.tolist() == [first.count(b"\0\0\0"), first.count(b"\0\0\1")]
    # The label survives Spark's own Parquet.
    reports.write.parquet(str(tmp_path / "r"))
    again = engine.session.read.parquet(str(tmp_path / "r"))
    assert again.schema == report_schema(survey)
    assert again.schema["report"].metadata["hdr4me.survey"] == survey.fingerprint
    assert engine.tally(again, survey) == engine.tally(reports, survey)


def quiet(quality: DataQuality) -> None:
    """Odd values are meant here."""


def test_records_from_csv_and_json_lines(engine: Spark, mixed: Survey, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("pet,age,colour,debt,extra\n" + "cat,31,red,-7,x\n?,?,?,?,?\n" * 50)
    (tmp_path / "r.jsonl").write_text('{"pet": "cat", "age": 31, "colour": "red", "debt": -7.5}\n' * 100)
    for name in ("r.csv", "r.jsonl"):
        assert engine.perturb(tmp_path / name, mixed, tmp_path / f"{name}.reports", on_quality=quiet) == 100
        files = sorted((tmp_path / f"{name}.reports").iterdir())
        # One machine reads what Spark wrote.
        assert sum(len(block) for file in files for block in read_reports(file, mixed)) == 100
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_no_records_are_an_error(engine: Spark, mixed: Survey, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("pet,age,colour,debt\n")
    with pytest.raises(FormatError, match=r"r\.csv has a header but no records"):
        engine.perturb(tmp_path / "r.csv", mixed, tmp_path / "out")
    none = engine.session.range(0).selectExpr("1.0 as age", "1.0 as debt", "'a' as colour", "'b' as pet")
    with pytest.raises(FormatError, match="there are no records"):
        engine.perturb(none, mixed, tmp_path / "out")
    with pytest.raises(InvalidInput, match="exists"):
        engine.perturb(tmp_path / "r.csv", mixed, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["r.csv"]


def test_both_engines_read_the_same_records(engine: Spark, mixed: Survey, tmp_path: Path) -> None:
    """One rule for folders, suffixes, encodings and labels; the data-quality reports are equal."""
    folder = tmp_path / "data"
    table = pa.table(
        {
            "age": [31.0, None, 500.0, -1.0] * 25,
            "debt": ["-7", "", "NA", "?"] * 25,
            "colour": ["red", "mauve", None, "blue"] * 25,
            "pet": ["cat"] * 100,
        }
    )
    for name in ("a.parquet", "c.PARQUET", "day=2/b.parquet", "_x/d.parquet"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, folder / name, row_group_size=30)
    (folder / "e.csv.gz").write_bytes(
        gzip.compress(b"pet;age;colour;debt\n" + b"cat;31;red;-7\n" * 10, mtime=0)
    )
    (folder / "f.jsonl").write_text('{"pet": "cat", "age": 31, "colour": "red", "debt": -7.5}\n' * 5)
    found: list[DataQuality] = []
    assert engine.perturb(folder, mixed, tmp_path / "out", on_quality=found.append) == 315
    expected = Local(1).data_quality(folder, mixed)
    assert found[0].rows() == expected.rows() == engine.data_quality(folder, mixed).rows()
    assert engine.tally(tmp_path / "out", mixed).n_reports == 315
    frames: list[DataQuality] = []
    engine.perturb(table, mixed, on_quality=frames.append)
    assert frames[0].rows() == Local(1).data_quality(table, mixed).rows()


def test_what_is_wrong_with_records_is_said_as_on_one_machine(
    engine: Spark, mixed: Survey, tmp_path: Path
) -> None:
    table = pa.table({"age": [1.0] * 9, "debt": [-1.0] * 9, "colour": ["red"] * 9, "pet": ["cat"] * 9})
    path = tmp_path / "r.parquet"
    pq.write_table(table, path)
    content = bytearray(path.read_bytes())
    content[5] ^= 1
    path.write_bytes(content)
    (tmp_path / "latin.csv").write_bytes("age,debt,colour,pet\n1,-1,röt,cat\n".encode("latin-1"))
    (tmp_path / "code.csv").write_text("age,debt,colour,pet\nUA,-1,red,cat\n")
    for name in ("r.parquet", "latin.csv", "code.csv"):
        with pytest.raises(HDR4MEError) as here:
            Local(1).perturb(tmp_path / name, mixed, tmp_path / "a.parquet")
        with pytest.raises(type(here.value)) as there:
            engine.perturb(tmp_path / name, mixed, tmp_path / "out")
        assert str(there.value) == str(here.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["code.csv", "latin.csv", "r.parquet"]


def test_a_failed_job_leaves_nothing(engine: Spark, mixed: Survey, tmp_path: Path) -> None:
    frame = engine.session.range(10).selectExpr(
        "raise_error('no') as age", "1 as debt", "'red' as colour", "'cat' as pet"
    )
    frame = frame.selectExpr("cast(age as double) as age", "debt", "colour", "pet")
    with pytest.raises(Exception, match="no"):
        engine.perturb(frame, mixed, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_what_is_wrong_is_said_before_any_job(engine: Spark, mixed: Survey, other: Survey) -> None:
    session = engine.session
    with pytest.raises(FormatError, match="no column 'debt', 'colour', 'pet'"):
        engine.perturb(session.range(1).selectExpr("id as age"), mixed)
    dates = session.range(1).selectExpr("current_date() as age", "1 debt", "'a' colour", "'b' pet")
    with pytest.raises(InvalidInput, match="column 'age' is of type date32"):
        engine.perturb(dates, mixed)
    with pytest.raises(FileNotFoundError, match=r"nothing\.csv"):
        engine.perturb("/nothing.csv", mixed)
    with pytest.raises(InvalidInput, match="expected a DataFrame"):
        engine.perturb([1, 2], mixed)
    with pytest.raises(FormatError, match="no column 'report' or 'value'"):
        engine.tally(session.range(1), mixed)
    with pytest.raises(FormatError, match="is of type long"):
        engine.tally(session.range(1).selectExpr("id as report"), mixed)
    labeled = session.createDataFrame([], report_schema(other))
    with pytest.raises(FingerprintMismatch, match="column 'report' belongs to survey"):
        engine.tally(labeled, mixed)
    with pytest.raises(InvalidInput, match="must be a Survey"):
        engine.tally(labeled, "mixed")
    with pytest.raises(InvalidInput, match="must be a SparkSession"):
        spark("local[2]")  # type: ignore[arg-type]


# -- one rule for this machine and for Spark ---------------------------------------------------------------------


def test_a_folder_means_the_same_files_on_both_engines(
    engine: Spark, mixed: Survey, some_reports: np.ndarray, tmp_path: Path
) -> None:
    names = [
        "a.parquet",
        "c.PARQUET",
        "day=2/b.parquet",
        "day=2/d.jsonl",
        "_temporary/e.parquet",
        ".f.parquet",
    ]
    for i, name in enumerate(names):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        plain = tmp_path / f"x{Path(name).suffix.lower()}"
        with write_reports(plain, mixed) as writer:
            writer.write(some_reports[100 * i : 100 * i + 100])
        plain.rename(tmp_path / name)
    expected = Tally(mixed).add_block(some_reports[:400])
    assert Local(threads=1).tally(tmp_path, mixed) == expected
    assert engine.tally(tmp_path, mixed) == expected
    (tmp_path / "readme.txt").write_text("not reports")
    for tally in (Local(threads=1).tally, engine.tally):
        with pytest.raises(FormatError, match=r"readme\.txt is not a file of reports"):
            tally(tmp_path, mixed)


def test_lines_mean_the_same_on_both_engines(engine: Spark, mixed: Survey, tmp_path: Path) -> None:
    limit = longest_line(mixed)
    good = Report(mixed.fingerprint, ((0, 2), (2, 1))).to_json().encode()
    lines = [
        good,
        b" " * 3 * limit + good,
        good + b" " * 3 * limit,
        b"\xef\xbb\xbf" + good,
        good[:-1] + b" " * (limit - len(good)) + b"}",
        good[:-1] + b" " * (limit - len(good) + 1) + b"}",
        good + b" " * 3 * limit + b"x",
        b" " * 3 * limit,
        b"\xef\xbb\xbf",
        b"{\xff}",
        good.replace(b'survey":"', b'survey":"\xff'),
        good.decode().encode("utf-16-le"),
    ]
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"\n".join(lines))
    expected = Local(threads=1).tally(path, mixed)
    assert (expected.n_reports, sum(expected.rejected.values())) == (5, 5)
    assert engine.tally(path, mixed) == expected
    assert engine.tally(engine.session.read.option("lineSep", "\n").text(str(path)), mixed) == expected
