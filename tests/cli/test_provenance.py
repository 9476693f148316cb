"""Provenance of results; pages and figures of commands; progress of long steps."""

import csv
import io
import json
import sys
import time
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from hdr4me import __version__
from hdr4me.cli.output import working
from hdr4me.survey import Survey

DAY = "2026-01-31"
FIELDS = ["survey", "epsilon", "confidence", "version", "date"]


@pytest.fixture(autouse=True)
def a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1769817600")


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(
        "age,smoker\n" + "".join(f"{20 + i % 50},{'no' if i % 3 else 'yes'}\n" for i in range(300))
    )
    return path


def provenance_of(document: dict[str, object]) -> list[object]:
    return [document[field] for field in FIELDS]


def test_estimate_has_provenance_in_json_csv_and_parquet(run, collected, tmp_path: Path) -> None:
    survey = Survey.load(collected.survey)
    wanted = [survey.fingerprint, survey.epsilon, 0.9, __version__, DAY]
    files = tmp_path / "a.csv", tmp_path / "a.parquet"
    options = ("--confidence", 0.9, "--output", files[0], "--output", files[1], "--json")
    found = run("estimate", collected.tally, *options).json
    assert provenance_of(found) == wanted
    rows = list(csv.DictReader(io.StringIO(files[0].read_text())))
    assert all(provenance_of(row) == [str(value) for value in wanted] for row in rows)
    table = pq.read_table(files[1])
    assert {key: table.schema.metadata[f"hdr4me.{key}".encode()].decode() for key in FIELDS} == dict(
        zip(FIELDS, map(str, wanted), strict=True)
    )
    assert table.column("estimate").to_pylist() == [row["estimate"] for row in found["rows"]]
    assert "statistic" in table.column_names


def test_pandas_reads_both_without_options(run, collected, tmp_path: Path) -> None:
    run("estimate", collected.tally, "--output", tmp_path / "a.csv", "--output", tmp_path / "a.parquet")
    first, second = pd.read_csv(tmp_path / "a.csv"), pd.read_parquet(tmp_path / "a.parquet")
    assert list(first["dimension"]) == list(second["dimension"])
    assert first["estimate"].to_numpy() == pytest.approx(second["estimate"].to_numpy())
    assert list(first.columns[-5:]) == FIELDS


def test_a_parquet_file_replaces_the_printed_table(run, collected, tmp_path: Path) -> None:
    assert run("estimate", collected.tally, "--output", tmp_path / "a.parquet").out == ""


def test_audit_of_a_survey_and_of_a_tally(run, collected) -> None:
    survey = Survey.load(collected.survey)
    found = run("audit", collected.survey, "--draws", 1000, "--json").json
    assert provenance_of(found) == [survey.fingerprint, survey.epsilon, 1 - 1e-6, __version__, DAY]
    found = run("audit", collected.survey, "--tally", collected.tally, "--json").json
    assert provenance_of(found) == [survey.fingerprint, survey.epsilon, 1 - 0.001, __version__, DAY]


def test_plan_names_the_survey_that_it_would_write(run, collected, tmp_path: Path) -> None:
    base = ("plan", "--schema", collected.schema, "--users", 1000, "--epsilon", 1, "--mechanism", "duchi")
    found = run(*base, "--json", "-o", tmp_path / "s.json").json
    assert provenance_of(found) == [Survey.load(tmp_path / "s.json").fingerprint, 1.0, 0.95, __version__, DAY]
    assert run(*base, "--json").json["survey"] == found["survey"]
    assert (
        run("plan", "--dims", 3, "--users", 1000, "--epsilon", 1, "--mechanism", "duchi", "--json").json[
            "survey"
        ]
        is None
    )


def test_compare_has_provenance(run, people: Path) -> None:
    found = run(
        "compare",
        people,
        "--epsilon",
        "1,2",
        "--repeats",
        1,
        "--mechanism",
        "duchi",
        "--json",
    ).json
    assert provenance_of(found) == [None, [1.0, 2.0], 0.95, __version__, DAY]
    assert found["data"] == "people.csv"


