"""One report: the reference validator and the binary form."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdr4me.channels import KSubset
from hdr4me.channels.k_subset import heaviest
from hdr4me.channels.subset import Subset
from hdr4me.errors import FormatError
from hdr4me.io import Reason, Rejected, Report, refuse
from hdr4me.io.report import fault, pack, unpack
from hdr4me.survey import Categorical, Question, Schema, Survey


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([[0, 2], [3, 1, 0, 1]], None),
        (((0, 2), (1, 1)), None),
        (None, Reason.MALFORMED),
        ("ab", Reason.MALFORMED),
        ([[0, 2], 3], Reason.MALFORMED),
        ([[0, 2.0], [1, 1]], Reason.MALFORMED),
        ([[0, True], [1, 1]], Reason.MALFORMED),
        ([], Reason.SIZE),
        ([[0, 2]], Reason.SIZE),
        ([[0, 2], [1, 1], [2, 1]], Reason.SIZE),
        ([[], [1, 1]], Reason.SIZE),
        ([[0], [1, 1]], Reason.SIZE),
        ([[0, 2, 0], [1, 1]], Reason.SIZE),
        ([[0, 2], [3, 1, 0]], Reason.SIZE),
        ([[0, 2], [4, 1]], Reason.DIMENSION),
        ([[-1, 2], [1, 1]], Reason.DIMENSION),
        ([[1, 1], [1, 1]], Reason.ORDER),
        ([[1, 1], [0, 1]], Reason.ORDER),
        ([[0, 3], [1, 1]], Reason.CODE),
        ([[0, 2], [1, -1]], Reason.CODE),
        ([[0, 2], [3, 0, 2, 0]], Reason.CODE),
    ],
)
def test_faults(mixed: Survey, answers: Any, reason: Reason | None) -> None:
    assert fault(answers, mixed) is reason


def test_the_binary_form(mixed: Survey) -> None:
    report = Report(mixed.fingerprint, ((1, 1), (3, 1, 0, 1)))
    assert report.to_bytes(mixed) == b"\x01\x00\x01\x03\x00\x01\x00\x01"  # nothing is padded on the wire
    in_memory = pack(report.answers, mixed)
    assert in_memory == b"\x01\x00\x01\x00\x00\x03\x00\x01\x00\x01"
    assert unpack(in_memory, mixed) == report.answers


def test_wide_fields_stand_little_end_first() -> None:
    """A set of 3 of 1000 categories: six bytes; the encoding is unique."""
    channel = KSubset("subset", 1.0, Subset(1000, 3), heaviest(1.0, Subset(1000, 3)))
    survey = Survey.from_questions(
        Schema([Categorical("town", range(1000))]),
        epsilon=1.0,
        sampled=1,
        questions=[Question((0,), channel)],
    )
    data = Report(survey.fingerprint, ((0, 1, 258, 999),)).to_bytes(survey)
    assert data == bytes([0, 0, 1, 0, 2, 1, 0xE7, 3])
    assert unpack(data, survey) == ((0, 1, 258, 999),)
    for numbers, reason in (((1, 1, 2), "code"), ((2, 1, 3), "code"), ((1, 2, 1000), "code")):
        body = b"".join(x.to_bytes(2, "little") for x in numbers)
        with pytest.raises(FormatError, match=reason):
            unpack(b"\0\0" + body, survey)
    assert fault(((0, 1, 2),), survey) is Reason.SIZE


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "0 bytes"),
        (b"\0" * 11, "11 bytes"),
        (b"\x01\x00\x01\x00\x00\x04\x00\x01\x00\x01", "unknown dimension"),
        (b"\x01\x00\x01\x00\x01\x03\x00\x01\x00\x01", "trailing bytes"),
        (b"\x01\x00\x02\x00\x00\x03\x00\x01\x00\x01", "code out of support"),
        (b"\x01\x00\x01\x00\x00\x01\x00\x01\x00\x00", "not distinct"),
    ],
)
def test_broken_bytes(mixed: Survey, data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        unpack(data, mixed)


@given(st.binary(min_size=10, max_size=10) | st.lists(st.integers(0, 3), min_size=10, max_size=10).map(bytes))
def test_bytes_have_one_interpretation(mixed: Survey, data: bytes) -> None:
    """What can be read is written as the same bytes: nothing hides in a report."""
    try:
        answers = unpack(data, mixed)
    except FormatError:
        return
    assert pack(answers, mixed) == data


def test_every_reason_has_words() -> None:
    assert len({reason.text for reason in Reason}) == len(Reason)


def test_the_numbers_are_the_kernels() -> None:
    from hdr4me.kernels.exact import count

    assert Reason.DIMENSION == count.BAD_DIMENSION
    assert Reason.ORDER == count.NOT_INCREASING
    assert Reason.CODE == count.BAD_CODE
    assert Reason.PADDING == count.BAD_PADDING


def test_strictness_says_where() -> None:
    with pytest.raises(FormatError, match=r"row 3: code out of support: x{77}\.\.\.$"):
        refuse(Rejected(Reason.CODE, "row 3", "x" * 100))


def test_unknown_names_of_the_package() -> None:
    import hdr4me.io

    name = "nothing"
    with pytest.raises(AttributeError, match=name):
        getattr(hdr4me.io, name)
