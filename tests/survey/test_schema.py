"""The schema: what may be asked, from Python, JSON and TOML."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdr4me.errors import FormatError, InvalidInput
from hdr4me.survey import Categorical, Numeric, Schema
from hdr4me.survey.categorical import MAX_CATEGORIES
from hdr4me.survey.values import label


def test_a_default_is_declared_or_there_is_none() -> None:
    """Where missing values are allowed nevertheless, they count as the middle or the first category."""
    assert Numeric("age", 20, 40).default is None
    assert Numeric("age", 20, 40).fallback == 30
    assert Categorical("colour", ["red", "blue"]).default is None
    assert Categorical("colour", ["red", "blue"]).fallback == "red"
    assert "default" not in Numeric("age", 20, 40).to_dict()
    assert "default" not in Categorical("colour", ["red", "blue"]).to_dict()
    assert Numeric("age", 20, 40, default=20).default == 20
    assert Categorical("colour", ["red", "blue"], default="blue").default == "blue"


def test_numpy_scalars_are_numbers() -> None:
    assert Numeric("age", np.int64(0), np.float32(2)) == Numeric("age", 0.0, 2.0)


@pytest.mark.parametrize(
    ("low", "high", "default"),
    [
        (1, 1, None),
        (2, 1, None),
        (math.nan, 1, None),
        (0, math.inf, None),
        (-1.7e308, 1.7e308, None),
        ("0", 1, None),
        (True, 2, None),
        (0, 10**400, None),
        (None, 1, None),
        (0, 1, 2),
        (0, 1, math.nan),
        (0, 1, "x"),
    ],
)
def test_a_range_must_be_finite_and_hold_its_default(low: object, high: object, default: object) -> None:
    with pytest.raises(InvalidInput, match="'age'"):
        Numeric("age", low, high, default)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("categories", "default"),
    [
        ([], None),
        (["one"], None),
        (["a", "a"], None),
        ("abc", None),
        (7, None),
        (["a", None], None),
        (["a", "\ud800"], None),
        (["a", "b"], "c"),
        (["a", "b"], 1.5),
        ([str(i) for i in range(MAX_CATEGORIES + 1)], None),
    ],
)
def test_categories_must_be_distinct_strings(categories: object, default: object) -> None:
    with pytest.raises(InvalidInput, match="'colour'"):
        Categorical("colour", categories, default)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", None, 3, "\udfff"])
def test_a_name_is_a_string_that_is_not_empty(name: object) -> None:
    with pytest.raises(InvalidInput, match="name"):
        Numeric(name, 0, 1)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="name"):
        Categorical(name, ["a", "b"])  # type: ignore[arg-type]


def test_names_differ_and_a_schema_is_not_empty() -> None:
    with pytest.raises(InvalidInput, match="'a' appears twice"):
        Schema([Numeric("a", 0, 1), Categorical("a", ["x", "y"])])
    with pytest.raises(InvalidInput, match="0 dimensions"):
        Schema([])
    with pytest.raises(InvalidInput, match="65537 dimensions"):
        Schema([Numeric(str(i), 0, 1) for i in range(65537)])
    with pytest.raises(InvalidInput, match="not a dimension"):
        Schema(["age"])  # type: ignore[list-item]


def test_dimensions_are_found_by_name() -> None:
    schema = Schema([Numeric("a", 0, 1), Numeric("b", 0, 2)])
    assert schema.index("b") == 1
    assert schema["b"].high == 2  # type: ignore[attr-defined]
    assert [dimension.name for dimension in schema] == ["a", "b"]
    assert repr(schema).startswith("Schema([Numeric(name='a'")
    assert len({schema, Schema(schema.dimensions)}) == 1
    with pytest.raises(InvalidInput, match="'c'"):
        schema.index("c")


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
numeric = st.builds(
    lambda name, low, width: Numeric(name, low, low + width, low),
    texts,
    st.floats(-1e9, 1e9),
    st.floats(1e-3, 1e9),
)
categorical = st.builds(Categorical, texts, st.lists(texts, min_size=2, max_size=5, unique=True))


@given(st.lists(numeric | categorical, min_size=1, max_size=6, unique_by=lambda dimension: dimension.name))
def test_a_schema_survives_json(dimensions: list[Numeric | Categorical]) -> None:
    schema = Schema(dimensions)
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


def test_json_and_toml_files(tmp_path) -> None:
    expected = Schema([Numeric("age", 0, 120), Categorical("smoker", ["no", "yes"], default="yes")])
    (tmp_path / "s.toml").write_text(
        '[[dimensions]]\nname = "age"\nlow = 0\nhigh = 120\n'
        '[[dimensions]]\nname = "smoker"\ncategories = ["no", "yes"]\ndefault = "yes"\n'
    )
    (tmp_path / "s.json").write_text(json.dumps(expected.to_dict()))
    assert Schema.load(tmp_path / "s.toml") == expected
    assert Schema.load(tmp_path / "s.json") == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1, 2",
        "[]",
        "[" * 100_000,
        '{"dimensions": 3}',
        '{"dimensions": [3]}',
        '{"dimensions": [], "more": 1}',
        '{"dimensions": [{"name": "a", "low": 0}]}',
        '{"dimensions": [{"name": "a", "low": 0, "high": 1, "hihg": 2}]}',
        '{"dimensions": [{"name": "a", "type": "date"}]}',
        '{"dimensions": [{"name": "a", "type": []}]}',
        '{"dimensions": [{"name": "a", "low": 2, "high": 1}]}',
    ],
)
def test_a_bad_file_is_one_plain_line(tmp_path, text: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=r"s\.json is not a schema") as caught:
        Schema.load(path)
    assert "\n" not in str(caught.value)


def test_bytes_that_are_not_text(tmp_path) -> None:
    (tmp_path / "s.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FormatError, match="not a schema"):
        Schema.load(tmp_path / "s.toml")


def test_labels_of_numpy_numbers() -> None:
    assert label(np.int64(3)) == "3"
    assert label(np.float64(3.0)) == "3"
    assert label(1e300) is None


def test_a_range_too_narrow_for_floats_is_refused() -> None:
    with pytest.raises(InvalidInput, match="high - low = 1e-300 must be at least"):
        Numeric("x", 0, 1e-300)


def test_numpy_scalars_name_categories_as_plain_ones_do() -> None:
    values = (np.bool_(True), np.float32(3.0), np.float16(3), np.int8(3), np.str_("red"))
    assert [label(value) for value in values] == ["true", "3", "3", "3", "red"]
