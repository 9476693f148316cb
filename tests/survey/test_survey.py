"""The survey's document: whole, canonical, and refused when anything in it is wrong."""

from __future__ import annotations

import contextlib
import json
import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdr4me.errors import FingerprintMismatch, FormatError, InvalidInput
from hdr4me.survey import Numeric, Question, Schema, Survey
from hdr4me.survey.canonical import fingerprint, identities


def tampered(survey: Survey, change: dict[str, Any], *, signed: bool = True) -> str:
    document = {**json.loads(survey.to_json()), **change}
    if signed:
        document["fingerprint"] = fingerprint(document)
    return json.dumps(document)


def test_sizes(mixed: Survey, all_sent: Survey) -> None:
    assert [len(question.channel.fields) for question in mixed.questions] == [1, 1, 1, 3]
    assert [mixed.question_of(name) for name in mixed.schema.names] == [0, 1, 2, 3]
    assert (mixed.slot_size, mixed.report_size) == (5, 10)
    assert all_sent.report_size == 20
    assert mixed.epsilon_per_answer == 6.0
    assert mixed.byte_wise
    assert not mixed.fixed_size  # a slot on the wire has three bytes, or five


def test_round_trip(mixed: Survey, tmp_path) -> None:
    mixed.save(tmp_path / "s.json")
    again = Survey.load(tmp_path / "s.json")
    assert again == mixed
    assert hash(again) == hash(mixed)
    assert again.questions == mixed.questions
    assert again.schema == mixed.schema
    assert again.to_json() == mixed.to_json()


def test_the_fingerprint_is_pinned(mixed: Survey) -> None:
    """A change of this number is a change of the format: raise the version."""
    assert mixed.fingerprint == "c3683d246576c5213243f6dd601f7e1beb6ae0fb1f9f5d4decedac20d06495d1"


def test_any_change_changes_the_fingerprint(mixed: Survey, other: Survey, all_sent: Survey) -> None:
    assert len({mixed.fingerprint, other.fingerprint, all_sent.fingerprint}) == 3
    assert mixed != other


def test_repr_says_what_it_is(mixed: Survey) -> None:
    assert "4 dimensions" in repr(mixed)
    assert "three, coin, choice, bits" in repr(mixed)


def test_a_changed_document_is_noticed(mixed: Survey) -> None:
    with pytest.raises(FingerprintMismatch):
        Survey.from_json(tampered(mixed, {"name": "mine"}, signed=False))
    assert Survey.from_json(tampered(mixed, {"name": "mine"})).name == "mine"


def first_channel(survey: Survey, **change: Any) -> dict[str, Any]:
    channels = json.loads(survey.to_json())["channels"]
    return {"channels": [{**channels[0], **change}, *channels[1:]]}


def first_question(survey: Survey, **change: Any) -> dict[str, Any]:
    questions = json.loads(survey.to_json())["questions"]
    return {"questions": [{**questions[0], **change}, *questions[1:]]}


