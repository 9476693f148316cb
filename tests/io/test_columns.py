"""Every type of column means to the engine what its values mean to the client."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hdr4me.engines.general import plan_of
from hdr4me.errors import InvalidInput
from hdr4me.io.columns import from_batch, from_matrix
from hdr4me.kernels.exact.blocks import BOTTOM, positions
from hdr4me.survey import Survey


def kernel_positions(survey: Survey, source: Any) -> np.ndarray:
    d = len(survey.schema)
    out = np.zeros(source.n * d, np.uint32)
    dims = np.tile(np.arange(d, dtype=np.uint16), source.n)
    plan = plan_of(survey)._replace(sampled=d)
    positions(source.columns, plan, dims, 0, source.n, np.empty(len(dims)), out)
    return out.reshape(source.n, d).astype(np.int64)


def client_positions(survey: Survey, rows: list[list[Any]]) -> np.ndarray:
    bottom = plan_of(survey).ranges[:, BOTTOM].astype(int)
    return np.array(
        [
            [
                bottom[j] + dimension.encode(value, survey.questions[j].channel.inputs[0].size)
                for j, (dimension, value) in enumerate(zip(survey.schema, row, strict=True))
            ]
            for row in rows
        ]
    )


NUMBERS = {
    "float64": pa.array([1.5, -3.0, 1e300, float("nan"), float("-inf"), None, 119.99]),
    "float32": pa.array([1.5, -3.0, 121, float("nan"), None], pa.float32()),
    "float16": pa.array(np.array([1.5, 60, np.nan], np.float16)),
    "int8": pa.array([0, 120, None, -8], pa.int8()),
    "int64": pa.array([0, 2**62, None, -(2**62)], pa.int64()),
    "uint32": pa.array([0, 77, None], pa.uint32()),
    "boolean": pa.array([True, False, None]),
    "decimal": pa.array([Decimal("1.25"), None, Decimal("119.5")]),
    "numeric text": pa.array(["12", "1e2", None, "nan"]),
    "other text": pa.array([" 12 ", "?", "", None, "1e400", "12,5"]),
    "large text": pa.array(["12", "x"], pa.large_string()),
    "dictionary": pa.array(["12", "x", None, "12"]).dictionary_encode(),
    "nothing": pa.nulls(3),
}
CATEGORIES = {
    "text": pa.array(["red", "blue", "green", "mauve", "", None, "red"]),
    "large text": pa.array(["red", "blue", None], pa.large_string()),
    "dictionary": pa.array(["blue", None, "pink", "red"]).dictionary_encode(),
    "dictionary with a null inside": pa.DictionaryArray.from_arrays([0, 1, None, 1], ["red", None]),
    "integers": pa.array([1, 2, 3, 4, 5, None, -1]),
    "floats": pa.array([1.0, 2.5, 3.0, float("nan"), None]),
    "half floats": pa.array(np.array([1.0, 4.0], np.float16)),
    "nothing": pa.nulls(3),
    "views": pa.array(["red", "mauve", None], pa.string_view()),
    "dictionary of views": pa.DictionaryArray.from_arrays(
        [0, 1, None], pa.array(["red", "?"], pa.string_view())
    ),
    "no value at all": pa.array([None, None], pa.string()),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("offset", [0, 1])
def test_numbers_are_converted_as_in_the_client(mixed_survey: Survey, name: str, offset: int) -> None:
    column = NUMBERS[name].slice(offset)  # type: ignore[attr-defined]
    batch = pa.record_batch(
        [column, pa.nulls(len(column)), pa.nulls(len(column))], names=["age", "colour", "rooms"]
    )
    found = kernel_positions(mixed_survey, from_batch(batch, mixed_survey))
    expected = client_positions(mixed_survey, [[value, None, None] for value in column.to_pylist()])
    # One unit in 2^16: (v - low) * scale and (v - low) / (high - low) * span may round apart.
    assert np.abs(found - expected).max() <= 1


@pytest.mark.parametrize("name", CATEGORIES)
@pytest.mark.parametrize("offset", [0, 1])
def test_categories_are_converted_as_in_the_client(mixed_survey: Survey, name: str, offset: int) -> None:
    column = CATEGORIES[name].slice(offset)
    batch = pa.record_batch([pa.nulls(len(column)), column, column], names=["age", "colour", "rooms"])
    found = kernel_positions(mixed_survey, from_batch(batch, mixed_survey))
    expected = client_positions(mixed_survey, [[None, value, value] for value in column.to_pylist()])
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("name", ["age", "colour"])
def test_a_type_that_cannot_be_asked_is_named(mixed_survey: Survey, name: str) -> None:
    names = ["age", "colour", "rooms"]
    strange = pa.array([0], pa.timestamp("s"))
    batch = pa.record_batch([strange if n == name else pa.nulls(1) for n in names], names=names)
    with pytest.raises(InvalidInput, match=f"'{name}' is of type timestamp"):
        from_batch(batch, mixed_survey)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.bool_, np.float16])
def test_a_matrix_of_any_layout(mixed_survey: Survey, order: str, dtype: type) -> None:
    values = np.asarray(np.array([[1, 0, 1], [0, 1, 0], [1, 1, 1]]), dtype=dtype, order=order)
    for matrix in (values, values[::-1], values[:, ::1][1:]):
        found = kernel_positions(mixed_survey, from_matrix(matrix, mixed_survey))
        rows = [[float(a), ["red", "green", "blue"][int(b)], int(c) + 1] for a, b, c in matrix.astype(float)]
        assert np.abs(found - client_positions(mixed_survey, rows)).max() <= 1


def test_a_matrix_of_the_wrong_shape(mixed_survey: Survey) -> None:
    with pytest.raises(InvalidInput, match=r"expected \(n, 3\)"):
        from_matrix(np.zeros((2, 4)), mixed_survey)


def test_odd_matrices(mixed_survey: Survey) -> None:
    """Columns in reverse are read where they lie, masked values are missing, and what is no number is named."""
    straight = np.array([[1.0, 0.0, 2.0], [50.0, 1.0, 1.0]])
    reverse = straight[:, ::-1].copy()[:, ::-1]
    assert reverse.strides[1] < 0
    assert from_matrix(reverse, mixed_survey).n == 2
    masked = from_matrix(np.ma.masked_greater(straight, 10.0), mixed_survey)
    assert np.isnan(masked.owners[0]).sum() == 1
    for odd in (straight.astype(object), straight.astype(str), straight.astype(complex)):
        with pytest.raises(InvalidInput, match="expected real numbers"):
            from_matrix(odd, mixed_survey)
