"""A product of two numbers as a question: what it is, its document, and the same places on every way."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import hdr4me as hd
from hdr4me.channels.response import Records
from hdr4me.engines import Local
from hdr4me.engines.general import _places, _ranges
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.io.columns import from_batch, from_matrix

NUMBERS = [hd.Numeric("a", 0, 10, default=1), hd.Numeric("b", -1, 3)]
SCHEMA = hd.Schema([*NUMBERS, hd.Product("a × b", ["a", "b"])])


def test_the_product_is_taken_from_the_middles_of_both_ranges():
    product = SCHEMA["a × b"]
    assert isinstance(product, hd.Product)
    assert product.bounds == (-10.0, 10.0)
    assert product.input_kind == "number"
    assert SCHEMA.columns == ("a", "b")
    assert product.clean((10, 3)) == 1.0
    assert product.clean((7, 2)) == pytest.approx((7 - 5) * (2 - 1) / 10)
    assert product.clean((99, "3")) == 1.0  # cleaned as their own dimensions clean them
    assert product.clean((None, 3)) == pytest.approx((1 - 5) * (3 - 1) / 10)
    assert product.clean("no pair") == product.clean((None, None))
    assert [product.encode(pair, 17) for pair in ((0, 3), (5, 1), (10, 3))] == [0, 8 << 16, 16 << 16]


def test_a_half_place_is_rounded_to_the_even_one():
    """The rule that clients in other languages follow: round((x + 1)/2·(L − 1)·2^16), a half to the even number."""
    schema = hd.Schema([hd.Numeric("a", -1, 1), hd.Numeric("b", -1, 1), hd.Product("p", ["a", "b"])])
    x = 1 / 65536  # (x + 1)/2·65536 = 32768.5
    assert schema["p"].encode((x, 1.0), 2) == 32768
    assert schema["p"].encode((3 * x, 1.0), 2) == 32770


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_every_way_gives_the_client_s_places(epsilon):
    """Files, tables and matrices: within one 65,536th of a level of what a device computes."""
    survey = hd.Survey(SCHEMA, epsilon)
    rng = np.random.default_rng(1)
    a, b = rng.uniform(-1, 12, 50), rng.uniform(-2, 4, 50)
    a[3] = np.nan
    size = survey.questions[2].channel.inputs[0].size
    own = [
        SCHEMA["a × b"].encode(SCHEMA["a × b"].value_in({"a": x, "b": y}), size)
        for x, y in zip(a, b, strict=True)
    ]
    batch = pa.RecordBatch.from_pydict({"a": pa.array(a, from_pandas=True), "b": [str(y) for y in b]})
    dims = np.full((50, 1), 2)
    for source in (from_batch(batch, survey), from_matrix(np.stack([a, b], axis=1), survey)):
        places = _places(Records(source.columns, {}, _ranges(survey)), dims)[:, 0]
        assert np.abs(places - np.array(own)).max() <= 1


def test_the_document_has_it_and_a_person_may_leave_the_type_out():
    survey = hd.Survey(SCHEMA, 2.0)
    document = json.loads(survey.to_json())
    assert document["dimensions"][2] == {"name": "a × b", "type": "product", "product": ["a", "b"]}
    assert hd.Survey.from_json(survey.to_json()) == survey
    plain = {
        "dimensions": [{"name": n, "low": 0, "high": 1} for n in "ab"]
        + [{"name": "p", "product": ["b", "a"]}]
    }
    assert isinstance(hd.Schema.from_dict(plain)["p"], hd.Product)
    wrong = {"dimensions": [{"name": "p", "product": ["b", "a"], "low": 0}]}
    with pytest.raises(FormatError, match="has fields"):
        hd.Schema.from_dict(wrong)


@pytest.mark.parametrize(
    ("dimensions", "words"),
    [
        (
            [*NUMBERS, hd.Product("p", ["a", "c"])],
            "product of 'c' is not possible: no dimension has that name",
        ),
        (
            [*NUMBERS, hd.Categorical("c", ["x", "y"]), hd.Product("p", ["a", "c"])],
            "must be a number that is not optional",
        ),
        ([NUMBERS[0], hd.Numeric("o", 0, 1, optional=True), hd.Product("p", ["a", "o"])], "not optional"),
    ],
)
def test_what_cannot_be_multiplied_says_why(dimensions, words):
    with pytest.raises(InvalidInput, match=words):
        hd.Schema(dimensions)


@pytest.mark.parametrize("names", ["ab", ["a"], ["a", "a"], ["a", "p"], 3])
def test_a_product_names_two_other_dimensions(names):
    with pytest.raises(InvalidInput, match="must"):
        hd.Product("p", names)
    with pytest.raises(InvalidInput, match="must be in a schema"):
        _ = hd.Product("p", ["a", "b"]).bounds


def test_records_need_no_column_for_a_product():
    survey = hd.Survey(SCHEMA, 2.0)
    records = pa.table({"a": [1.0, 2.0, 3.0], "b": [0.0, 1.0, 2.0]})
    rows = Local(threads=1).data_quality(records, survey).rows()
    assert [row["column"] for row in rows] == ["a", "b", "a × b"]
    assert rows[2] == {"column": "a × b", "read": 3, "missing": 0, "unknown": 0, "low": 0, "high": 0}
    assert sum(len(block) for block in Local(threads=1).reports(records, survey)) == 3
    with pytest.raises(InvalidInput, match=r"expected \(n, 2\)"):
        list(Local(threads=1).reports(np.zeros((3, 3)), survey))
    assert len(hd.Client(survey).report({"a": 3, "b": 1}).answers) == 1
