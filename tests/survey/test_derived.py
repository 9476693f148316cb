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
from hdr4me.survey.derived import Bucket, Joint
from hdr4me.survey.dimension import dimension_from_dict

SEX = hd.Categorical("sex", ["f", "m"])
AGE = Bucket("age", [0, 18, 65, 120])
BOTH = Joint("who", [SEX, AGE])
VALUES = [None, "", math.nan, -5, 0, 17.999, 18, "64.9", 65, 120, 1e9, "old", True, [], "m", "f", "x"]


@pytest.mark.parametrize(
    ("value", "bucket"),
    [(0, 0), (17.999, 0), (18, 1), (65, 2), (120, 2), (-1, 0), (121, 2), ("64.9", 1), (None, 1)],
)
def test_a_bucket_includes_its_lower_edge(value: Any, bucket: int) -> None:
    assert AGE.encode(value, 3) >> 16 == bucket


def test_a_declared_default_replaces_a_missing_number() -> None:
    assert Bucket("age", [0, 18, 120], default=3).encode(None, 2) >> 16 == 0


def test_a_combination_is_numbered_with_the_last_part_fastest() -> None:
    assert BOTH.categories == tuple(f"{s} × {a}" for s in SEX.categories for a in AGE.categories)
    for s, sex in enumerate("fm"):
        for a, age in enumerate((3, 30, 90)):
            assert BOTH.encode((sex, age), 6) >> 16 == 3 * s + a
    assert BOTH.columns == ("sex", "age")


@pytest.mark.parametrize("dimension", [AGE, BOTH, Bucket("group", [0, 1, 2], column="x")])
def test_the_document_is_read_back(dimension: Dimension) -> None:
    assert dimension_from_dict(dimension.to_dict()) == dimension


@pytest.mark.parametrize("dimension", [AGE, Bucket("group", [0, 18, 120], column="age")])
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
    with pytest.raises(InvalidInput, match="a matrix cannot hold a derived dimension"):
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
