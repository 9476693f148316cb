"""Files that version 0.1 wrote are still read, and give the same counts and the same answers to the last bit."""

from __future__ import annotations

import json
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from hdr4me.client import Ledger
from hdr4me.engines import Local
from hdr4me.survey import Survey
from hdr4me.tally import Tally

FOLDER = Path(__file__).parent
ANSWERS = json.loads((FOLDER / "answers.json").read_text(encoding="utf-8"))
NAMES = sorted(ANSWERS)


def survey_of(name: str) -> Survey:
    return Survey.load(FOLDER / f"{name}.survey.json")


@pytest.mark.parametrize("name", NAMES)
def test_a_survey_of_version_1_keeps_its_fingerprint(name: str) -> None:
    survey = survey_of(name)
    assert survey.fingerprint == ANSWERS[name]["fingerprint"]
    assert Survey.from_json(survey.to_json()) == survey


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("suffix", ["jsonl", "arrow", "parquet"])
def test_reports_of_version_1_give_the_tally_of_version_1(name: str, suffix: str) -> None:
    tally = Local(threads=1).tally(FOLDER / f"{name}.{suffix}", survey_of(name))
    assert tally == Tally.load(FOLDER / f"{name}.tally")
    assert tally.n_reports == ANSWERS[name]["n_reports"]


@pytest.mark.parametrize("name", NAMES)
def test_a_tally_of_version_1_is_written_to_the_same_bytes(name: str, tmp_path: Path) -> None:
    path = FOLDER / f"{name}.tally"
    Tally.load(path).save(tmp_path / "again.tally")
    assert (tmp_path / "again.tally").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_those_of_version_1_to_the_last_bit(name: str) -> None:
    rows = Tally.load(FOLDER / f"{name}.tally").estimate().table()
    expected = ANSWERS[name]["table"]
    assert len(rows) == len(expected)
    for row, was in zip(rows, expected, strict=True):
        found = {key: x.hex() if isinstance(x, float) else x for key, x in row.items() if key in was}
        assert found == was


def test_a_ledger_of_version_1_keeps_what_was_spent(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "ledger.json", tmp_path / "ledger.json")
    assert Ledger(tmp_path / "ledger.json").total == Fraction(3)
