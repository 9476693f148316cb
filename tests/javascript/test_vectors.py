"""The Python client reproduces the shared test vectors, which cover every kind of channel and value."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from hdr4me.channels.channel import below
from hdr4me.client.client import answer, draw_questions
from hdr4me.client.prf import Stream, Use
from hdr4me.survey import Survey

PATH = Path(__file__).parents[1] / "vectors" / "client.json.gz"
NUMBERS = {text: float(text) for text in ("nan", "inf", "-inf", "-0.0")}


class Words:
    """Draws from given bytes."""

    def __init__(self, data: bytes) -> None:
        self.left = data

    def bits(self, n: int) -> int:
        found, self.left = self.left[: n // 8], self.left[n // 8 :]
        assert len(found) == n // 8
        return int.from_bytes(found, "big")

    def below(self, n: int) -> int:
        return below(self, n)


@pytest.fixture(scope="module")
def vectors() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(PATH.read_bytes()))
    return found


@pytest.fixture(scope="module")
def surveys(vectors: dict[str, Any]) -> list[Survey]:
    return [Survey.from_json(json.dumps(document)) for document in vectors["surveys"]]


def value(item: Any) -> Any:
    return NUMBERS[item["number"]] if isinstance(item, dict) and "number" in item else item


def test_python_gives_these_answers(vectors: dict[str, Any], surveys: list[Survey]) -> None:
    assert len(vectors["cases"]) >= 20_000
    for index, values, words, answers in vectors["cases"][::7]:
        survey = surveys[index]
        draws: Any = Stream(bytes(32), "00" * 32, Use.ANSWER, words) if isinstance(words, int) else None
        draws = draws or Words(bytes.fromhex(words))
        record = {name: value(item) for name, item in values.items()}
        found = [[q, *answer(survey, q, record, draws)] for q in draw_questions(survey, draws)]
        assert found == answers, (index, values, words)


def test_python_gives_these_answers_about_derived_inputs() -> None:
    document = json.loads(PATH.with_name("derived.json").read_text("ascii"))
    surveys = [Survey.from_json(json.dumps(item)) for item in document["surveys"]]
    assert {x.kind for survey in surveys for x in survey.schema} >= {
        *("bucket", "hash", "joint", "outer", "prefix", "product")
    }
    assert len(document["cases"]) >= 3_000
    for index, values, words, answers in document["cases"][::9]:
        draws = Stream(bytes(32), "00" * 32, Use.ANSWER, words)
        record = {name: value(item) for name, item in values.items()}
        found = [
            [q, *answer(surveys[index], q, record, draws)] for q in draw_questions(surveys[index], draws)
        ]
        assert found == answers, (index, values, words)


def test_every_kind_is_there(vectors: dict[str, Any], surveys: list[Survey]) -> None:
    assert [survey.series for survey in surveys] == vectors["series"]
    assert {document["version"] for document in vectors["surveys"]} == {2}
    channels = [channel.to_dict() for survey in surveys for channel in survey.channels]
    assert {channel["kind"] for channel in channels} == {"table", "entries", "heavy_set"}
    families = {channel["family"]["name"] for channel in channels if "family" in channel}
    assert families == {"subset", "projective", "privset"}
    assert {
        input_.input_kind for survey in surveys for channel in survey.channels for input_ in channel.inputs
    } == {
        "number",
        "optional",
        "category",
        "selection",
    }
    assert any(len(question.dimensions) == 2 for survey in surveys for question in survey.questions)
    assert any(survey.weighted for survey in surveys)
    assert {survey.sampled for survey in surveys} >= {1, 2, 3, 5, 8}
