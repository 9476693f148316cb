"""Dimensions that are computed on the device: buckets of a number, combinations of categories."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chisquare

import hdr4me as hd
from hdr4me import checks
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.survey import Dimension, Schema
from hdr4me.survey.derived import Bucket, Hash, Joint, Outer, Prefix
from hdr4me.survey.dimension import dimension_from_dict
from hdr4me.survey.values import as_number

SEX = hd.Categorical("sex", ["f", "m"])
AGE = Bucket("age", [0, 18, 65, 120])
BOTH = Joint("who", [SEX, AGE])
WORD = Hash("word", 16, seed=7, default="none")
AREA = Prefix("area", [hd.Categorical("zip", ["10", "12", "20"], default="20")], length=2)
FIRST = Prefix("first", [Hash("text", 8, column="word", default="?")], length=1)
MOMENTS = Outer(
    "moments", [hd.Numeric("x", -5, 10, default=1), hd.Numeric("y", 0, 4, default=2)], [2, 1], [4, 1.5], 3
)
TEXTS = [
    None,
    "",
    " ",
    "apple",
    "Apple",
    "10115",
    "ä",
    "a\u0308",
    3,
    3.0,
    2.5,
    1e-7,
    True,
    math.nan,
    "\ud800",
    "\ufffd",
]
VALUES = [None, "", math.nan, -5, 0, 17.999, 18, "64.9", 65, 120, 1e9, "old", True, [], "m", "f", "x"]


@pytest.mark.parametrize(
    ("value", "bucket"),
    [(0, 0), (17.999, 0), (18, 1), (65, 2), (120, 2), (-1, 0), (121, 2), ("64.9", 1), (None, 1)],
)
def test_a_bucket_includes_its_lower_edge(value: Any, bucket: int) -> None:
    assert AGE.encode(value, 3) >> 16 == bucket


@pytest.mark.parametrize(
    "text", ["\x1c20", "20\x1f", "\x8520", "\u200920", "-0.0", "17.999999999999999", " TRUE\x1c"]
)
def test_a_number_in_a_text_is_the_same_on_a_device_and_in_a_file(text: str) -> None:
    column = AGE.clean_column([pa.array([text, "old"])], 3)
    assert column.lut is not None
    assert column.lut[column.array[0].as_py()] == AGE.encode(text, 3) >> 16
    numbers = hd.Numeric("age", 0, 120).clean_column([pa.array([text, "old"])], 2)
    assert numbers.array[0].as_py() == as_number(text)


def test_buckets_have_different_names() -> None:
    assert Bucket("id", np.array([0, 1234567, 1234568])).categories == ("0 to 1234567", "1234567 to 1234568")
    assert Bucket("x", [-0.1, 0, 1e-7, 1e300]).categories == ("-0.1 to 0", "0 to 1e-07", "1e-07 to 1e+300")


def test_a_declared_default_replaces_a_missing_number() -> None:
    assert Bucket("age", [0, 18, 120], default=3).encode(None, 2) >> 16 == 0


def test_a_combination_is_numbered_with_the_last_part_fastest() -> None:
    assert BOTH.categories == tuple(f"{s} × {a}" for s in SEX.categories for a in AGE.categories)
    for s, sex in enumerate("fm"):
        for a, age in enumerate((3, 30, 90)):
            assert BOTH.encode((sex, age), 6) >> 16 == 3 * s + a
    assert BOTH.columns == ("sex", "age")


@pytest.mark.parametrize(
    "dimension", [AGE, BOTH, Bucket("group", [0, 1, 2], column="x"), WORD, AREA, FIRST, MOMENTS]
)
def test_the_document_is_read_back(dimension: Dimension) -> None:
    assert dimension_from_dict(dimension.to_dict()) == dimension


@pytest.mark.parametrize("dimension", [AGE, Bucket("group", [0, 18, 120], column="age"), WORD, AREA, FIRST])
def test_the_contract_of_a_dimension(dimension: Dimension) -> None:
    checks.check_dimension(dimension, VALUES)


def test_a_column_is_cleaned_by_the_rule_of_one_value() -> None:
    rng = np.random.default_rng(1)
    sex = [None if i is None else str(i) for i in rng.choice(np.array(["f", "m", "x", None]), 500)]
    age = [None if x < -20 else float(x) for x in rng.uniform(-40, 160, 500)]
    column = BOTH.clean_column([pa.array(sex), pa.array(age)], 6)
    assert column.lut is not None
    found = [column.lut[i] for i in column.array.to_pylist()]
    assert found == [BOTH.encode(pair, 6) >> 16 for pair in zip(sex, age, strict=True)]
    assert column.counts()[0] == sex.count(None) + age.count(None)
    assert column.values().to_pylist() == [BOTH.categories[i] for i in found]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bucket("age", [0, 1]), "edges = .* must be at least three increasing numbers"),
        (lambda: Bucket("age", [0, 2, 1]), "three increasing numbers"),
        (lambda: Bucket("age", 5), "three increasing numbers"),
        (lambda: Bucket("age", [0, 1, 10**400]), "three increasing numbers"),
        (lambda: Bucket("age", [2**53, 2**53 + 1, 2**54]), "three increasing numbers"),
        (lambda: Hash("word", 1), "buckets = 1 must be an integer from 2 to 1,000,000"),
        (lambda: Hash("word", 8, seed=2**53), "seed = .* must be an integer from 0 to"),
        (lambda: Hash("word", 8, default=" "), "default = ' ' must be a text that is not blank"),
        (lambda: Prefix("area", [AREA], 2), "a list of one categorical or hash dimension"),
        (lambda: Prefix("area", [AGE], 2), "a list of one categorical or hash dimension"),
        (lambda: Prefix("area", [SEX], 0), "length = 0 must be a positive integer"),
        (lambda: Outer("m", [hd.Numeric("x", 0, 1)], [0], [1], 1), "two or more numbers"),
        (lambda: Outer("m", [hd.Numeric("x", 0, 1)] * 2, [0, 0], [1, 1], 1), "must be different dimensions"),
        (lambda: Outer("m", MOMENTS.parts, 5, [1, 1], 1), "shift must be a list of 2 numbers"),
        (lambda: Outer("m", MOMENTS.parts, [0, 0], [1, 0], 1), "scale = 0.0 of 'y' must be positive"),
        (lambda: Outer("m", MOMENTS.parts, [0, 0], [1e-200, 1], 1), "scale = 1e-200 of 'x' must be positive"),
        (lambda: Bucket("age", [0, 1, math.inf]), "three increasing numbers"),
        (lambda: Bucket("age", [0, 1, 2], default=7), "default = 7 must lie between"),
        (lambda: Joint("who", [SEX]), "two or more categories"),
        (
            lambda: Joint("who", [SEX, hd.Numeric("age", 0, 1)]),
            "two or more categories",
        ),
        (lambda: Joint("who", [SEX, SEX]), "must be different dimensions"),
        (lambda: Joint("all", [BOTH, AGE]), "none of them joint itself"),
        (
            lambda: Joint("big", [hd.Categorical(f"c{i}", range(1001)) for i in range(2)]),
            "1,002,001 combinations: at most 1,000,000",
        ),
    ],
)
def test_refusals_are_sentences(make: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        make()


def test_a_broken_document_is_refused() -> None:
    with pytest.raises(FormatError, match="joint must be a list of dimensions"):
        dimension_from_dict({"name": "who", "type": "joint", "joint": "sex"})


def test_columns_of_parts_are_columns_of_the_schema() -> None:
    schema = Schema(
        [BOTH, hd.Numeric("age", 0, 120), Joint("more", [AGE, hd.Categorical("city", ["a", "b"])])]
    )
    assert schema.columns == ("age", "sex", "city")
    assert list(schema.readers) == ["age", "sex", "city"]


def test_missing_values_follow_the_rules_of_the_parts() -> None:
    """Refused in a batch unless every part declares a default."""
    people = pa.table({"sex": ["f", None] * 50, "age": [3.0, 4.0] * 50})
    strict = hd.Survey(Schema([BOTH]), epsilon=1.0)
    with pytest.raises(InvalidInput, match="declares neither a default nor optional"):
        hd.collect(people, strict)
    parts = [hd.Categorical("sex", ["f", "m"], default="m"), Bucket("age", [0, 18, 120], default=1)]
    with pytest.raises(InvalidInput, match="which biases the answer"):
        hd.collect(people, hd.Survey(Schema([Joint("who", parts)]), epsilon=1.0))
    few = pa.table({"sex": ["f"] * 199 + [None], "age": [3.0] * 200})
    assert hd.collect(few, hd.Survey(Schema([Joint("who", parts)]), epsilon=1.0)).n_reports == 200


def test_a_matrix_is_refused() -> None:
    survey = hd.Survey(Schema([BOTH]), epsilon=1.0)
    with pytest.raises(InvalidInput, match="a matrix cannot hold a joint dimension"):
        list(hd.engines.Local().reports(np.zeros((3, 2)), survey))


def test_client_and_engine_have_the_law_of_the_channel() -> None:
    """10,000 reports of each by chi-square; the randomness is the system's: a false alarm in 10⁶ runs."""
    survey = hd.Survey(Schema([BOTH]), epsilon=1.5)
    record, channel = {"sex": "m", "age": 40}, survey.channels[0]
    x = BOTH.encode(("m", 40), 6) >> 16
    expected = np.array([float(channel.probability(x, output)) for output in channel.outputs()])
    index = {tuple(output): i for i, output in enumerate(channel.outputs())}
    client = hd.Client(survey)
    counts = np.zeros((2, len(expected)))
    for _ in range(10_000):
        counts[0, index[client.report(record).answers[0][1:]]] += 1
    table = pa.table({"sex": ["m"] * 10_000, "age": [40.0] * 10_000})
    for block in hd.engines.Local().reports(table, survey):
        for row in np.asarray(block)[:, 2:].tolist():
            counts[1, index[tuple(row)]] += 1
    for own in counts:
        assert chisquare(own, 10_000 * expected).pvalue > 1e-6


