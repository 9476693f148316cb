"""The client: system randomness, the same draws for every record, and the distribution of the survey's channels."""

from __future__ import annotations

import inspect
import json
import math
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import hdr4me
from hdr4me.channels import KSubset, Table, UnaryEncoding
from hdr4me.channels.codebook import Codebook
from hdr4me.channels.k_subset import heaviest
from hdr4me.client import Client, Ledger, MemoizedClient
from hdr4me.client.prf import Stream, Use
from hdr4me.errors import InvalidInput
from hdr4me.io.report import fault
from hdr4me.survey import Categorical, Numeric, Question, Schema, Survey, Vector

RECORDS: list[dict[str, Any]] = [
    {"age": 31, "debt": -10, "colour": "red", "pet": "dog"},
    {},
    {"age": math.nan, "debt": None, "colour": 7, "pet": "lion"},
    {"age": 10**400, "debt": "x", "colour": [], "pet": {}},
]


def all_blocked() -> str:
    root = Path(hdr4me.__file__).parent.parent
    return f"""
import sys
sys.path.insert(0, {str(root)!r})

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {{"numpy", "pyarrow", "numba", "scipy", "typer", "rich", "cryptography"}}:
            raise ImportError(name + " is blocked")

sys.meta_path.insert(0, Block())
before = set(sys.modules)
import hdr4me
from hdr4me.client import Client, Ledger
from hdr4me.survey import Survey
survey = Survey.load(sys.argv[1])
report = hdr4me.Client(survey, Ledger(sys.argv[2])).report({{"age": 31}})
print(report.to_json())
from hdr4me.io.report import decode
assert decode(report.to_json(), survey) == report
foreign = {{name.partition(".")[0] for name in set(sys.modules) - before}} - set(sys.stdlib_module_names) - {{"hdr4me"}}
assert not foreign, foreign
"""


def test_the_standard_library_is_enough(mixed: Survey, tmp_path) -> None:
    mixed.save(tmp_path / "survey.json")
    arguments = [
        sys.executable,
        "-I",
        "-c",
        all_blocked(),
        tmp_path / "survey.json",
        tmp_path / "ledger.json",
    ]
    done = subprocess.run(arguments, capture_output=True, text=True, env={**os.environ}, check=False)
    assert done.returncode == 0, done.stderr
    assert mixed.fingerprint in done.stdout


def test_there_is_no_seed() -> None:
    assert list(inspect.signature(Client).parameters) == ["survey", "ledger"]
    assert list(inspect.signature(Client.report).parameters) == ["self", "record"]


@pytest.mark.parametrize("record", RECORDS)
def test_every_record_gives_a_valid_report(mixed: Survey, all_sent: Survey, record: dict[str, Any]) -> None:
    for survey in (mixed, all_sent):
        for _ in range(20):
            report = Client(survey).report(record)
            assert fault(report.answers, survey) is None
            sizes = [2 + survey.questions[q].channel.wire_size for q, *_ in report.answers]
            assert len(report.to_bytes(survey)) == sum(sizes) <= survey.report_size


CASES = json.loads((Path(__file__).parents[1] / "vectors" / "records.json").read_text("utf-8"))


@pytest.mark.parametrize("memoized", [False, True])
def test_unknown_names_and_unusable_values_are_refused_before_anything_is_drawn(
    tmp_path: Path, memoized: bool
) -> None:
    """The cases that the browser client shares; the error names the first dimension and never a value."""
    survey = Survey.from_json(json.dumps(CASES["survey"]))
    ledger = Ledger(tmp_path / "ledger.json", reports_per_survey=10**6, limit=None)
    client = MemoizedClient(survey, ledger) if memoized else Client(survey, ledger)
    assert len(CASES["cases"]) > 60
    for case in CASES["cases"]:
        record, refused = case["record"], case["refused"]
        spent, files = ledger.total, sorted(tmp_path.iterdir())
        if not refused:
            client.report(record)
            continue
        with pytest.raises(InvalidInput) as found:
            client.report(record)
        message = str(found.value)
        assert any(repr(name) in message for name in refused), (record, message)
        assert "secret" not in message
        assert (ledger.total, sorted(tmp_path.iterdir())) == (spent, files)


