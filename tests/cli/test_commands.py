"""Each command with good input, as a user would call it."""

import csv
import io
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hdr4me import __version__
from hdr4me.cli import main
from hdr4me.cli.app import COMMANDS
from hdr4me.cli.output import Watch, print_table, progress


def test_a_complete_collection_gives_correct_estimates(run, collected) -> None:
    """False-alarm rate about 1e-6 a row: five standard errors. The reports have no seed."""
    rows = run("estimate", collected.tally, "--json").json["rows"]
    truth = {("age", None): 40.0, ("height", None): 170.0, ("smoker", "no"): 0.7, ("smoker", "yes"): 0.3}
    assert {(row["dimension"], row["category"]) for row in rows} == set(truth)
    for row in rows:
        assert row["status"] == "ok"
        assert (
            abs(row["estimate"] - truth[row["dimension"], row["category"]]) < 5 * row["standard_error"] + 0.5
        )


def test_survey_shows_what_it_wrote(run, collected) -> None:
    shown = run("survey", collected.survey, "--json").json
    assert shown["dims"] == 3
    assert shown["epsilon"] == 2.0
    assert {channel["kind"] for channel in shown["channels"]} == {"table", "heavy_set"}
    assert "duchi" in run("survey", collected.survey).out


def test_a_survey_from_a_data_file_needs_the_ranges_given(run, plain, collected, tmp_path: Path) -> None:
    assert "without a range: 'age', 'height'" in plain("survey", collected.records)
    some = run("survey", collected.records, "--range", "age=0:120", "--mechanism", "duchi", "--json").json
    assert some["dims"] == 1  # only what a range or categories are given for is asked
    out = tmp_path / "survey.json"
    outcome = run(
        "survey", collected.records, "--range", "age=0:120", "--range", "height=100:220",
        "--categories", "smoker=no,yes", "--mechanism", "duchi", "--output", out, "--json",
    )  # fmt: skip
    assert outcome.code == 0
    assert outcome.json["dims"] == 3
    assert out.exists()


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "jsonl"])
def test_every_report_format_works(run, collected, tmp_path: Path, suffix: str) -> None:
    reports, tally = tmp_path / f"reports.{suffix}", tmp_path / "a.tally"
    assert (
        run("perturb", collected.survey, collected.records, "-o", reports, "--json").json["reports"] == 20_000
    )
    assert run("tally", collected.survey, reports, "-o", tally, "--json").json["reports"] == 20_000
    assert run("estimate", reports, "--survey", collected.survey, "--json").json["reports"] == 20_000


def test_merge_adds(run, collected, tmp_path: Path) -> None:
    out = tmp_path / "two.tally"
    assert run("merge", collected.tally, collected.tally, "-o", out, "--json").json["reports"] == 40_000
    assert run("estimate", out, "--json").json["reports"] == 40_000
    assert run("estimate", collected.tally, collected.tally, "--json").json["reports"] == 40_000


def test_estimate_writes_csv(run, collected, tmp_path: Path) -> None:
    path = tmp_path / "answer.csv"
    assert run("estimate", collected.tally, "--output", path).code == 0
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    assert [row["dimension"] for row in rows] == ["age", "height", "smoker", "smoker"]
    assert list(csv.DictReader(io.StringIO(run("estimate", collected.tally, "--output", "-").out))) == rows


def test_simultaneous_intervals_are_wider(run, collected) -> None:
    single = run("estimate", collected.tally, "--json").json["rows"]
    joint = run("estimate", collected.tally, "--simultaneous", "--json").json["rows"]
    for one, all_at_once in zip(single, joint, strict=True):
        assert all_at_once["upper"] > one["upper"]