def first_dimension(survey: Survey, **change: Any) -> dict[str, Any]:
    dimensions = json.loads(survey.to_json())["dimensions"]
    return {"dimensions": [{**dimensions[0], **change}, *dimensions[1:]]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "x"}, "format"),
        ({"version": 3}, "version 3: this program supports version 2"),
        ({"version": 1}, "version 1: this program supports version 2"),
        ({"version": True}, "version True"),
        ({"extra": 1}, "'extra'"),
        ({"bits": 32}, "'bits'"),
        ({"epsilon": 0}, "epsilon = 0"),
        ({"epsilon": "1"}, "epsilon = '1'"),
        ({"epsilon": 1e9}, "epsilon"),
        ({"epsilon": 1.0}, "'three' spends 0.85 on each of 2 answers"),
        ({"epsilon": None}, "epsilon = None"),
        ({"n_sampled": 0}, "sampled = 0"),
        ({"n_sampled": 5}, "sampled = 5"),
        ({"n_sampled": 1.0}, "sampled = 1.0"),
        ({"n_sampled": True}, "sampled = True"),
        ({"name": 3}, "name = 3"),
        ({"dimensions": 3}, "dimensions"),
        ({"dimensions": [3]}, "a dimension must be an object, not 3"),
        ({"dimensions": []}, "0 dimensions"),
        ({"channels": {}}, "channels of a survey must be lists"),
        ({"channels": []}, "does not exist"),
        ({"channels": [3]}, "an object with a kind"),
        ({"questions": {}}, "questions and channels of a survey must be lists"),
        ({"questions": []}, "no question uses"),
        ({"questions": [3]}, "a question must be an object"),
    ],
)
def test_wrong_documents(mixed: Survey, change: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        Survey.from_json(tampered(mixed, change))
    assert "\n" not in str(caught.value)


def test_wrong_dimensions_and_tables(mixed: Survey) -> None:
    for change, message in [
        (first_question(mixed, channel=9), "channel = 9 of a question does not exist"),
        (first_question(mixed, channel=-1), "channel = -1 of a question does not exist"),
        (first_question(mixed, channel=None), "does not exist"),
        (first_question(mixed, channel=True), "does not exist"),
        (first_question(mixed, channel=1), "no question uses"),
        (first_question(mixed, dimensions=[2]), "every dimension must be in exactly one question"),
        (first_question(mixed, dimensions=[7]), "a dimension that the schema does not have"),
        (first_question(mixed, dimensions=[-1]), "a dimension that the schema does not have"),
        (first_question(mixed, dimensions=[]), "list of integers"),
        (first_question(mixed, dimensions=[0.0]), "list of integers"),
        (first_question(mixed, dimensions=0), "list of integers"),
        (first_question(mixed, weight=2), "different weights require sampled = 1"),
        (first_question(mixed, weight=0), "weight = 0 is not allowed"),
        (first_question(mixed, weight=1.5), "weight = 1.5 is not allowed"),
        (first_question(mixed, more=2), "a question must be an object"),
        (first_dimension(mixed, categories=["a", "b"]), "has fields"),
        (
            first_dimension(mixed, optional=True),
            "cannot use channel 'three', which accepts a number of 5 inputs",
        ),
        (first_dimension(mixed, low=200), "low = 200"),
        (first_dimension(mixed, name="pet"), "'pet' appears twice"),
        (first_channel(mixed, epsilon=0.8), "leaks a factor of 2.33"),
        (first_channel(mixed, decoders={"value": [0, 0, 1]}), "is biased"),
        (first_channel(mixed, weights=[[1]]), "1 rows"),
        (first_channel(mixed, kind="value"), "channel of kind 'value': known are table, entries, heavy_set"),
    ]:
        with pytest.raises(FormatError, match=message) as caught:
            Survey.from_json(tampered(mixed, change))
        assert "\n" not in str(caught.value)


def test_a_table_that_leaks_one_part_in_four_billion_is_refused(mixed: Survey) -> None:
    """The coin's column ratio is 3; declared at the float just below log 3 it must not load."""
    document = json.loads(mixed.to_json())
    below = math.log(3)
    while Fraction(below) and not _leaks(below):
        below = math.nextafter(below, 0.0)
    document["channels"][1]["epsilon"] = below
    document["fingerprint"] = fingerprint(document)
    with pytest.raises(FormatError, match="leaks a factor of 3"):
        Survey.from_json(json.dumps(document))
    document["channels"][1]["epsilon"] = math.nextafter(math.log(3), math.inf)
    document["fingerprint"] = fingerprint(document)
    assert Survey.from_json(json.dumps(document))


def _leaks(epsilon: float) -> bool:
    with mpmath.workdps(60):
        return bool(mpmath.exp(epsilon) < 3)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "null", "[" * 100_000, b"\xff\xfe", '{"format": "hdr4me-survey"}']
)
def test_not_a_survey_at_all(text: str | bytes, tmp_path) -> None:
    with pytest.raises(FormatError) as caught:
        Survey.from_json(text)
    assert "\n" not in str(caught.value)
    path = tmp_path / "s.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FormatError, match=r"s\.json"):
        Survey.load(path)