def test_what_is_sent_does_not_depend_on_validity_where_a_default_is_declared() -> None:
    """Unusable values give the answers of the default, for the same draws."""
    survey = Survey.from_json(json.dumps(CASES["survey"]))
    usable = {"age": 31, "mood": "fair", "spoken": []}
    for name, default in (("income", 500), ("town", "here"), ("pet", "missing")):
        answers = []
        for value in (default, None, "?", "1,000", [], object()):
            draws = [Stream(bytes([k]), survey.series, Use.ANSWER) for k in range(64)]
            client = Client(survey)
            for source in draws:
                client._draws = source  # type: ignore[assignment]
                answers.append((value is default, client.report({**usable, name: value}).answers))
        expected = [answer for own, answer in answers if own]
        assert [answer for own, answer in answers if not own] == expected * 5


def test_a_record_is_a_mapping(mixed: Survey) -> None:
    with pytest.raises(InvalidInput, match="not a list"):
        Client(mixed).report([1, 2])  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="survey = 'survey' is not allowed: a Survey"):
        Client("survey")  # type: ignore[arg-type]


class Counting:
    """Replaces the system's randomness with fixed numbers and records every call."""

    def __init__(self, word: int, fraction: int = 0) -> None:
        self.word, self.fraction = word, fraction
        self.calls: list[tuple[str, int]] = []

    def bits(self, n: int) -> int:
        self.calls.append(("bits", n))
        return {16: self.fraction, 32: self.word}[n]

    def below(self, n: int) -> int:
        self.calls.append(("below", n))
        return self.word % n


LAST = (1 << 32) - 1


@pytest.mark.parametrize(("word", "fraction"), [(0, 0), (LAST, 65535), (0x5A5A_1234, 0x8000)])
def test_the_draws_do_not_depend_on_the_record(all_sent: Survey, word: int, fraction: int) -> None:
    logs = []
    for record in RECORDS:
        client = Client(all_sent)
        client._draws = draws = Counting(word, fraction)  # type: ignore[assignment]
        client.report(record)
        logs.append(draws.calls)
    assert all(log == logs[0] for log in logs)
    questions = [("below", n) for n in (1, 2, 3, 4)]  # which of the four, by Floyd's algorithm
    number, entry = [("bits", 16), ("bits", 32)], ("bits", 32)
    choice = [("bits", 32), ("below", 3), ("below", 1)]
    assert logs[0] == [*questions, *number, *number, *choice, entry, entry, entry]


def test_extreme_words_give_the_first_and_last_cell(all_sent: Survey) -> None:
    """Word 0 gives the subset with the true category (grey, the default); the last word gives one without it."""
    for word, codes in ((0, (0, 0, 3, 0, 0, 0)), (LAST, (2, 1, LAST % 3, 1, 1, 1))):
        client = Client(all_sent)
        client._draws = Counting(word)  # type: ignore[assignment]
        answers = client.report({}).answers
        assert tuple(code for answer in answers for code in answer[1:]) == codes


def test_rounding_picks_the_upper_row_with_the_exact_probability(all_sent: Survey) -> None:
    """At 3/8 between two rows, 24576 of the 65536 fractions pick the upper row."""
    table = all_sent.channels[0]
    assert isinstance(table, Table)
    age = 120 * (1 + 0.375) / 4
    boundary = table.weights[2][0]  # this word is cell 1 in row 2 and cell 0 in row 1
    assert table.weights[1][0] > boundary
    for fraction, code in ((24575, 1), (24576, 0)):
        client = Client(all_sent)
        client._draws = Counting(boundary, fraction)  # type: ignore[assignment]
        assert client.report({"age": age}).answers[0] == (0, code)


