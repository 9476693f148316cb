"""The survey's document: whole, canonical, and refused when anything in it is wrong."""

from __future__ import annotations

import contextlib
import json
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdr4me.errors import FingerprintMismatch, FormatError, InvalidInput
from hdr4me.survey import Numeric, Randomizer, Schema, Survey
from hdr4me.survey.canonical import fingerprint


def tampered(survey: Survey, change: dict[str, Any], *, signed: bool = True) -> str:
    document = {**json.loads(survey.to_json()), **change}
    if signed:
        document["fingerprint"] = fingerprint(document)
    return json.dumps(document)


def test_sizes(mixed: Survey, all_sent: Survey) -> None:
    assert [mixed.n_codes(j) for j in range(4)] == [1, 1, 1, 3]
    assert (mixed.code_width, mixed.slot_size, mixed.report_size) == (3, 5, 10)
    assert all_sent.report_size == 20
    assert mixed.epsilon_per_value == 6.0


def test_round_trip(mixed: Survey, tmp_path) -> None:
    mixed.save(tmp_path / "s.json")
    again = Survey.load(tmp_path / "s.json")
    assert again == mixed
    assert hash(again) == hash(mixed)
    assert again.randomizers == mixed.randomizers
    assert again.schema == mixed.schema
    assert again.to_json() == mixed.to_json()


def test_the_fingerprint_is_pinned(mixed: Survey) -> None:
    """A change of this number is a change of the format: raise the version."""
    assert mixed.fingerprint == "447bde4985e6e06009d3aae8ed0a1c89f602e9f550c1fa601e2ec3cffb309194"


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


def first_randomizer(survey: Survey, **change: Any) -> dict[str, Any]:
    randomizers = json.loads(survey.to_json())["randomizers"]
    return {"randomizers": [{**randomizers[0], **change}, *randomizers[1:]]}


def first_dimension(survey: Survey, **change: Any) -> dict[str, Any]:
    dimensions = json.loads(survey.to_json())["dimensions"]
    return {"dimensions": [{**dimensions[0], **change}, *dimensions[1:]]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "x"}, "format"),
        ({"version": 2}, "version 2"),
        ({"version": True}, "version True"),
        ({"extra": 1}, "'extra'"),
        ({"bits": 16}, "bits"),
        ({"epsilon": 0}, "epsilon = 0"),
        ({"epsilon": "1"}, "epsilon = '1'"),
        ({"epsilon": 1e9}, "epsilon"),
        ({"epsilon": 1.0}, "'three' spends 0.85 on each of 2 values"),
        ({"epsilon": None}, "epsilon = None"),
        ({"n_sampled": 0}, "n_sampled = 0"),
        ({"n_sampled": 5}, "n_sampled = 5"),
        ({"n_sampled": 1.0}, "n_sampled = 1.0"),
        ({"n_sampled": True}, "n_sampled = True"),
        ({"name": 3}, "name = 3"),
        ({"dimensions": 3}, "dimensions"),
        ({"dimensions": [3]}, "dimensions"),
        ({"dimensions": []}, "0 dimensions"),
        ({"randomizers": {}}, "randomizers"),
        ({"randomizers": []}, "does not exist"),
    ],
)
def test_wrong_documents(mixed: Survey, change: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        Survey.from_json(tampered(mixed, change))
    assert "\n" not in str(caught.value)


def test_wrong_dimensions_and_tables(mixed: Survey) -> None:
    for change, message in [
        (first_dimension(mixed, randomizer=9), "randomizer = 9 does not exist"),
        (first_dimension(mixed, randomizer=None), "does not exist"),
        (first_dimension(mixed, randomizer=2), "cannot use randomizer 'choice'"),
        (first_dimension(mixed, low=200), "low = 200"),
        (first_dimension(mixed, name="pet"), "'pet' appears twice"),
        (first_randomizer(mixed, epsilon=0.8), "leaks a factor of 2.33"),
        (first_randomizer(mixed, decode=[0, 0, 1]), "not unbiased"),
        (first_randomizer(mixed, weights=[[1]]), "1 rows"),
    ]:
        with pytest.raises(FormatError, match=message):
            Survey.from_json(tampered(mixed, change))


def test_a_table_that_leaks_one_part_in_four_billion_is_refused(mixed: Survey) -> None:
    """The coin's column ratio is 3; declared at the float just below log 3 it must not load."""
    document = json.loads(mixed.to_json())
    below = math.log(3)
    while Fraction(below) and not _leaks(below):
        below = math.nextafter(below, 0.0)
    document["randomizers"][1]["epsilon"] = below
    document["fingerprint"] = fingerprint(document)
    with pytest.raises(FormatError, match="leaks a factor of 3"):
        Survey.from_json(json.dumps(document))
    document["randomizers"][1]["epsilon"] = math.nextafter(math.log(3), math.inf)
    document["fingerprint"] = fingerprint(document)
    assert Survey.from_json(json.dumps(document))


def _leaks(epsilon: float) -> bool:
    from hdr4me.channels.proof import exp_upper

    return exp_upper(epsilon) < 3


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
    with pytest.raises(FingerprintMismatch, match=mixed.fingerprint):
        Survey.load(tmp_path / "s.json")


@pytest.mark.parametrize(
    "change",
    [
        {"schema": [1]},
        {"epsilon": math.nan},
        {"epsilon": -1.0},
        {"epsilon": 10**400},
        {"n_sampled": 2.0},
        {"name": "\ud800"},
        {"assignment": (0, 1)},
        {"assignment": (0, 1, 3, 3, 3)},
        {"assignment": (0, 1, 0, 3)},
    ],
)
def test_wrong_parts(mixed: Survey, change: dict[str, Any]) -> None:
    parts = {
        "schema": mixed.schema,
        "epsilon": 12.0,
        "n_sampled": 2,
        "randomizers": mixed.randomizers,
        "assignment": (0, 1, 2, 3),
    }
    with pytest.raises(InvalidInput):
        Survey.from_tables(**{**parts, **change})  # type: ignore[arg-type]


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


def test_shared_tables(mixed: Survey) -> None:
    table: Randomizer = mixed.randomizers[0]
    schema = Schema([Numeric(f"x{j}", 0, 1) for j in range(300)])
    survey = Survey.from_tables(
        schema, epsilon=0.85, n_sampled=1, randomizers=(table,), assignment=(0,) * 300
    )
    assert survey.report_size == 3
    assert len(survey.to_json()) < 50_000


def test_a_repeated_field_is_refused(mixed: Survey) -> None:
    """Readers differ in which of two they take: a client elsewhere might see another epsilon."""
    text = mixed.to_json()
    with pytest.raises(FormatError, match="appears twice"):
        Survey.from_json('{"epsilon": 0.1, ' + text[1:])