def test_a_tampered_file_names_both_fingerprints(mixed: Survey, tmp_path) -> None:
    (tmp_path / "s.json").write_text(tampered(mixed, {"name": "mine"}, signed=False))
    with pytest.raises(FingerprintMismatch, match=mixed.fingerprint[:12]):
        Survey.load(tmp_path / "s.json")


@pytest.mark.parametrize(
    "change",
    [
        {"schema": [1]},
        {"epsilon": math.nan},
        {"epsilon": -1.0},
        {"epsilon": 10**400},
        {"sampled": 2.0},
        {"name": "\ud800"},
        {"questions": (0, 1)},
        {"questions": (0, 1, 3, 3, 3)},
        {"questions": (0, 1, 0, 3)},
        {"questions": (3, 2, 1, 0)},
        {"questions": ()},
    ],
)
def test_wrong_parts(mixed: Survey, change: dict[str, Any]) -> None:
    parts = {
        "schema": mixed.schema,
        "epsilon": 12.0,
        "sampled": 2,
        "questions": (0, 1, 2, 3),
        **change,
    }
    questions = [mixed.questions[q] for q in parts.pop("questions")]  # type: ignore[attr-defined]
    with pytest.raises(InvalidInput):
        Survey.from_questions(**parts, questions=questions)  # type: ignore[arg-type]


def test_a_survey_cannot_be_changed(mixed: Survey) -> None:
    with pytest.raises(AttributeError):
        mixed.epsilon = 1.0  # type: ignore[misc]


@given(st.data())
def test_mutated_documents_never_crash(mixed: Survey, data: st.DataObject) -> None:
    text = bytearray(mixed.to_json().encode())
    for _ in range(data.draw(st.integers(1, 3))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(FormatError):
        assert Survey.from_json(bytes(text)) == mixed


def test_shared_channels(mixed: Survey) -> None:
    schema = Schema([Numeric(f"x{j}", 0, 1) for j in range(300)])
    questions = [Question((j,), mixed.channels[0]) for j in range(300)]
    survey = Survey.from_questions(schema, epsilon=0.85, sampled=1, questions=questions)
    assert len(survey.channels) == len(json.loads(survey.to_json())["channels"]) == 1
    assert survey.report_size == 3
    assert len(survey.to_json()) < 50_000


def test_a_repeated_field_is_refused(mixed: Survey) -> None:
    """Readers differ in which of two they take: a client elsewhere might see another epsilon."""
    text = mixed.to_json()
    with pytest.raises(FormatError, match="appears twice"):
        Survey.from_json('{"epsilon": 0.1, ' + text[1:])


def test_half_a_surrogate_pair_in_a_document_is_a_plain_error(mixed: Survey) -> None:
    document = json.loads(mixed.to_json())
    document["name"] = "\ud800"
    with pytest.raises(FormatError, match="no UTF-8 form"):
        Survey.from_json(json.dumps(document))


def test_a_document_is_canonicalised_once(mixed: Survey, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading one that was written by this program; fingerprint and series come from the same text."""
    calls = []

    def counted(document: dict[str, Any]) -> tuple[str, str]:
        calls.append(1)
        return identities(document)

    monkeypatch.setattr("hdr4me.survey.survey.identities", counted)
    again = Survey.from_json(mixed.to_json())
    calls.clear()
    again = Survey.from_json(mixed.to_json())
    assert (again.fingerprint, again.series) == (mixed.fingerprint, mixed.series)
    assert len(calls) == 1


def test_another_spelling_of_numbers_is_the_same_survey_and_a_boolean_is_not_a_number(
    mixed: Survey,
) -> None:
    document = json.loads(mixed.to_json())
    document["dimensions"][0] |= {"low": 0, "high": 120}
    again = Survey.from_json(json.dumps(document))
    assert (again, again.series) == (mixed, mixed.series)
    for field in ("low", "default"):
        changed = json.loads(mixed.to_json())
        changed["dimensions"][0] |= {field: False}
        changed["fingerprint"] = fingerprint(changed)
        with pytest.raises(FormatError):
            Survey.from_json(json.dumps(changed))
