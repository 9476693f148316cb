"""Any value at all becomes a place among the inputs; none raises."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdr4me.channels import Input
from hdr4me.client import Client
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.survey import DIMENSIONS, Categorical, Dimension, Numeric, Schema, Survey
from hdr4me.survey.dimension import dimension_from_dict
from hdr4me.survey.numeric import NARROWEST
from hdr4me.tally import Tally

AGE = Numeric("age", 0, 120, default=40)
WEIGHT = Numeric("weight", 0, 200, optional=True)
COLOR = Categorical("colour", ["red", "1", "true"], default="1")


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
    assert AGE.clean(value) == expected


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
    assert COLOR.clean(value) == expected


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
    assert 0 <= AGE.encode(value, n_levels) <= (n_levels - 1) << 16
    assert 0 <= COLOR.clean(value) < 3
    assert COLOR.encode(value, 3) == COLOR.clean(value) << 16
    assert 0 <= WEIGHT.encode(value, n_levels + 1) <= n_levels << 16


@given(
    st.floats(-1e300, 1e300),
    st.floats(1e-300, 1e300),
    st.floats(0, 1),
    st.integers(2, 256),
)
def test_places_stay_inside_for_every_range(low: float, width: float, share: float, n_levels: int) -> None:
    high = low + width
    if not low < high < math.inf or high - low < NARROWEST:
        return
    dimension = Numeric("x", low, high)
    assert dimension.encode(low, n_levels) == 0
    assert dimension.encode(high, n_levels) == (n_levels - 1) << 16
    assert 0 <= dimension.encode(low + share * (high - low), n_levels) <= (n_levels - 1) << 16


def test_a_place_is_a_level_and_its_fraction() -> None:
    assert Numeric("x", 0, 1).encode(0.3, 11) == 3 << 16
    assert Numeric("x", 0, 1).encode(0.35, 11) == (3 << 16) + (1 << 15)


@pytest.mark.parametrize("value", [None, math.nan, "", "nan", "heavy", Hostile(), [70]])
def test_no_value_of_an_optional_number_is_the_last_input(value: Any) -> None:
    assert WEIGHT.encode(value, 6) == 5 << 16


@pytest.mark.parametrize(("value", "place"), [(0, 0), (200, 4), (math.inf, 4), (-1, 0), ("50", 1), (75, 1.5)])
def test_a_value_of_an_optional_number_is_a_level(value: Any, place: float) -> None:
    assert WEIGHT.encode(value, 6) == place * 65536


def test_what_a_channel_must_take() -> None:
    assert [x.input_kind for x in (AGE, WEIGHT, COLOR)] == ["number", "optional", "category"]
    assert AGE.fits(Input("number", 2))
    assert AGE.fits(Input("number", 200))
    assert not AGE.fits(Input("optional", 200))
    assert not WEIGHT.fits(Input("number", 200))
    assert COLOR.fits(Input("category", 3))
    assert not COLOR.fits(Input("category", 4))
    assert not COLOR.fits(Input("number", 3))


def test_optional_survives_the_document() -> None:
    for dimension in (AGE, WEIGHT, COLOR):
        assert dimension_from_dict(dimension.to_dict()) == dimension
    assert "optional" not in AGE.to_dict()
    with pytest.raises(InvalidInput, match="optional = 1 must be true or false"):
        Numeric("x", 0, 1, optional=1)  # type: ignore[arg-type]


class Place(Dimension):
    """A dimension of another package: one of the four quarters of a town, from a street number."""

    kind = "place"
    categories = ("north", "east", "south", "west")
    input_kind = "category"

    def __init__(self, name: str) -> None:
        self.name = name

    def encode(self, value: Any, size: int) -> int:
        return (value % 4 if isinstance(value, int) else 0) << 16

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "type": self.kind}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Place:
        return cls(**fields)


def test_a_dimension_of_another_package() -> None:
    """It registers in one line; surveys, documents and clients then know it."""
    with pytest.raises(FormatError, match="must be one of numeric, categorical"):
        dimension_from_dict({"name": "home", "type": "place"})
    DIMENSIONS.register("place", Place)
    try:
        survey = Survey(Schema([Place("home"), AGE]), epsilon=20.0, mechanism="duchi", sampled=2)
        assert Survey.from_json(survey.to_json()) == survey
        reports = [Client(survey).report({"home": 6, "age": 3}) for _ in range(200)]
        # At epsilon 10 another category than the true one is sent less than once in 7000 times.
        assert sum(report.answers[0] == (0, 2) for report in reports) > 190
        assert Tally(survey).add(reports).estimate().frequencies("home").categories == Place.categories
    finally:
        DIMENSIONS.remove("place")


def test_a_masked_value_is_missing_without_a_warning() -> None:
    np = pytest.importorskip("numpy")
    assert Numeric("age", 0, 120, default=40).clean(np.ma.masked) == 40.0
