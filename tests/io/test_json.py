"""JSON reports: one spelling of the content, everything checked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdr4me.errors import FingerprintMismatch, FormatError
from hdr4me.io import Reason, Report
from hdr4me.io.report import decode, inspect
from hdr4me.survey import Survey


@pytest.fixture(scope="session")
def report(mixed: Survey) -> Report:
    return Report(mixed.fingerprint, ((0, 2), (3, 1, 0, 1)))


def test_round_trip(mixed: Survey, report: Report) -> None:
    assert decode(report.to_json(), mixed) == report


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format": "x"}, Reason.MALFORMED),
        ({"version": 2}, Reason.VERSION),
        ({"version": 1.0}, Reason.VERSION),
        ({"version": True}, Reason.VERSION),
        ({"extra": 1}, Reason.MALFORMED),
        ({"survey": "ab"}, Reason.FOREIGN),
        ({"survey": None}, Reason.FOREIGN),
        ({"answers": None}, Reason.MALFORMED),
        ({"answers": [[0, 9], [1, 1]]}, Reason.CODE),
    ],
)
def test_wrong_fields(mixed: Survey, report: Report, change: dict[str, Any], reason: Reason) -> None:
    text = json.dumps({**json.loads(report.to_json()), **change})
    assert inspect(text, mixed) is reason
    with pytest.raises(FormatError):
        decode(text, mixed)


def test_another_survey_is_named(mixed: Survey, other: Survey, report: Report) -> None:
    with pytest.raises(FingerprintMismatch, match=mixed.fingerprint[:12]) as caught:
        decode(report.to_json(), other)
    assert (caught.value.expected, caught.value.found) == (other.fingerprint, mixed.fingerprint)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "[" * 100_000, b"\xff", '{"a":1,"a":2}', "9" * 5000])
def test_not_a_report(mixed: Survey, text: str | bytes) -> None:
    assert inspect(text, mixed) is Reason.MALFORMED


def test_a_report_with_a_repeated_field_is_refused(mixed: Survey, report: Report) -> None:
    text = report.to_json()
    assert inspect(text[:-1] + ',"version":1}', mixed) is Reason.MALFORMED


@given(st.data())
def test_mutated_text_never_raises(mixed: Survey, report: Report, data: st.DataObject) -> None:
    text = bytearray(report.to_json().encode())
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    found = inspect(bytes(text), mixed)
    assert isinstance(found, Report | Reason)
