"""Golden files of the current formats: the same bytes when written again, the same answers to the last bit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from hdr4me.client import Ledger, MemoizedClient
from hdr4me.client.client import decide
from hdr4me.client.prf import Stream, Use
from hdr4me.engines import Local
from hdr4me.survey import Categorical, Schema, Survey
from hdr4me.tally import Tally

FOLDER = Path(__file__).parent
ANSWERS = json.loads((FOLDER / "answers.json").read_text(encoding="utf-8"))
NAMES = sorted(ANSWERS)


def survey_of(name: str) -> Survey:
    return Survey.load(FOLDER / f"{name}.survey.json")


@pytest.mark.parametrize("name", NAMES)
def test_a_survey_keeps_its_fingerprint_and_its_bytes(name: str) -> None:
    survey = survey_of(name)
    assert survey.fingerprint == ANSWERS[name]["fingerprint"]
    assert Survey.from_json(survey.to_json()) == survey
    assert (survey.to_json() + "\n").encode() == (FOLDER / f"{name}.survey.json").read_bytes()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("suffix", ["jsonl", "arrow", "parquet"])
def test_reports_give_their_tally(name: str, suffix: str) -> None:
    tally = Local(threads=1).tally(FOLDER / f"{name}.{suffix}", survey_of(name))
    assert tally == Tally.load(FOLDER / f"{name}.tally")
    assert tally.n_reports == ANSWERS[name]["n_reports"]


@pytest.mark.parametrize("name", NAMES)
def test_a_tally_is_written_to_the_same_bytes(name: str, tmp_path: Path) -> None:
    path = FOLDER / f"{name}.tally"
    Tally.load(path).save(tmp_path / "again.tally")
    assert (tmp_path / "again.tally").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_the_same(name: str) -> None:
    """To a relative 1e-12: the last bits depend on the processor, through the linear algebra of a standard error."""
    rows = Tally.load(FOLDER / f"{name}.tally").estimate().table()
    expected = ANSWERS[name]["table"]
    assert len(rows) == len(expected)
    for row, was in zip(rows, expected, strict=True):
        for key, x in row.items():
            if isinstance(x, float) and key in was:
                assert x == pytest.approx(float.fromhex(was[key]), rel=1e-12), key
            elif key in was:
                assert x == was[key], key


def test_a_ledger_keeps_its_bytes_and_its_order_of_payment(tmp_path: Path) -> None:
    """Three rows of four are paid for; whatever the value, the row paid for last answers."""
    for suffix in ("", ".counter", ".secret"):
        shutil.copy(FOLDER / f"ledger.json{suffix}", tmp_path)
    survey = Survey(Schema([Categorical("mood", list("abcd"), default="a")]), epsilon=2.0, categorical="grr")
    ledger = Ledger(tmp_path / "ledger.json", reports_per_survey=3)
    before = ledger.path.read_bytes()
    assert ledger.book().text().encode() == before
    assert ledger.total == 6
    assert ledger.left(survey) == 0
    secret = (FOLDER / "ledger.json.secret").read_bytes()
    marks = [Stream(secret, survey.series, Use.MARK, 0, row).take(16).hex() for row in (3, 0, 2)]
    assert list(ledger.book().rows[survey.series]) == marks
    sent = {MemoizedClient(survey, ledger).report({"mood": mood}).answers for mood in "abcd"}
    assert sent == {decide(survey, secret, {"mood": "c"}, (), 1)[0]}
    assert ledger.path.read_bytes() == before