def expected_distribution(survey: Survey, j: int, row: float) -> np.ndarray:
    weights = np.array(survey.questions[j].channel.rows) / 2**32
    low = int(row)
    high = min(low + 1, len(weights) - 1)
    return weights[low] + (row - low) * (weights[high] - weights[low])


def test_codes_follow_the_table(all_sent: Survey) -> None:
    """χ² over every code position, 4000 reports; false alarm 1e-8 for each of 6 comparisons.

    The randomness is the system's and cannot be seeded: once in about 17 million runs this fails by chance.
    """
    record = {"age": 120 * 0.6, "debt": -250, "colour": "green", "pet": "dog"}
    rows = [2.4, 0.75, 1.0, 0.0, 0.0, 1.0]  # position on each table's rows; entries none, cat, dog
    client = Client(all_sent)
    reports = [client.report(record).answers for _ in range(4000)]
    flat = np.array([[code for answer in answers for code in answer[1:]] for answers in reports])
    for column, (j, row) in enumerate(zip([0, 1, 2, 3, 3, 3], rows, strict=True)):
        law = expected_distribution(all_sent, j, row)
        seen = np.bincount(flat[:, column], minlength=len(law))
        statistic = float(((seen - 4000 * law) ** 2 / (4000 * law)).sum())
        assert statistic < chi2.isf(1e-8, len(law) - 1), (column, seen, law)


def test_dimensions_are_sampled_uniformly(mixed: Survey) -> None:
    """Each of the 6 pairs of 4 dimensions, 3000 reports; χ² at a false alarm of 1e-8, not seedable as above."""
    client = Client(mixed)
    pairs = Counter(tuple(answer[0] for answer in client.report({}).answers) for _ in range(3000))
    assert len(pairs) == 6
    assert sum((n - 500) ** 2 / 500 for n in pairs.values()) < chi2.isf(1e-8, 5)


def test_a_survey_that_would_block_a_device_is_refused() -> None:
    """Short documents of one vector or of many large categories; the designs of this package are within the limit."""
    slow = Codebook(4096, 65536, 2048)  # 48 seconds of Python for one report
    for length, family in ((4096, slow), (64, replace(slow, length=64, codewords=4096))):
        schema = Schema([Vector("v", length)])
        question = Question((0,), KSubset("codebook", 1.0, family, heaviest(1.0, family)))
        make = partial(Survey.from_questions, schema, epsilon=1.0, sampled=1, questions=[question])
        if family is slow:
            with pytest.raises(
                InvalidInput, match=r"needs 268,500,992 operations on a device, and at most 33,554,432"
            ):
                make()
        else:
            assert make().questions[0].channel.device_cost == 4096 * 65
    wide = UnaryEncoding("bits", 1.1, 65536, (-1.0, 3.0), ((3 << 30, 1 << 30), (1 << 31, 1 << 31)))
    towns = Categorical("t", [f"t{k}" for k in range(65536)])
    many = Schema([Categorical(f"t{j}", towns.labels) for j in range(65)])
    questions = [Question((j,), wide) for j in range(65)]
    for m, allowed in ((64, True), (65, False)):
        make = partial(Survey.from_questions, many, epsilon=80.0, sampled=m, questions=questions)
        if allowed:
            make()
        else:
            with pytest.raises(InvalidInput, match="lower sampled"):
                make()


def test_many_dimensions_need_two_bytes(mixed: Survey) -> None:
    schema = Schema([Numeric(f"x{j}", 0, 1) for j in range(300)])
    questions = [Question((j,), mixed.channels[0]) for j in range(300)]
    survey = Survey.from_questions(schema, epsilon=300.0, sampled=300, questions=questions)
    data = Client(survey).report({f"x{j}": 0 for j in range(300)}).to_bytes(survey)
    assert data[-3:-1] == (299).to_bytes(2, "little")