def test_files_of_every_kind_are_read(tmp_path: Any) -> None:
    import json

    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    survey = hd.Survey(Schema([BOTH]), epsilon=50.0)
    rows = {"age": [3.0, 30.0, 90.0] * 200, "sex": ["m", "f"] * 300}
    table = pa.table(rows)
    pc.write_csv(table, tmp_path / "r.csv")
    pq.write_table(table, tmp_path / "r.parquet")
    lines = "\n".join(json.dumps({"age": a, "sex": s}) for a, s in zip(*rows.values(), strict=True))
    (tmp_path / "r.jsonl").write_text(lines + "\n")
    for name in ("r.csv", "r.parquet", "r.jsonl"):
        tally = hd.Tally(survey)
        for block in hd.engines.Local().reports(tmp_path / name, survey):
            tally = tally.add_block(block)
        assert np.allclose(tally.estimate().value, 1 / 6, atol=0.01)


def test_the_bucket_of_a_text_is_specified() -> None:
    """The first eight bytes of SHA-256 of "7:apple", modulo 16, and the default where there is no text."""
    import hashlib

    wanted = int(hashlib.sha256(b"7:apple").hexdigest()[:16], 16) % 16
    assert WORD.encode("apple", 16) >> 16 == wanted
    for value in (None, "", " ", 1e-7, math.nan, "\ud800", "\ufffd", [], object()):
        assert WORD.encode(value, 16) >> 16 == WORD.bucket("none")
    assert WORD.encode(3.0, 16) == WORD.encode("3", 16) != WORD.encode("3.0", 16)
    assert [WORD.quality(x) for x in ("a", None, " ", "\ufffd", [])] == [
        "usable",
        *["missing"] * 2,
        *["unknown"] * 2,
    ]


