"""Vectors as a dimension: cleaned on the device, and in batch alike."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import hdr4me as hd
from hdr4me.channels import Input
from hdr4me.channels.codebook import Codebook
from hdr4me.engines import Local
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.io.quality import RecordsWarning, check_quality
from hdr4me.simulation.collection import simulate_tally

NAN, INF = math.nan, math.inf


class Awful:
    """Raises whatever is asked of it."""

    def __iter__(self):
        raise RuntimeError("no")

    def __eq__(self, other):
        raise RuntimeError("no")

    __hash__ = None


RAW: list = [
    [0.3, -0.4],
    [3.0, 4.0],
    [NAN, 0.5],
    [0.1, None],
    [INF, 0.2],
    [1e308, 1e308],
    [1e-320, 0.0],
    [NAN, None],
    [INF, NAN],
    [],
    [1.0],
    [1.0, 2.0, 3.0],
    None,
    [0.6, 0.8],
]


def test_values_are_cleaned() -> None:
    v = hd.Vector("v", 2)
    assert v.clean([0.3, -0.4]) == (0.3, -0.4)
    assert v.clean([3.0, 4.0]) == pytest.approx((0.6, 0.8))
    assert v.clean([NAN, 0.5]) == (0.0, 0.5)
    assert v.clean([INF, 0.2]) == (0.0, 0.2)
    assert v.clean([1e308, 1e308]) == pytest.approx((math.sqrt(0.5),) * 2)
    assert v.clean("0.3|-0.4") == (0.3, -0.4)
    assert v.clean("0.3|nonsense") == (0.3, 0.0)
    assert v.clean(np.array([0.3, -0.4], np.float32)) == pytest.approx((0.3, -0.4))
    for wrong in (None, 3, "", b"ab", {1: 2, 3: 4}, [1.0], [1, 2, 3], Awful(), "1|2|3", object()):
        assert v.clean(wrong) == (0.0, 0.0)
    assert hd.Vector("v", 1, norm=2).clean([-7]) == (-2.0,)


@pytest.mark.parametrize("raw", [*RAW, Awful(), "1|2"])
def test_a_place_is_the_cleaned_vector(raw) -> None:
    v = hd.Vector("v", 2, norm=0.5)
    family = Codebook(2, 16, 1)
    place = v.encode(raw, family.inputs[0].size)
    assert place & 0xFFFF == 0
    assert family.vector(place >> 16) == pytest.approx([x / 0.5 for x in v.clean(raw)], abs=2**-20)
    assert v.fits(family.inputs[0])
    assert not v.fits(Input("vector", 1 << 20))


@pytest.mark.parametrize("raw", [*RAW, [NAN, NAN], "|", Awful(), "1|2", iter([0.1, 0.2])])
def test_an_optional_vector_has_one_coordinate_more(raw) -> None:
    v = hd.Vector("v", 2, norm=0.5, optional=True)
    family = Codebook(3, 16, 1)
    if not hasattr(raw, "__next__"):
        numbers = v.numbers(raw)
        there = numbers is not None and not all(map(math.isnan, numbers))
        point = [*(x / 0.5 for x in v.clean(raw)), 0.0 if there else -1.0]
        assert v.point(raw) == point
        assert math.hypot(*point) <= 1 + 1e-12
    else:
        point = [0.2, 0.4, 0.0]  # read once
    place = v.encode(raw, family.inputs[0].size)
    assert place & 0xFFFF == 0
    assert family.vector(place >> 16) == pytest.approx(point, abs=2**-20)
    assert v.fits(family.inputs[0])
    assert not v.fits(Codebook(2, 16, 1).inputs[0])
    assert not hd.Vector("v", 2, norm=0.5).fits(family.inputs[0])


def counted_one_by_one(v: hd.Vector, rows: list) -> tuple[int, int, int, int]:
    """Missing, a wrong length or a coordinate that is no number, never low, and longer than the norm."""
    missing = unknown = long = 0
    for row in rows:
        found = v.numbers(row)
        none = row is None or row == ""
        none = none or (v.optional and found is not None and all(map(math.isnan, found)))
        missing += none
        unknown += not none and (found is None or any(map(math.isnan, found)))
        long += math.hypot(*(0.0 if math.isnan(x) else x for x in found or [])) > v.norm * (1 + 1e-12)
    return missing, unknown, 0, long


@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("kind", ["lists", "large", "fixed", "texts", "ints", "inner texts"])
def test_batches_are_cleaned_as_devices_do(kind: str, optional: bool) -> None:
    v = hd.Vector("v", 2, optional=optional)
    rows: list = list(RAW)
    if kind == "fixed":
        rows = [row for row in RAW if row is None or len(row) == 2]
        column = pa.array(rows, pa.list_(pa.float64(), 2))
    elif kind == "texts":
        rows = [None if row is None else "|".join("?" if x is None else repr(x) for x in row) for row in RAW]
        column = pa.array(rows, pa.string())
    elif kind == "ints":
        rows = [[1, 0], None, [0, None], [2, 0], [1]]
        column = pa.array(rows, pa.list_(pa.int32()))
    elif kind == "inner texts":
        rows = [["1", "0"], None, ["", None], ["0.1", "?"], ["1"], [], ["3", "4"], ["x", "y"], ["0", "0"]]
        column = pa.array(rows, pa.list_(pa.string()))
    else:
        column = pa.array(rows, pa.list_(pa.float64()) if kind == "lists" else pa.large_list(pa.float32()))
        rows = column.to_pylist()
    for start, n in ((0, len(rows)), (2, 7)):
        part, own = column.slice(start, n), rows[start : start + n]
        found = v.clean_column([part], 0)
        assert found.points == pytest.approx(np.array([v.point(row) for row in own]), abs=2**-20)
        assert found.counts() == counted_one_by_one(v, own)


def test_the_data_quality_report_of_vectors() -> None:
    survey = hd.Survey(hd.Schema([hd.Vector("v", 2)]), epsilon=4.0)
    rows = [[0.1, 0.2]] * 60 + [[3.0, 4.0]] * 20 + [[1.0]] * 10 + [None] * 10
    table = pa.table({"v": pa.array(rows, pa.list_(pa.float64()))})
    quality = Local().data_quality(table, survey)
    assert quality.rows() == [
        {"column": "v", "read": 100, "missing": 10, "unknown": 10, "low": 0, "high": 20}
    ]
    notes = quality.notes()
    assert len(notes) == 3
    assert "20 of 100 values (20 %) are longer than 1 and are scaled to that norm" in " ".join(notes)
    assert "are not lists of 2 numbers and count as 0 if the length is wrong" in " ".join(notes)
    with pytest.raises(
        InvalidInput, match=r"10 of 100 values .* are not lists of 2 numbers, and the schema declares"
    ):
        Local().table(table, survey)
    with pytest.warns(RecordsWarning, match="column 'v'"):
        Local().table(table, survey, on_quality=lambda found: check_quality(found, allow_unusable=True))
    long = pa.table({"v": pa.array([[3.0, 4.0]] * 5, pa.list_(pa.float64()))})
    assert not Local().data_quality(long, survey).unusable()
    wrong = pa.table({"v": pa.array([[3.0]] * 5, pa.list_(pa.float64()))})
    assert Local().data_quality(wrong, survey).unusable()


def test_what_cannot_hold_vectors() -> None:
    survey = hd.Survey(hd.Schema([hd.Vector("v", 3)]), epsilon=4.0)
    with pytest.raises(InvalidInput, match="lists of numbers"):
        next(Local().reports(pa.table({"v": [1.0]}), survey))
    with pytest.raises(InvalidInput, match="lists of numbers"):
        next(Local().reports(pa.table({"v": pa.array([[[1.0]]])}), survey))
    with pytest.raises(InvalidInput, match=r"expected \(n, 3\)"):
        next(Local().reports(np.zeros((4, 2)), survey))
    both = hd.Survey(hd.Schema([hd.Vector("v", 3), hd.Numeric("x", 0, 1)]), epsilon=4.0, mechanism="duchi")
    with pytest.raises(InvalidInput, match="not both"):
        next(Local().reports(np.zeros((4, 4)), both))


def test_a_plan_says_the_error_of_vectors() -> None:
    """The standard error is that of simulated collections within 15 %: seeds 0 to 39, a mean of 2,000 squares."""
    schema = hd.Schema([hd.Vector("move", 50, 2.0)])
    truth = np.zeros(50)
    truth[:4] = 1.0  # of norm 2
    best = hd.plan(schema=schema, users=400, epsilon=4.0, prior={"move": [truth.tolist()]}).best
    table = pa.table({"move": pa.array([truth.tolist()] * 400)})
    errors = [simulate_tally(table, best.survey(), seed=s).estimate().value - truth for s in range(40)]
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(best.errors["coordinate of move"], rel=0.15)


def test_wrong_declarations() -> None:
    for length in (0, 4097, 2.0, True, "3"):
        with pytest.raises(InvalidInput, match="length"):
            hd.Vector("v", length)
    for norm in (0, -1, NAN, INF, "1"):
        with pytest.raises(InvalidInput, match="norm"):
            hd.Vector("v", 2, norm)
    with pytest.raises(InvalidInput, match="name"):
        hd.Vector("", 2)
    schema = hd.Schema([hd.Vector("v", 2, 3)])
    assert hd.Schema.from_dict(schema.to_dict()) == schema
    assert hd.Schema.from_dict({"dimensions": [{"name": "v", "type": "vector", "length": 2}]})[
        "v"
    ].bounds == (-1.0, 1.0)
    with pytest.raises(FormatError, match="fields"):
        hd.Schema.from_dict({"dimensions": [{"name": "v", "type": "vector"}]})


def test_declarations_of_optional_vectors() -> None:
    v = hd.Vector("g", 2, 3.0, optional=True)
    item = {"name": "g", "type": "vector", "length": 2, "norm": 3.0, "optional": True}
    assert v.to_dict() == item
    assert hd.Schema.from_dict({"dimensions": [item]})["g"] == v != hd.Vector("g", 2, 3.0)
    assert "optional" not in hd.Vector("g", 2, optional=False).to_dict()
    assert (v.n_asked, hd.Vector("g", 2).n_asked) == (3, 2)
    for wrong in (1, "yes", None):
        with pytest.raises(InvalidInput, match=r"'g': optional = .* must be true or false"):
            hd.Vector("g", 2, optional=wrong)
    assert hd.Vector("g", 4095, optional=True).n_asked == 4096
    with pytest.raises(InvalidInput, match=r"from 1 to 4095 \(an optional vector uses one more coordinate"):
        hd.Vector("g", 4096, optional=True)


def test_an_optional_vector_in_a_schema_file(tmp_path) -> None:
    text = '[[dimensions]]\nname = "g"\ntype = "vector"\nlength = 2\noptional = true\n'
    (tmp_path / "schema.toml").write_text(text)
    assert hd.Schema.load(tmp_path / "schema.toml")["g"] == hd.Vector("g", 2, optional=True)