def test_invalid_reports_are_rejected_and_kept(run, collected, tmp_path: Path) -> None:
    good, mixed, bad = tmp_path / "good.jsonl", tmp_path / "mixed.jsonl", tmp_path / "bad.jsonl"
    run("perturb", collected.survey, collected.records, "-o", good)
    lines = good.read_text().splitlines()[:100]
    fingerprint = run("survey", collected.survey, "--json").json["fingerprint"]
    lines[3] = "{not json"
    lines[7] = lines[7].replace(fingerprint, "0" * 64)
    lines[9] = f'{{"format":"hdr4me-report","version":1,"survey":"{fingerprint}","answers":[[0,200]]}}'
    mixed.write_text("\n".join(lines) + "\n")
    out = tmp_path / "a.tally"
    summary = run("tally", collected.survey, mixed, "-o", out, "--quarantine", bad, "--json").json
    assert summary["reports"] == 97
    assert sum(summary["rejected"].values()) == 3
    assert len(bad.read_text().splitlines()) == 3


def test_audit_proves_and_attacks(run, collected) -> None:
    found = run("audit", collected.survey, "--draws", 200_000, "--json")
    assert found.code == 0
    assert found.json["passed"]
    for table in found.json["tables"]:
        numerator, denominator = map(int, table["likelihood_ratio"].split("/"))
        assert numerator / denominator <= 7.3890561  # e²
        assert 1.5 < table["epsilon_attacked"] <= 2.0
    assert "passes" in run("audit", collected.survey, "--draws", 2000).out


def test_help_and_version(run) -> None:
    assert run("--version").out.strip() == __version__
    top = run("--help").out
    assert run().out == top
    for command in COMMANDS:
        assert command in top
        assert "Example: hdr4me" in run(command, "--help").out


def test_json_leaves_nothing_else_on_standard_output(collected, tmp_path: Path) -> None:
    """As a process of its own: progress and messages must go to standard error."""
    command = [sys.executable, "-m", "hdr4me", "tally", collected.survey, collected.reports]
    done = subprocess.run(
        [*map(str, command), "-o", str(tmp_path / "t"), "--json"], capture_output=True, text=True, check=True
    )
    assert done.stdout.lstrip().startswith("{")
    assert done.stdout.rstrip().endswith("}")
    assert "wrote" in done.stderr


def test_recalibration_says_what_it_did(run, collected) -> None:
    shown = run("estimate", collected.tally, "--recalibrate", "auto", "--json").json
    assert len(shown["advice"]) == 2  # the means, and the one categorical dimension
    assert run("estimate", collected.tally, "--json", "--recalibrate").json == shown
    frequencies = [row["estimate"] for row in shown["rows"] if row["category"]]
    assert sum(frequencies) == pytest.approx(1.0)
    assert min(frequencies) >= 0
    outcome = run("estimate", collected.tally, "--recalibrate", "l1")
    assert outcome.code == 0
    assert "HDR4ME L1" in outcome.err
    assert "smoker" in run("estimate", collected.tally, "--recalibrate", "l1", "-v").err


def test_the_demonstration_ends_with_its_table(run, tmp_path: Path) -> None:
    outcome = run("demo", "--users", 5000, "-o", tmp_path / "demo")
    assert outcome.code == 0
    assert "heart_rate_08" in outcome.out
    assert "contain the true value" in outcome.err
    rows = run("demo", "--users", 5000, "-o", tmp_path / "demo", "--json").json["rows"]
    assert len(rows) == 91