STARTS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.mark.parametrize(
    ("command", "kind"),
    [("estimate", ".svg"), ("audit", ".png"), ("watch", ".svg"), ("plan", ".pdf"), ("compare", ".png")],
)
def test_commands_write_pages_and_figures(
    run, collected, people: Path, tmp_path: Path, command: str, kind: str
) -> None:
    fingerprint = Survey.load(collected.survey).fingerprint
    plan = ("plan", "--dims", 3, "--users", 1000, "--epsilon", 1, "--mechanism", "duchi")
    arguments, carried = {
        "estimate": (("estimate", collected.tally), fingerprint),
        "audit": (("audit", collected.survey, "--draws", 1000), fingerprint),
        "watch": (("audit", collected.survey, "--tally", collected.tally), fingerprint),
        "plan": (plan, "ε = 1"),
        "compare": (
            ("compare", people, "--repeats", 1, "--mechanism", "duchi"),
            "ε = 0.5, 1, 2, 4",
        ),
    }[command]
    page, picture = tmp_path / "page.html", tmp_path / f"picture{kind}"
    outcome = run(*arguments, "--output", page, "--output", picture)
    assert outcome.code == 0, outcome.err
    assert picture.read_bytes().startswith(STARTS[kind])
    line = f"hdr4me {__version__}; {DAY}"
    assert kind == ".pdf" or line.encode() in picture.read_bytes()  # a PDF is compressed
    text = page.read_text()
    assert text.count("</body>") == 1
    assert text.rstrip().endswith("</footer></body></html>")
    assert carried in text
    assert line in text
    assert "src=" not in text
    assert 'href="http' not in text


@pytest.mark.parametrize("command", ["estimate", "audit", "plan", "compare"])
def test_a_figure_of_unknown_format_is_refused(plain, collected, people: Path, command: str) -> None:
    arguments = {
        "estimate": (collected.tally,),
        "audit": (collected.survey,),
        "plan": ("--dims", 3, "--users", 1000, "--epsilon", 1),
        "compare": (people,),
    }
    assert "--output x.gif is not allowed" in plain(command, *arguments[command], "--output", "x.gif")


def test_an_audit_overwrites_no_input(plain, collected) -> None:
    assert "must end in .html" in plain("audit", collected.survey, "--output", collected.survey)


def test_long_commands_show_progress_on_a_terminal(
    monkeypatch, run, collected, people: Path, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("hdr4me.cli.output.PATIENCE", 0.0)
    out = tmp_path / "out"
    for words, arguments in (
        ("perturbing", ("perturb", collected.survey, collected.records, "-o", tmp_path / "r.parquet")),
        ("tallying", ("tally", collected.survey, collected.reports, "-o", tmp_path / "t")),
        ("attacking", ("audit", collected.survey, "--draws", 1000)),
        ("simulated", ("compare", people, "--repeats", 1, "--mechanism", "duchi")),
        ("reproduce", ("reproduce", "case-study", "-o", out, "--workers", 1)),
        ("perturbing", ("demo", "--users", 1000, "-o", out)),
    ):
        outcome = run(*arguments)
        assert outcome.code == 0, outcome.err
        assert words in outcome.err


def test_work_without_steps_shows_a_bar_after_a_while(monkeypatch, capsys) -> None:
    with working("planning"):
        pass
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with working("planning"):
        pass
    assert "planning" not in capsys.readouterr().err
    monkeypatch.setattr("hdr4me.cli.output.PATIENCE", 0.0)
    shown = ""
    with working("planning"):
        for _ in range(200):  # another thread shows it: wait for that, on a busy machine too
            time.sleep(0.05)
            shown += capsys.readouterr().err
            if "planning" in shown:
                break
    assert "planning" in shown


def test_golden_tallies_give_estimates(run) -> None:
    golden = Path(__file__).parents[1] / "golden"
    for path in sorted(golden.glob("*.tally")):
        found = run("estimate", path, "--json").json
        assert found["survey"] == Survey.load(path.with_suffix(".survey.json")).fingerprint
        assert json.dumps(found["rows"])
