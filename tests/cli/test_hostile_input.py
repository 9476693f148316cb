"""Hostile input: one line instead of a traceback, and no control characters on the terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hdr4me.cli import main
from hdr4me.errors import printable
from hdr4me.io import Report
from hdr4me.io.report import Quarantine
from hdr4me.survey import Numeric, Schema, Survey
from hdr4me.survey.canonical import MAX_DEPTH, parse
from hdr4me.tally import Tally

ESCAPES = "\x1b]0;owned\x07\x9b2J\u202e"


# -- tracebacks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("plan --users 10000000000000000000000 --dims 5 --epsilon 1", "--users 10000000000000000000000"),
        (f"plan --users {10**400} --dims 5 --epsilon 1", "--users 1000"),
        ("analyze --mechanism laplace --epsilon 1e-300 --users 1000", "--epsilon 1e-300"),
        ("analyze --mechanism piecewise --epsilon 1e-300 --users 1000", "--epsilon 1e-300"),
        ("analyze --mechanism piecewise --epsilon 1e300 --users 1000", "--epsilon 1e+300"),
        (f"analyze --mechanism piecewise --epsilon 1 --users {10**400}", "--users 1000"),
    ],
)
def test_extreme_numbers(plain: Any, command: str, message: str) -> None:
    assert message in plain(*command.split())


def test_a_very_large_budget(run: Any) -> None:
    setting = ("--mechanism", "piecewise", "--epsilon", 5000, "--users", 10**12)
    outcome = run("analyze", *setting, "--json")
    assert outcome.code == 0
    assert outcome.json["norm"]["quantile_95"] == 0


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 200, 900, *range(960, 1000, 3), 100_000])
def test_documents_nested_deeply(plain: Any, tmp_path: Path, collected: Any, depth: int) -> None:
    """Near the interpreter's own limit a document could be read but not shown or hashed."""
    document = json.loads(collected.survey.read_text())
    path = tmp_path / "deep.json"
    for field in ("name", "dimensions", "epsilon"):
        text = json.dumps({**document, field: "@"}).replace('"@"', "[" * depth + "]" * depth)
        path.write_text(text)
        assert "nested deeper" in plain("audit", path)
    path.write_text('{"dimensions":' + "[" * depth + "]" * depth + "}")
    assert "nested deeper" in plain("plan", "--schema", path, "--users", 10, "--epsilon", 1)


def test_parse_accepts_the_largest_depth() -> None:
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    parse(text)
    with pytest.raises(ValueError, match="nested deeper"):
        parse("[" + text + "]")
    with pytest.raises(ValueError, match="twice"):
        parse('{"a": 1, "a": 2}')


def test_names_that_are_not_utf8(collected: Any, tmp_path: Path) -> None:
    """In a process of its own: standard error must take the name."""
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/r\xff.parquet")
    Path(odd).write_bytes(collected.reports.read_bytes())
    command = [sys.executable, "-m", "hdr4me", "tally", collected.survey, odd, "-o", tmp_path / "t"]
    done = subprocess.run([os.fsencode(part) for part in command], capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"UTF-8 file name" in done.stderr
    assert not (tmp_path / "t").exists()


def test_unexpected_errors(monkeypatch: pytest.MonkeyPatch, collected: Any, capsys: Any) -> None:
    def fail(*_: object) -> None:
        raise KeyError("oh\x1b[2J")

    monkeypatch.delenv("HDR4ME_TRACEBACK", raising=False)
    monkeypatch.setattr("hdr4me.tally.Tally.load", fail)
    assert main(["estimate", str(collected.tally)]) == 3
    shown = capsys.readouterr().err
    assert shown.startswith("hdr4me: unexpected KeyError")
    assert shown.strip().isprintable()
    monkeypatch.setenv("HDR4ME_TRACEBACK", "1")
    with pytest.raises(KeyError):
        main(["estimate", str(collected.tally)])


def test_a_long_message_is_cut(plain: Any, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(json.dumps({"format": "hdr4me-survey", "version": "9" * 10**6}))
    assert len(plain("audit", tmp_path / "s.json")) < 2100


# -- terminals ---------------------------------------------------------------------------------------------------


def test_printable_leaves_every_letter() -> None:
    text = "größe, 年齢, ε = 1 ± 0.5, 👍"
    assert printable(text) == text
    assert printable(ESCAPES) == r"\x1b]0;owned\x07\x9b2J\u202e"
    assert printable("\udcff\n\u2028") == r"\udcff\n\u2028"


def test_uploaded_lines_are_escaped(run: Any, plain: Any, collected: Any, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(ESCAPES + "\n")
    assert run("tally", collected.survey, path, "-o", tmp_path / "t").err.replace("\n", " ").isprintable()
    foreign = Report(ESCAPES, ((0, 1),)).to_json()
    path.write_text(foreign + "\n")
    assert plain("tally", collected.survey, path, "-o", tmp_path / "t").isprintable()


@pytest.fixture
def odd_tally(tmp_path: Path) -> Path:
    """A tally whose dimensions are named to steer a terminal, and to be markup."""
    names = [f"a{ESCAPES}", "[red]b[/red]", "[/]c", "[link=http://x]d"]
    survey = Survey(Schema(Numeric(name, 0, 1) for name in names), mechanism="duchi", name=ESCAPES)
    block = np.zeros((40, survey.report_size), np.uint8)
    block[:, 0] = np.arange(40) % 4  # sampled is 1
    Tally(survey).add_block(block).save(tmp_path / "odd.tally")
    return tmp_path / "odd.tally"


def test_dimension_names_are_escaped(run: Any, odd_tally: Path) -> None:
    for options in ((), ("--json",), ("--recalibrate",)):
        outcome = run("estimate", odd_tally, *options)
        assert outcome.code == 0
        assert all(line.isprintable() for line in (outcome.out + outcome.err).splitlines())
    assert "[red]b[/red]" in run("estimate", odd_tally).out
    names = [row["dimension"] for row in run("estimate", odd_tally, "--json").json["rows"]]
    assert names[0] == f"a{ESCAPES}"


def test_a_full_quarantine_gives_a_note(
    run: Any, collected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = tmp_path / "r.jsonl"
    survey = Survey.load(collected.survey)
    good = Report(survey.fingerprint, tuple((j, 0) for j in range(survey.sampled))).to_json()
    reports.write_text(good + "\n" + "x\n" * 1000)
    monkeypatch.setitem(Quarantine.__init__.__kwdefaults__, "limit_bytes", 3000)
    outcome = run("tally", collected.survey, reports, "-o", tmp_path / "t", "--quarantine", tmp_path / "q")
    assert outcome.code == 0
    assert "more are only counted" in outcome.err
    assert (tmp_path / "q").stat().st_size < 3500
    assert "1,000 of 1,001 reports rejected: 1,000 not a report" in outcome.err
