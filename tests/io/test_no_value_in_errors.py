"""No error of Python has a value of a record: each value of wrong records is a marker, in every form of records.

The same for files on the command line is in `tests/cli/test_marked_values.py`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hdr4me as hd
from hdr4me.errors import HDR4MEError
from hdr4me.io.infer import infer_schema

WORD, NUMBER, YEAR = "qSECRETz", "7770001", "7770"
SCHEMA = hd.Schema([
    hd.Numeric("age", 0, 120),
    hd.Categorical("smoker", ["no", "yes"]),
    hd.Time("born", "1900-01-01", "2020-01-01"),
    hd.Selection("languages", ["de", "en"], 2),
])  # fmt: skip
SURVEY = hd.Survey(SCHEMA)
VALUES: dict[str, Any] = {
    "text": WORD,
    "text with half a character": WORD + "\ud800",
    "integer": int(NUMBER),
    "beyond 64 bits": int(NUMBER * 3),
    "beyond floats": int(NUMBER + 400 * "0"),
    "decimal": Decimal(NUMBER + ".5"),
    "complex": complex(int(NUMBER), 1),
    "bytes": WORD.encode(),
    "list": [WORD],
    "object": {"a": WORD},
    "set": {WORD},
    "date": dt.date(int(YEAR), 1, 1),
    "time": np.datetime64(f"{YEAR}-01-01"),
    "duration": dt.timedelta(days=int(NUMBER)),
    "interval": pd.Interval(int(NUMBER), int(NUMBER) + 1),
    "exception": ValueError(WORD),
}
FORMS: dict[str, Callable[[Any], Any]] = {
    "dictionaries": lambda x: [dict.fromkeys(SCHEMA.names, value) for value in (x, x, 1, None, "x")],
    "one dictionary": lambda x: dict.fromkeys(SCHEMA.names, x),
    "a name": lambda x: pd.DataFrame([[1, 2]], columns=[str(x), f"{x} "]),
    "pandas": lambda x: pd.DataFrame({n: pd.Series([x] * 3, dtype=object) for n in SCHEMA.names}),
    "pandas, mixed": lambda x: pd.DataFrame({n: pd.Series([x, 1, "x"], dtype=object) for n in SCHEMA.names}),
    "polars": lambda x: pl.DataFrame({n: pl.Series([x] * 3) for n in SCHEMA.names}),
    "polars, lazy": lambda x: pl.LazyFrame({n: pl.Series([x] * 3) for n in SCHEMA.names}).with_columns(
        pl.col("age").cast(pl.Int8)
    ),
    "Arrow": lambda x: pa.table({n: pa.array([x] * 3) for n in SCHEMA.names}),
    "NumPy": lambda x: np.array([[x] * 4] * 3),
}
CALLS: dict[str, Callable[[Any], Any]] = {
    "collect": lambda x: hd.collect(x, SURVEY),
    "client": lambda x: [hd.Client(SURVEY).report(one) for one in (x if isinstance(x, list) else [x])],
    "compare": lambda x: hd.compare(x, schema=SCHEMA, epsilon=1.0, repeats=1),
    "infer": lambda x: infer_schema(x, ranges={"age": (0, 1)}, columns=["age"]),
    "prior": lambda x: hd.plan(users=1000, epsilon=1.0, schema=SCHEMA, prior=x),
    "prior by name": lambda x: hd.plan(users=1000, epsilon=1.0, schema=SCHEMA, prior={"age": x}),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", FORMS)
def test_errors_have_no_value(form: str) -> None:
    n_refused = 0
    for name, value in VALUES.items():
        try:
            records = FORMS[form](value)
        except Exception:
            continue
        for call, act in CALLS.items():
            if (call, form) == ("infer", "a name") or (form == "one dictionary" and call == "prior"):
                continue  # names that the caller gave: of columns, and of a prior
            try:
                act(records)
            except HDR4MEError as error:
                n_refused += 1
                text = str(error)
                assert not [x for x in (WORD, NUMBER, YEAR + "-") if x in text], (call, name, text)
    assert n_refused > 30


BIG = 2**53 + 1
ROWS = 40
KINDS: dict[str, tuple[hd.Dimension, Any]] = {
    "64 bits": (hd.Numeric("x", 0, 2**55), pa.array([BIG, BIG + 2] * 20)),
    "64 bits without a sign": (hd.Numeric("x", 0, 2**63), pa.array([BIG, 1] * 20, pa.uint64())),
    "decimal": (hd.Numeric("x", 0, 9), pa.array([Decimal("1.5"), Decimal("2.5")] * 20)),
    "large decimal": (hd.Numeric("x", 0, 9), pa.array([Decimal("1.5")] * ROWS, pa.decimal256(50, 1))),
    "view": (hd.Numeric("x", 0, 9), pa.array(["1.5", "2"] * 20, pa.string_view())),
    "large string": (hd.Numeric("x", 0, 9), pa.array(["1.5", "2"] * 20, pa.large_string())),
    "Boolean": (hd.Numeric("x", 0, 9), pa.array([True, False] * 20)),
    "half": (hd.Numeric("x", 0, 9), pa.array(np.array([1, 2] * 20, np.float16))),
    "category of 64 bits": (hd.Categorical("x", ["1", str(BIG)]), pa.array([BIG, 1] * 20)),
    "category view": (hd.Categorical("x", ["a", "b"]), pa.array(["a", "b"] * 20, pa.string_view())),
    "dictionary": (hd.Categorical("x", ["a", "b"]), pa.array(["a", "b"] * 20).dictionary_encode()),
    "choices": (hd.Selection("x", ["1", str(BIG)], 2), pa.array([[BIG, 1], [1]] * 20)),
    "vector": (hd.Vector("x", 2), pa.array([[Decimal("0.1"), Decimal("0.2")]] * ROWS)),
    "time zone": (
        hd.Time("x", "2000-01-01", "2030-01-01"),
        pa.array([dt.datetime(2020, 1, 1, 12)] * ROWS, pa.timestamp("us", "Europe/Berlin")),
    ),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", KINDS)
def test_every_type_in_every_frame(name: str) -> None:
    """No value of these types is missing, unknown or out of range, in any frame; `compare` accepts them too."""
    dimension, column = KINDS[name]
    schema, table = hd.Schema([dimension]), pa.table({"x": column})
    survey = hd.Survey(schema)
    forms: list[Any] = [
        table,
        table.to_pandas(),
        table.to_pandas(types_mapper=pd.ArrowDtype),
        table.to_pylist(),
    ]
    if "large decimal" not in name:
        forms += [pl.from_arrow(table), pl.from_arrow(table).lazy()]  # type: ignore[union-attr]
    for form in forms:
        tally = hd.collect(form, survey)
        assert tally.data_quality is not None
        assert tally.data_quality.counts.tolist() == [[ROWS, 0, 0, 0, 0]], type(form)
    hd.compare(table, schema=schema, epsilon=1.0, repeats=1)


@pytest.mark.parametrize("nothing", [None, float("nan"), pd.NA, pd.NaT, np.ma.masked, np.datetime64("NaT")])
@pytest.mark.parametrize(
    "dimension", [hd.Numeric("x", 0, 1), hd.Categorical("x", ["0", "1"]), hd.Calendar("x", "month")]
)
def test_missing_values_of_all_libraries(dimension: hd.Dimension, nothing: Any) -> None:
    """A device and a batch both call them missing, not unknown."""
    assert dimension.quality(nothing) == "missing"
    quality = hd.engines.Local().data_quality([{"x": nothing}], hd.Survey(hd.Schema([dimension])))
    assert quality.counts.tolist() == [[1, 1, 0, 0, 0]]


def test_what_a_list_of_dictionaries_may_hold() -> None:
    """Numbers of NumPy, decimals, tuples and arrays are the same in a batch and on a device."""
    schema = hd.Schema([hd.Numeric("x", 0, 9), hd.Selection("s", ["1", "2"], 2), hd.Vector("v", 2)])
    rows = [
        {"x": np.float64(1.5), "s": (1, 2), "v": np.array([0.1, 0.2])},
        {"x": Decimal("1.5"), "s": {1, 2}, "v": (0.1, 0.2)},
        {"x": np.int64(1), "s": np.array([1, 2]), "v": [0.1, 0.2]},
    ]
    assert all(x.quality(row[x.name]) == "usable" for row in rows for x in schema)
    quality = hd.engines.Local().data_quality(rows, hd.Survey(schema))
    assert quality.counts.tolist() == [[3, 0, 0, 0, 0]] * 3


def test_an_object_is_no_selection() -> None:
    with pytest.raises(HDR4MEError, match="the value is not a list"):
        hd.Client(hd.Survey(hd.Schema([hd.Selection("s", ["a", "b"], 1)]))).report({"s": {"a": 1}})
