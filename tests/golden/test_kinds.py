"""Every kind of question: files that `benchmarks/golden.py` wrote once are read and give the same answers.

Surveys, reports, tallies, the ledger and the collector's store are compared to the last bit. Answers may differ in the
last digits, because another order of summation is no other answer; predicted errors by one in a million.
"""

from __future__ import annotations

import json
import math
import shutil
import warnings
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import scipy

import golden
import hdr4me as hd
from hdr4me.engines import Local
from hdr4me.io import read_reports, write_reports
from hdr4me.io.report import Report, unpack

FOLDER = Path(__file__).parent / "kinds"
ANSWERS = json.loads((FOLDER / "answers.json").read_text(encoding="utf-8"))
PREDICTIONS = json.loads((FOLDER / "predictions.json").read_text(encoding="utf-8"))
NAMES = sorted(ANSWERS)
SUFFIXES = ["jsonl", "arrow", "parquet"]
same_solver = pytest.mark.skipif(
    scipy.__version__ != PREDICTIONS["scipy"], reason="another SciPy may find another table of the same error"
)


def survey_of(name: str) -> hd.Survey:
    return hd.Survey.load(FOLDER / f"{name}.survey.json")


def tally_of(name: str) -> hd.Tally:
    return hd.Tally.load(FOLDER / f"{name}.tally", survey_of(name))


def close(found: Any, expected: Any, ratio: float, rounding: float = 1e-300) -> bool:
    """Equal, floats up to a ratio or up to a rounding error."""
    if isinstance(expected, dict):
        return set(found) == set(expected) and all(
            close(found[k], expected[k], ratio, rounding) for k in expected
        )
    if isinstance(expected, list):
        return len(found) == len(expected) and all(
            close(a, b, ratio, rounding) for a, b in zip(found, expected, strict=True)
        )
    if isinstance(expected, float):
        return found == expected or math.isclose(found, expected, rel_tol=ratio, abs_tol=rounding)
    return bool(found == expected)


def read(rows: list[list[Any]]) -> list[list[Any]]:
    """Numbers as they were: `golden.plain` writes them in hexadecimal."""
    return [
        [float.fromhex(x) if isinstance(x, str) and i > 2 else x for i, x in enumerate(row)] for row in rows
    ]


def test_there_are_files_for_every_survey() -> None:
    assert sorted(golden.SURVEYS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_document_is_read_and_written_to_the_same_bytes(name: str, tmp_path: Path) -> None:
    survey = survey_of(name)
    assert survey.fingerprint == ANSWERS[name]["fingerprint"]
    survey.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (FOLDER / f"{name}.survey.json").read_bytes()


@same_solver
@pytest.mark.parametrize("name", NAMES)
def test_the_same_call_designs_the_same_survey(name: str) -> None:
    """Integers are equal; the last bits of decoders depend on the processor, and the fingerprint on them."""
    found, expected = (json.loads(survey.to_json()) for survey in (golden.SURVEYS[name](), survey_of(name)))
    assert found.pop("fingerprint", None) is not None
    assert expected.pop("fingerprint") == ANSWERS[name]["fingerprint"]
    assert close(found, expected, 1e-9, rounding=1e-13)  # decoders are of order 1: a zero may be 1e-16


@same_solver
def test_every_mechanism_designs_the_same_table() -> None:
    assert dict(golden.designs()) == PREDICTIONS["designs"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", NAMES)
def test_reports_give_the_same_tally_and_are_written_to_the_same_bytes(
    name: str, suffix: str, tmp_path: Path
) -> None:
    survey, path = survey_of(name), FOLDER / f"{name}.{suffix}"
    assert Local(threads=1).tally(path, survey) == tally_of(name)
    with write_reports(tmp_path / path.name, survey) as writer:
        for block in read_reports(path, survey):
            writer.write(block)
    if suffix == "jsonl":
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()
    assert Local(threads=1).tally(tmp_path / path.name, survey) == tally_of(name)


@pytest.mark.parametrize("name", NAMES)
def test_reports_have_the_same_bytes_on_the_wire(name: str) -> None:
    survey = survey_of(name)
    rows = next(iter(read_reports(FOLDER / f"{name}.jsonl", survey)))
    for row, sent in zip(rows, ANSWERS[name]["wire"], strict=False):
        answers = unpack(row.tobytes(), survey)
        assert Report(survey.fingerprint, answers).to_bytes(survey).hex() == sent


@pytest.mark.parametrize("name", NAMES)
def test_a_tally_is_written_to_the_same_bytes(name: str, tmp_path: Path) -> None:
    tally_of(name).save(tmp_path / "again.tally")
    assert (tmp_path / "again.tally").read_bytes() == (FOLDER / f"{name}.tally").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_the_same(name: str) -> None:
    tally = tally_of(name)
    tally.round_number = 1  # memoized responses of a later round would have no intervals
    found, expected = golden.answers(tally), ANSWERS[name]
    assert set(found) == set(expected) - {"fingerprint", "wire", "memoized"}
    for statistic, rows in found.items():
        ratio = (
            1e-12 if statistic == "estimate" else 1e-6
        )  # others are fitted, by steps that end at a tolerance
        assert close(read(rows), read(expected[statistic]), ratio), statistic


def test_memoized_answers_and_their_ledger_are_the_same(tmp_path: Path) -> None:
    """The rows are paid for: the same secret gives the same reports, and the ledger's bytes do not change."""
    for path in FOLDER.glob("ledger.json*"):
        shutil.copy(path, tmp_path)
    ledger = hd.Ledger(tmp_path / "ledger.json", reports_per_survey=4)
    survey = survey_of("mixed")
    assert ledger.total == ledger.spent(survey) == Fraction(8)
    client = hd.MemoizedClient(survey, ledger)
    for k, sent in zip(("c2", "c3", "c2"), ANSWERS["mixed"]["memoized"], strict=True):
        assert client.report({**golden.RECORD, "k": k}).to_json() == sent
    assert (tmp_path / "ledger.json").read_bytes() == (FOLDER / "ledger.json").read_bytes()


def test_a_collectors_store_opens_and_gives_the_same_tally(tmp_path: Path) -> None:
    pytest.importorskip("starlette")
    from hdr4me.collector import open_store

    shutil.copy(FOLDER / "collector.db", tmp_path)
    store, survey = open_store(tmp_path / "collector.db"), survey_of("mixed")
    try:
        assert store.round(1).fingerprint == survey.fingerprint
        assert sum(arrived.stored for arrived in store.arrivals(1)) == golden.N - 1  # one was deleted
        rows = next(iter(read_reports(FOLDER / "mixed.jsonl", survey)))
        rest = [row for i, row in enumerate(rows) if i != 3]
        assert store.tally(1) == hd.Tally(survey).add(
            Report(survey.fingerprint, unpack(row.tobytes(), survey)) for row in rest
        )
    finally:
        store.close()


@pytest.mark.parametrize("what", ["plans", "comparisons"])
def test_predicted_and_simulated_errors_are_the_same(what: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = dict(getattr(golden, what)())
    expected = PREDICTIONS[what]
    assert not set(expected) - set(found)
    different = {key for key in expected if not close(found[key], expected[key], 1e-6)}
    assert not different
