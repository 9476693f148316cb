"""Bad input on every command: one plain line, exit code 2, no partial output file."""

import json
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hdr4me.survey.canonical import fingerprint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for outputs, which must be empty when the test ends."""
    out = tmp_path / "out"
    out.mkdir()
    yield out
    assert list(out.iterdir()) == []


@pytest.fixture
def cut(collected, tmp_path: Path):
    """A copy of a file of the collection, cut short in the middle."""

    def make(path: Path) -> Path:
        short = tmp_path / f"cut{path.suffix}"
        short.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        return short

    return make


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    path = tmp_path / "empty.parquet"
    path.touch()
    return path


@pytest.fixture
def foreign(run, collected, tmp_path: Path) -> Path:
    """A survey with the same questions and another budget."""
    path = tmp_path / "foreign.json"
    assert run("survey", collected.schema, "--epsilon", 1, "--mechanism", "duchi", "-o", path).code == 0
    return path


def test_missing_files(plain, collected, folder: Path) -> None:
    gone = folder / "gone"
    for arguments in [
        ("survey", gone),
        ("perturb", gone, collected.records, "-o", folder / "r.parquet"),
        ("perturb", collected.survey, gone, "-o", folder / "r.parquet"),
        ("tally", collected.survey, gone, "-o", folder / "t"),
        ("merge", collected.tally, gone, "-o", folder / "t"),
        ("estimate", gone),
        ("audit", gone),
    ]:
        assert str(gone) in plain(*arguments)


def test_wrong_kinds_of_file(plain, collected, folder: Path) -> None:
    assert "not a survey" in plain("perturb", collected.schema, collected.records, "-o", folder / "r.parquet")
    assert "no column" in plain("perturb", collected.survey, collected.reports, "-o", folder / "r.parquet")
    plain("tally", collected.survey, collected.records, "-o", folder / "t")
    assert "not a tally" in plain("merge", collected.survey, "-o", folder / "t")
    assert "not a tally" in plain("estimate", collected.survey)
    plain("audit", collected.reports)
    plain("survey", collected.tally)


def test_truncated_files(plain, cut, collected, folder: Path) -> None:
    plain("audit", cut(collected.survey))
    plain("perturb", collected.survey, cut(collected.records), "-o", folder / "r.parquet")
    plain("tally", collected.survey, cut(collected.reports), "-o", folder / "t")
    plain("estimate", cut(collected.tally))
    plain("merge", collected.tally, cut(collected.tally), "-o", folder / "t")


def test_empty_files(plain, empty: Path, collected, folder: Path) -> None:
    assert "empty" in plain("perturb", collected.survey, empty, "-o", folder / "r.parquet")
    assert "empty" in plain("tally", collected.survey, empty, "-o", folder / "t")
    plain("estimate", empty)
    plain("audit", empty)
    plain("survey", empty)


def test_foreign_fingerprints_are_both_named(
    run, plain, foreign: Path, collected, folder: Path, tmp_path: Path
) -> None:
    both = (collected.survey, foreign)
    ours, theirs = (run("survey", path, "--json").json["fingerprint"][:12] for path in both)
    line = plain("tally", foreign, collected.reports, "-o", folder / "t")
    assert ours[:12] in line
    assert theirs[:12] in line
    reports, tally = tmp_path / "reports.parquet", tmp_path / "foreign.tally"
    run("perturb", foreign, collected.records, "-o", reports)
    run("tally", foreign, reports, "-o", tally)
    line = plain("merge", collected.tally, tally, "-o", folder / "t")
    assert ours[:12] in line
    assert theirs[:12] in line


def test_options_out_of_range_are_named(plain, collected, folder: Path) -> None:
    for option, value in [
        ("--epsilon", "nan"), ("--epsilon", "-1"), ("--epsilon", "inf"), ("--sampled", "0"), ("--sampled", "4"),
        ("--mechanism", "gauss"), ("--categorical", "none"),
    ]:  # fmt: skip
        line = plain("survey", collected.schema, option, value, "-o", folder / "s.json")
        assert value.lstrip("-") in line
    assert "--confidence" in plain("estimate", collected.tally, "--confidence", "1.5")
    assert "--draws 3" in plain("audit", collected.survey, "--draws", 3)
    assert "--engine 'dask'" in plain(
        "tally", collected.survey, collected.reports, "-o", folder / "t", "--engine", "dask"
    )
    assert "suffix" in plain("perturb", collected.survey, collected.records, "-o", folder / "r.xls")
    assert "--users 3" in plain("demo", "--users", 3, "-o", folder / "demo")
    plain("survey", collected.schema, "--epsilon", "one", "-o", folder / "s.json")
    plain("no-such-command")


def test_a_survey_that_leaks_is_refused(plain, collected, folder: Path, tmp_path: Path) -> None:
    """Tables are proven again whenever a survey is read: a document that claims less than it leaks is no use."""
    document = json.loads(collected.survey.read_text())
    document["epsilon"] = 1.0
    for channel in document["channels"]:
        channel["epsilon"] = 1.0
    document["fingerprint"] = fingerprint(document)
    path = tmp_path / "leak.json"
    path.write_text(json.dumps(document))
    assert "leaks" in plain("audit", path)
    assert "leaks" in plain("perturb", path, collected.records, "-o", folder / "r.parquet")


def test_unusual_values_are_accepted(run, collected, tmp_path: Path) -> None:
    """NaN, nulls, infinities, out-of-range and unknown values become defaults or bounds: all are reported."""
    records = pa.table(
        {
            "age": pa.array([float("nan"), None, float("inf"), -1e300, 31.0]),
            "height": pa.array([None] * 5, pa.float64()),
            "smoker": pa.array(["no", None, "", "perhaps", "yes"]),
        }
    )
    path, out, tally = tmp_path / "odd.parquet", tmp_path / "odd.jsonl", tmp_path / "odd.tally"
    pq.write_table(records, path)
    refused = run("perturb", collected.survey, path, "-o", out, "--json")
    assert refused.code == 2
    assert "column 'height' has no usable value among 5" in refused.err
    assert not out.exists()
    allowed = run("perturb", collected.survey, path, "-o", out, "--json", "--allow-unusable")
    assert allowed.json["reports"] == 5
    assert "column 'age': 2 of 5 values (40 %) are missing and count as 60" in allowed.err
    assert run("tally", collected.survey, out, "-o", tally, "--json").json == {
        "survey": run("survey", collected.survey, "--json").json["fingerprint"],
        "reports": 5,
        "rejected": {},
    }
    statuses = {row["status"] for row in run("estimate", tally, "--json").json["rows"]}
    assert statuses <= {"ok", "one report", "no reports"}


@pytest.mark.parametrize("command", ["perturb", "tally", "merge", "survey", "estimate"])
def test_a_full_disk_loses_nothing(collected, tmp_path: Path, command: str) -> None:
    """A limit on the size of files stands in for a full disk: the write fails in the same place."""
    out = tmp_path / "out"
    out.mkdir()
    target = out / {"perturb": "x.parquet", "estimate": "x.csv"}.get(command, "x.json")
    target.write_text("what was there before")
    arguments = {
        "perturb": [collected.survey, collected.records, "-o", target],
        "tally": [collected.survey, collected.reports, "-o", target],
        "merge": [collected.tally, collected.tally, "-o", target],
        "survey": [collected.schema, "--mechanism", "duchi", "-o", target],
        "estimate": [collected.tally, "--output", target],
    }[command]

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (256, 256))

    done = subprocess.run(
        [sys.executable, "-m", "hdr4me", command, *map(str, arguments)],
        capture_output=True, text=True, preexec_fn=limit, check=False,
        env={"PATH": "", "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert target.read_text() == "what was there before"
    assert [path.name for path in out.iterdir()] == [target.name]


def test_an_output_is_never_an_input(plain, collected, tmp_path: Path) -> None:
    """Nothing that was collected can be overwritten by what is made of it."""
    folder = tmp_path / "copy"
    shutil.copytree(collected.folder, folder)
    survey, records, reports, schema = (
        folder / path.name
        for path in (collected.survey, collected.records, collected.reports, collected.schema)
    )
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for arguments in [
        ("perturb", survey, records, "-o", records),
        ("tally", survey, reports, "-o", reports),
        ("tally", survey, reports, "-o", survey),
        ("tally", survey, reports, "-o", folder / "x", "--quarantine", folder / "x"),
        ("survey", schema, "-o", schema),
    ]:
        assert "it is also" in plain(*arguments)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_missing_folder_is_named_before_any_work(plain, collected, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    for arguments in [
        ("survey", collected.schema, "-o", gone / "s.json"),
        ("perturb", collected.survey, collected.records, "-o", gone / "r.parquet"),
        ("tally", collected.survey, collected.reports, "-o", gone / "t"),
        ("merge", collected.tally, "-o", gone / "t"),
        ("estimate", collected.tally, "--output", gone / "a.csv"),
    ]:
        assert plain(*arguments).endswith(f"there is no folder {gone}")


def test_files_that_are_no_reports_are_refused(plain, collected, folder: Path, tmp_path: Path) -> None:
    """Nothing of them is copied into a quarantine: they may be the true records."""
    for name in ("people.csv", "people.jsonl"):
        path = tmp_path / name
        path.write_text("age,height,smoker\n31,170,no\n")
        bad = folder / "bad.jsonl"
        assert "not a file of reports" in plain(
            "tally", collected.survey, path, "-o", folder / "t", "--quarantine", bad
        )
    assert "not a file of reports" in plain("estimate", collected.tally, "--survey", collected.survey)


def test_options_that_do_not_apply_are_refused(plain, run, collected, folder: Path, tmp_path: Path) -> None:
    assert "is only shown" in plain("survey", collected.survey, "--epsilon", 5)
    assert "is only shown" in plain("survey", collected.survey, "-o", folder / "s.json")
    assert "both write to standard output" in plain("estimate", collected.tally, "--output", "-", "--json")
    assert "column=a,b,c" in plain("survey", collected.records, "--categories", "smoker=")
    assert "--draws 1000000000000" in plain("audit", collected.survey, "--draws", 10**12)
    assert "--epsilon nan" in plain("demo", "--users", 1000, "--epsilon", "nan", "-o", folder / "demo")
    assert "more than once" in run("merge", collected.tally, collected.tally, "-o", tmp_path / "two").err


def test_simultaneous_intervals_exclude_recalibration(plain, run, collected) -> None:
    text = plain("estimate", collected.tally, "--simultaneous", "--recalibrate", "auto")
    assert "--simultaneous and --recalibrate cannot be combined" in text
    assert '"simultaneous": true' in run("estimate", collected.tally, "--simultaneous", "--json").out


def test_messages_quote_options(plain, collected, tmp_path: Path) -> None:
    make = ("survey", collected.schema, "-o", tmp_path / "s.json")
    assert "--sampled 9 " in plain(*make, "--sampled", 9)
    assert "--epsilon 0" in plain(*make, "--epsilon", 0)
    assert "--mechanism 'foo'" in plain(*make, "--mechanism", "foo")
    assert "--categorical 'foo'" in plain(*make, "--categorical", "foo")
    assert "--confidence 95" in plain("estimate", collected.tally, "--confidence", 95)
    assert "--recalibrate 'foo'" in plain("estimate", collected.tally, "--recalibrate", "foo")
    assert "change the schema" in plain(*make, "--range", "age=0:1")


def test_another_survey_is_replaced_only_with_force(plain, run, collected, tmp_path: Path) -> None:
    """Without it the reports collected under it are lost."""
    path = tmp_path / "s.json"
    make = ("survey", collected.schema, "-o", path)
    assert run(*make).code == 0
    before = path.read_bytes()
    assert run(*make).code == 0  # the same survey again
    assert "contains another survey" in plain(*make, "--epsilon", 3)
    assert path.read_bytes() == before
    assert run(*make, "--epsilon", 3, "--force").code == 0
    assert path.read_bytes() != before


def test_replaced_reports_give_a_warning(run, collected, tmp_path: Path) -> None:
    call = ("perturb", collected.survey, collected.records, "-o", tmp_path / "r.parquet")
    assert "warning" not in run(*call).err
    assert "this replaced earlier reports" in run(*call).err


def test_reports_instead_of_a_tally_give_an_error(plain, collected) -> None:
    assert "give their --survey" in plain("estimate", collected.reports)


def test_no_message_names_a_python_parameter(plain, collected, tmp_path: Path) -> None:
    """Each message quotes options as they are typed, and says what to do."""
    folder, survey = tmp_path / "x", collected.survey
    assert "Create the survey with --sampled 2 or more, ask both as a pair (--pair-question)" in plain(
        "tally", survey, collected.reports, "-o", folder, "--count-pair", "age,height"
    )
    assert "omit --dims" in plain(
        "plan", "--schema", collected.schema, "--dims", 2, "--users", 9, "--epsilon", 1
    )
    two = ("survey", collected.schema, "--memoized-epsilon", 4, "--mechanism", "duchi")
    assert "omit --mechanism" in plain(*two)
    audit = ("audit", survey, "--tally", collected.tally, "--audits-before", -1)
    assert "--audits-before -1 is not allowed: a non-negative integer" in plain(*audit)


def test_a_misspelt_database_of_tokens_is_not_created(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hdr4me", "token", "list", "none.db"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 2
    assert "none.db does not exist" in result.stderr
    assert not (tmp_path / "none.db").exists()