def test_a_prefix_has_code_points() -> None:
    smile = Prefix("p", [hd.Categorical("c", ["\U0001f600", "a\u0308", "b"])], length=2)
    assert smile.encode("a\u0308bc", 3) >> 16 == 1
    assert Prefix("p", [hd.Categorical("c", ["\U0001f600", "b"])], 1).encode("\U0001f600x", 2) >> 16 == 0
    assert [AREA.quality(x) for x in ("10115", "99", None)] == ["usable", "unknown", "missing"]
    assert FIRST.encode("apple", 8) == FIRST.encode("a", 8)


def test_an_outer_product_by_hand() -> None:
    z = [(10 - 2) / 4, (0.5 - 1) / 1.5]
    size = max(z[0] ** 2 + z[1] ** 2, 3)
    wanted = [z[0] * z[0] / size, z[0] * z[1] * math.sqrt(2) / size, z[1] * z[1] / size]
    assert MOMENTS.point((99, "0.5")) == wanted
    assert MOMENTS.point((None, None)) == MOMENTS.point((1, 2)) == MOMENTS.point(object())
    assert math.hypot(*MOMENTS.point((10, 4))) == pytest.approx(1.0)


@pytest.mark.parametrize("dimension", [WORD, AREA, FIRST])
def test_a_column_of_texts_is_cleaned_by_the_rule_of_one_value(dimension: Dimension) -> None:
    texts = [x for x in TEXTS if x is None or (isinstance(x, str) and x != "\ud800")]
    for values in ([*texts, "\x1c", "\x1capple"], [3, 10, None, 12], [2.5, 3.0, 1e-7, None]):
        column = dimension.clean_column([pa.array(values)], len(dimension.categories))
        assert column.lut is not None
        found = [column.lut[-1 if i is None else i] for i in column.array.to_pylist()]
        assert found == [dimension.encode(x, len(dimension.categories)) >> 16 for x in values]
        assert column.counts()[:2] == tuple(
            [dimension.quality(x) for x in values].count(f) for f in ("missing", "unknown")
        )


