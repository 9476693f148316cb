"""Any value at all becomes a position; none raises."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdr4me.client.values import category, number, position
from hdr4me.survey import Categorical, Numeric
from hdr4me.survey.schema import NARROWEST

AGE = Numeric("age", 0, 120, default=40)
COLOUR = Categorical("colour", ["red", "1", "true"], default="1")


class Hostile:
    """Raises whatever is asked of it."""

    def __float__(self) -> float:
        raise RuntimeError("no")

    def __str__(self) -> str:
        raise RuntimeError("no")

    def __hash__(self) -> int:
        raise RuntimeError("no")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")


class HostileText(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __float__ = __hash__ = __str__  # type: ignore[assignment]


class HostileNumber(int):
    def __float__(self) -> float:
        raise OverflowError("no")

    def __gt__(self, other: object) -> bool:
        raise RuntimeError("no")

    def __int__(self) -> int:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (31, 31.0),
        (31.5, 31.5),
        (np.float32(31.5), 31.5),
        (Decimal("31.5"), 31.5),
        (Fraction(63, 2), 31.5),
        ("31.5", 31.5),
        (" 31 ", 31.0),
        (True, 1.0),
        (-1, 0.0),
        (121, 120.0),
        (math.inf, 120.0),
        (-math.inf, 0.0),
        ("inf", 120.0),
        (10**400, 120.0),
        (-(10**400), 0.0),
        (Decimal("1e999999"), 120.0),
        (None, 40.0),
        (math.nan, 40.0),
        ("nan", 40.0),
        (Decimal("sNaN"), 40.0),
        ("", 40.0),
        ("old", 40.0),
        (b"\xff", 40.0),
        (1j, 40.0),
        ([31], 40.0),
        ({}, 40.0),
        (np.array([1.0, 2.0]), 40.0),
        (Hostile(), 40.0),
        (HostileNumber(3), 40.0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_numbers(value: Any, expected: float) -> None:
    assert number(AGE, value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("red", 0),
        (1, 1),
        (1.0, 1),
        (np.int16(1), 1),
        (True, 2),
        ("true", 2),
        ("RED", 1),
        (None, 1),
        (math.nan, 1),
        (math.inf, 1),
        ([], 1),
        ({}, 1),
        (b"red", 1),
        (10**5000, 1),
        (Hostile(), 1),
        (HostileText("red"), 1),
        (HostileNumber(1), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_categories(value: Any, expected: int) -> None:
    assert category(COLOUR, value) == expected


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.decimals()
    | st.complex_numbers()
    | st.dates(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(anything, st.integers(2, 256))
def test_nothing_raises(value: Any, n_levels: int) -> None:
    assert 0 <= position(AGE, value, n_levels) <= (n_levels - 1) << 16
    assert 0 <= category(COLOUR, value) < 3


@given(
    st.floats(-1e300, 1e300),
    st.floats(1e-300, 1e300),
    st.floats(0, 1),
    st.integers(2, 256),
)
def test_positions_stay_inside_for_every_range(low: float, width: float, share: float, n_levels: int) -> None:
    high = low + width
    if not low < high < math.inf or high - low < NARROWEST:
        return
    dimension = Numeric("x", low, high)
    assert position(dimension, low, n_levels) == 0
    assert position(dimension, high, n_levels) == (n_levels - 1) << 16
    assert 0 <= position(dimension, low + share * (high - low), n_levels) <= (n_levels - 1) << 16


def test_the_position_is_the_level_and_its_fraction() -> None:
    assert position(Numeric("x", 0, 1), 0.3, 11) == 3 << 16
    assert position(Numeric("x", 0, 1), 0.35, 11) == (3 << 16) + (1 << 15)