def test_a_folder_of_reports_is_tallied(run, plain, collected, tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    assert "contains no files" in plain("tally", collected.survey, folder, "-o", tmp_path / "t")
    for name in ("a.parquet", "b.arrow"):
        run("perturb", collected.survey, collected.records, "-o", folder / name)
    assert run("tally", collected.survey, folder, "-o", tmp_path / "t", "--json").json["reports"] == 40_000


@pytest.mark.spark
def test_spark_gives_the_same_tally(run, plain, collected, spark_session, tmp_path: Path) -> None:
    """The session that is open is used: a command of its own would open and close one."""
    here, there = tmp_path / "here.tally", tmp_path / "there.tally"
    arguments = (collected.survey, collected.reports, "--engine", "spark", "-o", there, "--json")
    run("tally", collected.survey, collected.reports, "-o", here)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(spark_session), "stop", lambda self: None)
        assert run("tally", *arguments).code == 0
        assert here.read_bytes() == there.read_bytes()
        out = tmp_path / "reports"
        records = (collected.survey, collected.records, "--engine", "spark", "-o", out, "--json")
        assert run("perturb", *records).json["reports"] == 20_000
    assert "--master" in plain(
        "tally", collected.survey, collected.reports, "-o", here, "--master", "local[2]"
    )


def test_progress_is_shown_on_a_terminal_only(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    with progress("working", 10) as advance:
        advance(10)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress("working", 10) as advance:
        advance(10)
    assert "10/10" in capsys.readouterr().err


def test_long_steps_are_shown_on_a_terminal_only(capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    from rich.progress import Progress

    started, start = threading.Event(), Progress.start
    monkeypatch.setattr(Progress, "start", lambda bar: (start(bar), started.set()))
    watch = Watch()
    with watch("waiting"):
        watch.update(1, 2)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with watch("too short"):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("hdr4me.cli.output.PATIENCE", 0.001)
    with watch("intervals"):
        assert started.wait(30)
        watch.update(1, 2)
    assert "intervals" in capsys.readouterr().err


def test_recalibrate_without_a_value_before_a_file(run, collected) -> None:
    assert run("estimate", "--recalibrate", collected.tally) == run(
        "estimate", "--recalibrate", "auto", collected.tally
    )


def test_a_narrow_terminal_cuts_no_number(monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    for width in (20, 40, 80):
        monkeypatch.setenv("COLUMNS", str(width))
        print_table(
            "T", ["name of it", "a number", "other"], [["x" * 30, 0.123456, 1234567], ["y", -1e-9, None]]
        )
        out = re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out)
        assert "0.123" in out
        assert "1,234,567" in out
        assert "-1e-09" in out
        assert max(len(line.rstrip()) for line in out.splitlines()) <= max(width, 36)


def test_an_interruption_gives_a_message(monkeypatch, run, collected) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hdr4me.survey.Survey.load", interrupted)
    code, out, err = run("audit", collected.survey)
    assert (code, out) == (130, "")
    assert err == "hdr4me: interrupted; no partial file was written\n"


def test_a_closed_pipe_is_not_an_error(collected) -> None:
    command = (
        f"{sys.executable} -m hdr4me estimate {collected.tally} --output - | true; exit ${{PIPESTATUS[0]}}"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_shell_completes_commands_and_options(monkeypatch, capsys) -> None:
    monkeypatch.setenv("_HDR4ME_COMPLETE", "complete_bash")
    for words, position, found in (("hdr4me es", 1, "estimate"), ("hdr4me estimate --q", 2, "--quantiles")):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(position))
        with pytest.raises(SystemExit):
            main([])
        assert capsys.readouterr().out.split() == [found]


def test_default_output_has_at_most_two_notes_and_unbroken_words(run, collected) -> None:
    estimate = run("estimate", collected.tally, "--recalibrate", "auto", "--quantiles", "0.5", "--variance")
    plan = run("plan", "--schema", collected.schema, "--users", 5000, "--epsilon", 1)
    survey, audit = run("survey", collected.survey), run("audit", collected.survey, "--draws", 2000)
    for outcome in (estimate, plan, survey, audit):
        assert outcome.code == 0, outcome.err
        assert len(outcome.err.splitlines()) <= 2
    for word in ("estimate", "standard", "error", "smoker"):
        assert word in estimate.out
    assert "ξ" not in plan.out + plan.err
    assert " m " not in plan.out
    assert len(run("plan", "--dims", 5, "--users", 5000, "--epsilon", 1, "-v").err.splitlines()) > 1
