"""The canonical text follows RFC 8785."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdr4me.errors import InvalidInput
from hdr4me.survey.canonical import canonical, fingerprint, number

# Appendix B of RFC 8785: the double's bits and the text.
RFC_8785 = [
    ("0000000000000000", "0"),
    ("8000000000000000", "0"),
    ("0000000000000001", "5e-324"),
    ("8000000000000001", "-5e-324"),
    ("7fefffffffffffff", "1.7976931348623157e+308"),
    ("4340000000000000", "9007199254740992"),
    ("4430000000000000", "295147905179352830000"),
    ("44b52d02c7e14af5", "9.999999999999997e+22"),
    ("44b52d02c7e14af6", "1e+23"),
    ("444b1ae4d6e2ef4e", "999999999999999700000"),
    ("444b1ae4d6e2ef50", "1e+21"),
    ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
    ("3eb0c6f7a0b5ed8d", "0.000001"),
    ("41b3de4355555553", "333333333.3333332"),
    ("becbf647612f3696", "-0.0000033333333333333333"),
    ("43143ff3c1cb0959", "1424953923781206.2"),
]


@pytest.mark.parametrize(("bits", "text"), RFC_8785)
def test_numbers_of_the_rfc(bits: str, text: str) -> None:
    import struct

    assert number(struct.unpack(">d", bytes.fromhex(bits))[0]) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_parses_to_itself(x: float) -> None:
    assert float(number(x)) == x


def test_strings_keys_and_literals() -> None:
    text = canonical({"b": [None, True, False], "a": "\u20ac$\u000f\nA'B\"\\", "c": ()})
    assert text == '{"a":"€$\\u000f\\nA\'B\\"\\\\","b":[null,true,false],"c":[]}'


@pytest.mark.parametrize("bad", [math.nan, math.inf, 2**53 + 1, {1, 2}])
def test_what_has_no_form(bad: object) -> None:
    with pytest.raises(InvalidInput):
        canonical([bad])


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text('aé\n"'),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from("abc"), json_values))
def test_the_fingerprint_does_not_depend_on_spelling(document: dict[str, object]) -> None:
    respelt = json.loads(json.dumps(dict(reversed(document.items())), indent=2))
    assert fingerprint(respelt) == fingerprint(document)
