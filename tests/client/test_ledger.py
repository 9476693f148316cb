"""The ledger: exact, atomic, locked, and it refuses when in doubt."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from hdr4me.client import Client, Ledger
from hdr4me.errors import BudgetExceeded, FormatError, InvalidInput
from hdr4me.survey import Question, Survey


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "ledger.json"


def test_one_report_for_each_survey(mixed: Survey, other: Survey, path: Path) -> None:
    ledger = Ledger(path)
    Client(mixed, ledger).report({})
    with pytest.raises(BudgetExceeded, match=mixed.fingerprint):
        Client(mixed, ledger).report({})
    Client(other, ledger).report({})
    assert ledger.spent(mixed) == 12
    assert Ledger(path).total == 24


def test_more_reports_if_asked_for(mixed: Survey, path: Path) -> None:
    client = Client(mixed, Ledger(path, reports_per_survey=3))
    for _ in range(3):
        client.report({})
    with pytest.raises(BudgetExceeded, match="3 time"):
        client.report({})


def test_the_limit_is_exact(mixed: Survey, path: Path) -> None:
    """Ten times 0.1 is a little more than 1 as exact fractions: the tenth is refused at a limit of 1."""
    survey = Survey.from_questions(
        mixed.schema.__class__([mixed.schema["debt"]]),
        epsilon=1.1,
        n_sampled=1,
        questions=[Question((0,), mixed.questions[1].channel)],
    )
    ledger = Ledger(path, limit=11.0, reports_per_survey=100)
    for _ in range(9):
        ledger.spend(survey)
    with pytest.raises(BudgetExceeded, match="limit of 11"):
        ledger.spend(survey)
    assert ledger.total == 9 * Fraction(1.1)


def test_spent_before_the_report_is_released(mixed: Survey, path: Path, monkeypatch) -> None:
    """If the ledger cannot be written there is no report."""

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    ledger = Ledger(path)
    monkeypatch.setattr("hdr4me.client.ledger.write_text", full)
    with pytest.raises(OSError, match="No space"):
        Client(mixed, ledger).report({})
    assert ledger.total == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        '{"format": "hdr4me-ledger"}',
        '{"format": "hdr4me-ledger", "version": 2, "spent": {}, "total": "0"}',
        '{"format": "hdr4me-ledger", "version": 1, "spent": {"a": "-1"}, "total": "-1"}',
        '{"format": "hdr4me-ledger", "version": 1, "spent": {"a": "1"}, "total": "0"}',
        '{"format": "hdr4me-ledger", "version": 1, "spent": {"a": "1/0"}, "total": "0"}',
        '{"format": "hdr4me-ledger", "version": 1, "spent": {"a": "nan"}, "total": "0"}',
        '{"format": "hdr4me-ledger", "version": 1, "spent": [], "total": "0"}',
    ],
)
def test_a_ledger_that_cannot_be_read_refuses(mixed: Survey, path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(FormatError, match="not a ledger"):
        Client(mixed, Ledger(path)).report({})
    assert path.read_text() == text


def test_the_file_is_plain(mixed: Survey, path: Path) -> None:
    Ledger(path).spend(mixed)
    assert json.loads(path.read_text()) == {
        "format": "hdr4me-ledger",
        "version": 1,
        "spent": {mixed.fingerprint: "12"},
        "total": "12",
    }


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf")])
def test_a_limit_is_positive(path: Path, limit: float) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        Ledger(path, limit=limit)


@pytest.mark.parametrize("reports", [0, 1.5, True])
def test_reports_are_counted_whole(path: Path, reports: Any) -> None:
    with pytest.raises(InvalidInput, match="reports_per_survey"):
        Ledger(path, reports_per_survey=reports)


SPEND = """
import sys
from hdr4me.client import Ledger
from hdr4me.survey import Survey
ledger, survey = Ledger(sys.argv[1], reports_per_survey=1000), Survey.load(sys.argv[2])
for _ in range(15):
    ledger.spend(survey)
"""


def test_processes_at_once_lose_nothing(mixed: Survey, path: Path) -> None:
    document = path.with_name("survey.json")
    mixed.save(document)
    command = [sys.executable, "-c", SPEND, str(path), str(document)]
    workers = [subprocess.Popen(command) for _ in range(2)]
    assert [worker.wait() for worker in workers] == [0, 0]
    assert Ledger(path).spent(mixed) == 2 * 15 * 12


def test_a_link_to_the_ledger_is_the_ledger(mixed: Survey, path: Path) -> None:
    """One file, one lock, whatever it is called; and nobody else may read what was spent."""
    link = path.with_name("link.json")
    link.symlink_to(path)
    first, second = Ledger(path), Ledger(link)
    assert first.path == second.path
    first.spend(mixed)
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(BudgetExceeded):
        second.spend(mixed)


def test_a_folder_that_is_not_there_and_a_limit_that_is_no_number_are_named(
    mixed: Survey, path: Path
) -> None:
    with pytest.raises(InvalidInput, match="its folder does not exist"):
        Ledger(path.parent / "gone" / "ledger.json").spend(mixed)
    with pytest.raises(InvalidInput, match="limit = '1'"):
        Ledger(path, limit="1")  # type: ignore[arg-type]