def test_a_column_of_products_is_cleaned_by_the_rule_of_one_value() -> None:
    rng = np.random.default_rng(2)
    x = [None if u < -7 else float(u) for u in rng.uniform(-8, 12, 300)]
    y = [str(u) for u in rng.uniform(-1, 5, 300)]
    column = MOMENTS.clean_column([pa.array(x), pa.array(y)], 1)
    assert column.points is not None
    one = (1 << 20) - 1
    wanted = [[round(v * one) / one for v in MOMENTS.point(pair)] for pair in zip(x, y, strict=True)]
    assert column.points.tolist() == wanted
    assert column.counts()[0] == x.count(None)
    assert np.allclose(column.values().to_pylist(), 3 * np.array(wanted))


def test_json_lines_keep_the_text_of_a_device(tmp_path: Any) -> None:
    import json

    from hdr4me.io.reading import read_records

    path = tmp_path / "r.jsonl"
    path.write_text("".join(json.dumps({"word": x}) + "\n" for x in TEXTS))
    schema = Schema([WORD])
    (batch,) = read_records(path, schema, 1000)
    column = WORD.clean_column([batch.column(0)], 16)
    assert column.lut is not None
    found = [column.lut[-1 if i is None else i] for i in column.array.to_pylist()]
    assert found == [WORD.encode(x, 16) >> 16 for x in TEXTS]


def test_every_declaration_of_a_column_is_checked() -> None:
    schema = Schema([hd.Numeric("age", 0, 120, default=40), Bucket("group", [0, 18, 120], column="age")])
    with pytest.raises(InvalidInput, match="'group': the value is missing"):
        schema.check({})


def test_derived_dimensions_are_compared() -> None:
    people = pa.table(
        {"sex": ["f", "m"] * 200, "age": [3.0, 30.0, 90.0, 4.0] * 100, "word": ["a", "b"] * 200}
    )
    found = hd.compare(
        people, schema=Schema([BOTH, WORD]), epsilon=3.0, repeats=1, mechanisms=["grr"], recalibrate=False
    )
    assert all(row.predicted is not None and row.predicted > 0 for row in found.rows)
