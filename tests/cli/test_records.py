"""`survey` and `perturb` with real-world files."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hdr4me.survey import Categorical, Numeric, Schema, Survey


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text("p1,p2,late,town\n" + "0.25,0.5,True,Bath\n0.5,,False,Ely\n" * 20)
    return path


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    schema = Schema(
        [Numeric("p1", 0, 1), Numeric("p2", 0, 1, 0.5), Categorical("town", ["Bath", "Ely"], "Bath")]
    )
    path = tmp_path / "survey.json"
    Survey(schema, mechanism="duchi").save(path)
    return path


# -- perturb ---------------------------------------------------------------------------------------------------


def test_the_data_quality_report_is_shown(run, people: Path, survey: Path, tmp_path: Path) -> None:
    refused = run("perturb", survey, people, "-o", tmp_path / "r.parquet", "--json")
    assert refused.code == 2
    assert "20 of 40 values (50 %) are missing and count as 0.5, which biases the answer" in refused.err
    assert not (tmp_path / "r.parquet").exists()
    out = run("perturb", survey, people, "-o", tmp_path / "r.parquet", "--json", "--allow-unusable")
    assert out.json["data_quality"][1] == {
        "column": "p2", "read": 40, "missing": 20, "unknown": 0, "low": 0, "high": 0
    }  # fmt: skip
    assert "warning: column 'p2': 20 of 40 values (50 %) are missing and count as 0.5" in out.err
    assert b"missing" not in (tmp_path / "r.parquet").read_bytes()  # the account is never sent


def test_check_reads_and_writes_nothing(run, plain, people: Path, survey: Path, tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    shown = run("perturb", survey, people, "--check-only", "--allow-unusable")
    assert shown.code == 0
    assert "not private" in shown.out
    assert "p2" in shown.out
    assert run("perturb", survey, people, "--check-only", "--allow-unusable", "--json").json["records"] == 40
    assert set(tmp_path.iterdir()) == before
    assert "--check-only" in plain("perturb", survey, people)
    assert "--check-only" in plain("perturb", survey, people, "--check-only", "-o", tmp_path / "r.parquet")


def test_thousands_separators(run, plain, tmp_path: Path) -> None:
    """Incomes written as "11,960" gave an estimate of 81,152 for a mean of 27,096, with status ok."""
    path, made, out = tmp_path / "hi.csv", tmp_path / "s.json", tmp_path / "r.parquet"
    path.write_text("inc2\n" + '"11,960"\n' * 76 + "960\n" * 24)
    Survey(Schema([Numeric("inc2", 0, 200_000)]), mechanism="duchi").save(made)
    message = plain("perturb", made, path, "-o", out)
    assert "76 of 100 values (76 %) are not numbers, and the schema declares neither a default nor" in message
    assert "--thousands" in message
    assert "11,960" not in message
    assert not out.exists()
    assert run("perturb", made, path, "--thousands", ",", "-o", out, "--json").json["reports"] == 100


def test_an_unusable_column(run, plain, survey: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "codes.csv", tmp_path / "r.parquet"
    path.write_text("p1,p2,town\n" + "UA,1,Bath\n" * 9)
    assert "column 'p1' has no usable value among 9" in plain("perturb", survey, path, "-o", out)
    assert not out.exists()
    assert run("perturb", survey, path, "--check-only").code == 2
    allowed = run("perturb", survey, path, "-o", out, "--allow-unusable")
    assert allowed.code == 0
    assert "warning: column 'p1' has no usable value" in allowed.err
    assert out.exists()


def test_file_formats_on_the_command_line(
    run, plain, survey: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "p1;p2;town\n" + "1;1;Bath\n" * 10
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    (tmp_path / "b.csv").write_bytes((text + "1;1;Bath\n" * 19 + "1;1;Köln\n").encode("latin-1"))
    out = ("-o", tmp_path / "r.parquet", "--json")
    assert run("perturb", survey, tmp_path / "a.csv.gz", *out).json["reports"] == 10
    message = plain("perturb", survey, tmp_path / "b.csv", *out)
    assert "b.csv, row 30: not valid UTF-8 text" in message
    assert "--encoding" in message
    both = run("perturb", survey, tmp_path / "a.csv.gz", tmp_path / "b.csv", "--encoding", "latin-1", *out)
    assert both.json["reports"] == 40
    assert run("perturb", survey, tmp_path / "?.csv*", "--encoding", "latin-1", *out).json["reports"] == 40
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert run("perturb", survey, "-", *out).json["reports"] == 10
    assert "--delimiter" in plain("perturb", survey, tmp_path / "b.csv", "--delimiter", "ab", *out)
    assert "--encoding" in plain("perturb", survey, tmp_path / "b.csv", "--encoding", "none", *out)
    assert "more than once" in run("perturb", survey, tmp_path / "a.csv.gz", tmp_path / "a.csv.gz", *out).err


def test_no_record_is_printed(plain, survey: Path, tmp_path: Path) -> None:
    """A CSV without a header printed its first record as "columns"."""
    path = tmp_path / "people.csv"
    path.write_text("31,never,HIV positive\n44,never,none\n")
    for call in (("perturb", survey, path, "-o", tmp_path / "r.parquet"), ("survey", path)):
        line = plain(*call)
        assert "HIV" not in line
        assert "never" not in line


@pytest.mark.parametrize(
    "content",
    [b"\xef\xbb\xbf", b"a" * 200_000 + b",b\n1,2\n", b'p1,"p2\n1,2\n', b"p1,p2,town\n", b""],
    ids=["only a mark", "a long field", "an open quote", "a header alone", "empty"],
)
def test_malformed_files_give_one_line(plain, survey: Path, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes(content)
    plain("perturb", survey, path, "-o", tmp_path / "r.parquet")
    plain("survey", path, "--range", "p1=0:1")
    assert not (tmp_path / "r.parquet").exists()


def test_a_dictionary_of_views_and_a_path_that_is_not_utf8(run, plain, survey: Path, tmp_path: Path) -> None:
    views = pa.DictionaryArray.from_arrays([0, 1], pa.array(["Bath", "Ely"], pa.string_view()))
    table = pa.table({"p1": views, "p2": [1.0, 1.0], "town": views})
    path = tmp_path / "v.arrow"
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    assert run("perturb", survey, path, "-o", tmp_path / "r.parquet", "--allow-unusable").code == 0
    odd = tmp_path / "r\udcff.parquet"
    with odd.open("wb") as file:
        pq.write_table(pa.table({"p1": [1.0], "p2": [1.0], "town": ["Bath"]}), file)
    assert run("perturb", survey, odd, "-o", tmp_path / "r.parquet").code == 0
    assert "is not UTF-8" in plain("perturb", survey, odd, "-o", tmp_path / "o\udcff.parquet")


# -- survey ----------------------------------------------------------------------------------------------------


def test_patterns_defaults_and_spaces(run, plain, people: Path, tmp_path: Path) -> None:
    out = tmp_path / "schema.toml"
    call = (
        "survey", people, "--range", "p*=0:1", "--range", "p2=0:2", "--categories", "town=Bath, Ely",
        "--categories", "late=true,false", "--default", "p1=0.25", "--default", "late=false", "--optional", "town",
    )  # fmt: skip
    made = run(*call, "-o", out)
    assert made.code == 0
    assert f"wrote the schema {out}" in made.err
    assert Schema.load(out) == Schema(
        [
            Numeric("p1", 0, 1, default=0.25),
            Numeric("p2", 0, 2),
            Categorical("town", ["Bath", "Ely"], optional=True),
            Categorical("late", ["true", "false"], default="false"),
        ]
    )
    survey = tmp_path / "s.json"
    assert run("survey", out, "--mechanism", "duchi", "-o", survey).code == 0
    assert Survey.load(survey).schema == Schema.load(out)
    assert "no column 'q*'" in plain("survey", people, "--range", "q*=0:1")
    assert "both match" in plain("survey", people, "--range", "p*=0:1", "--range", "*1=0:2")
    assert "--range is given twice for 'p1'" in plain(
        "survey", people, "--range", "p1=0:1", "--range", "p1=0:2"
    )
    assert "must be a number" in plain("survey", people, "--range", "p1=0:1", "--default", "p1=x")
    assert "--default needs a file of records" in plain("survey", out, "--default", "p1=0")
    assert "holds Booleans" in plain("survey", people, "--categories", "late=no,yes")


def test_dimensions_that_refuse_missing_values_are_listed(run, people: Path, tmp_path: Path) -> None:
    asked = ("--mechanism", "duchi", "--json")
    message = run("survey", people, "--range", "p1=0:1", "--categories", "town=Bath,Ely", *asked).err
    assert "Missing values of p1 and town are refused; to accept them, use --default or --optional" in message
    silent = run("survey", people, "--range", "p1=0:1", "--default", "p1=0.5", *asked).err
    assert "missing" not in silent
    schema = tmp_path / "s.toml"
    schema.write_text(
        '[[dimensions]]\nname = "a"\nlow = 0\nhigh = 1\ndefault = 0.5\n'
        '[[dimensions]]\nname = "b"\ncategories = ["x", "y"]\noptional = true\n'
        '[[dimensions]]\nname = "c"\ncategories = ["x", "y"]\n'
    )
    message = run("survey", schema, *asked).err
    assert "Missing values of c are refused" in message
    many = tmp_path / "many.json"
    many.write_text(json.dumps({"dimensions": [{"name": f"x{j}", "low": 0, "high": 1} for j in range(9)]}))
    assert "x2 and 6 more are refused" in run("survey", many, *asked).err


def test_records_of_other_forms_have_schemas(run, tmp_path: Path) -> None:
    lines, tabs = tmp_path / "r.jsonl", tmp_path / "r.tsv.gz"
    lines.write_text('{"p1": 0.5, "town": "Bath", "late": true, "odd": [1]}\n{"p1": null}\n')
    tabs.write_bytes(gzip.compress(b"p1\ttown\tlate\n0.5\tBath\tTrue\n", mtime=0))
    for path in (lines, tabs):
        call = ("survey", path, "--range", "p1=0:1", "--categories", "town=Bath,Ely", "--mechanism", "duchi")
        assert run(*call, "--json").json["dims"] == 2
    plainly = tmp_path / "schema"
    plainly.write_text(json.dumps({"dimensions": [{"name": "a", "low": 0, "high": 1}]}))
    assert run("survey", plainly, "--mechanism", "duchi", "--json").json["dims"] == 1
    whole = tmp_path / "r.json"
    whole.write_text(lines.read_text())
    assert run("survey", whole, "--range", "p1=0:1", "--mechanism", "duchi", "--json").json["dims"] == 1


def test_a_large_budget_gives_a_warning(run, people: Path) -> None:
    call = ("survey", people, "--range", "p1=0:1", "--mechanism", "duchi", "--json")
    assert "by a factor of 162,755" in run(*call, "--epsilon", 12).err
    assert "by a factor" not in run(*call, "--epsilon", 10).err


def test_plan_accepts_a_survey_as_schema(run, survey: Path) -> None:
    out = run("plan", "--schema", survey, "--users", 1000, "--epsilon", 1, "--mechanism", "duchi", "--json")
    assert out.code == 0, out.err
    assert out.json["reachable"]


def test_reports_are_called_reports(run, people: Path, survey: Path, tmp_path: Path) -> None:
    reports, tally = tmp_path / "r.parquet", tmp_path / "a.tally"
    run("perturb", survey, people, "-o", reports, "--allow-unusable")
    run("tally", survey, reports, "-o", tally)
    shown = run("estimate", tally).out
    assert "40 reports" in shown
    assert "users" not in shown
    assert "user" not in run("survey", survey).out


def test_a_file_without_ranges_names_the_options(plain, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age,town\n31,Bath\n")
    message = plain("survey", tmp_path / "people.csv")
    assert "--range column=low:high" in message
    assert "--categories" in message
    assert "the other columns are then left out" in message
    message = plain("survey", tmp_path / "people.csv", "--range", "height=0:3")
    assert "has no column" in message
    assert "--categories" not in message
