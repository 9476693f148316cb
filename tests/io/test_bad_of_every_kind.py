"""Values that a dimension cannot hold: cleaned on the device as declared, counted in batch, for each kind of question.

The same on Spark is in `tests/engines/test_spark_channels.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hdr4me.client import Client
from hdr4me.engines import Local
from hdr4me.errors import InvalidInput
from hdr4me.survey import Categorical, Dimension, Numeric, Schema, Selection, Survey, Vector
from hdr4me.tally import Tally

NAN = float("nan")
LISTS = pa.list_(pa.float64())
CASES: dict[str, tuple[Dimension, Any, Any, dict[str, int]]] = {
    # what is wrong: (dimension, a wrong value, what counts instead, which number of the account says so)
    "unknown category": (Categorical("x", ["a", "b"], default="b"), "zz", "b", {"unknown": 1}),
    "missing category": (Categorical("x", ["a", "b"], default="b"), None, "b", {"missing": 1}),
    "empty selection": (Selection("x", ["a", "b", "c"], 2), [], [], {}),
    "missing selection": (Selection("x", ["a", "b", "c"], 2), None, [], {"missing": 1}),
    "too many choices": (Selection("x", ["a", "b", "c"], 2), ["c", "b", "a"], ["a", "b"], {"high": 1}),
    "a choice that is none": (Selection("x", ["a", "b", "c"], 2), ["zz", "c"], ["c"], {"low": 1}),
    "no choice that is one": (Selection("x", ["a", "b", "c"], 2), ["zz"], [], {"unknown": 1}),
    "NaN in a vector": (Vector("x", 2), [NAN, 0.5], [0.0, 0.5], {"unknown": 1}),
    "vector of a wrong length": (Vector("x", 2), [0.1, 0.2, 0.3], [0.0, 0.0], {"unknown": 1}),
    "vector with too large a norm": (Vector("x", 2), [3.0, 4.0], [0.6, 0.8], {"high": 1}),
    "missing vector": (Vector("x", 2), None, [0.0, 0.0], {"missing": 1}),
    "optional vector with a NaN": (Vector("x", 2, optional=True), [NAN, 0.5], [0.0, 0.5], {"unknown": 1}),
    "number above its range": (Numeric("x", 0, 10), 99.0, 10.0, {"high": 1}),
    "number that is none": (Numeric("x", 0, 10, default=4), NAN, 4.0, {"missing": 1}),
}


@pytest.mark.parametrize("name", CASES)
def test_on_the_device(name: str) -> None:
    """The wrong value is the same input of the channel as what counts instead, and its report has the same length."""
    dimension, wrong, instead, _ = CASES[name]
    survey = Survey(Schema([dimension]), epsilon=4.0)
    size = survey.channels[0].inputs[0].size
    assert dimension.encode(wrong, size) == dimension.encode(instead, size)
    client = Client(survey)
    if not dimension.replaces and dimension.quality(wrong) in ("missing", "unknown"):
        with pytest.raises(InvalidInput, match=r"dimension 'x': the value is .* declares neither"):
            client.report({"x": wrong})
        return
    lengths = {len(client.report({"x": value}).to_bytes(survey)) for value in (wrong, instead)}
    assert lengths == {survey.report_size}
    tally = Tally(survey).add([client.report({"x": wrong})])
    assert (tally.n_reports, dict(tally.rejected)) == (1, {})


@pytest.mark.parametrize("name", CASES)
def test_in_batch(name: str) -> None:
    """99 good values and a wrong one: each has a report, and the data-quality report counts the wrong value."""
    dimension, wrong, instead, expected = CASES[name]
    survey = Survey(Schema([dimension]), epsilon=4.0)
    rows = [*[instead] * 99, wrong]
    column = pa.array(rows, LISTS) if isinstance(dimension, Vector) else pa.array(rows)
    records = pa.table({"x": column})
    none = {"column": "x", "read": 100, "missing": 0, "unknown": 0, "low": 0, "high": 0}
    assert Local(threads=1).data_quality(records, survey).rows() == [none | expected]
    tally = Tally(survey)
    for block in Local(threads=1).reports(records, survey, on_quality=lambda quality: None):
        tally.add_block(block)
    assert (tally.n_reports, dict(tally.rejected)) == (100, {})


def test_numbers_of_a_block() -> None:
    """Out of range, missing and none: rounded to signs as the declared ends and default, and counted by column."""
    schema = Schema([Numeric("a", 0, 1), Numeric("b", 0, 1, default=1), Numeric("c", 0, 1, default=0)])
    survey = Survey(schema, epsilon=4.0, block_questions=[["a", "b", "c"]])
    records = np.tile([9.0, NAN, -9.0], (50, 1))
    rows = {row["column"]: row for row in Local(threads=1).data_quality(records, survey).rows()}
    assert (rows["a"]["high"], rows["b"]["missing"], rows["c"]["low"]) == (50, 50, 50)
    assert (
        sum(
            len(block) for block in Local(threads=1).reports(records, survey, on_quality=lambda quality: None)
        )
        == 50
    )
    report = Client(survey).report({"a": 9.0, "b": "x", "c": None})
    assert len(report.to_bytes(survey)) == survey.report_size
