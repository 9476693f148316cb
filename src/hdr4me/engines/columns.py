"""Records in Arrow or NumPy as columns of addresses: nothing is copied that need not be.

A value means here what it means to the client: text in a numeric column is read as a number if it is one, a
category is known by its label, and whatever is missing or wrong becomes the declared default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.kernels.exact.perturb import Columns
from hdr4me.kernels.machine.intrinsics import DTYPES
from hdr4me.survey import Categorical, Numeric, Survey

__all__ = ["Source", "check_matrix", "from_batch", "from_matrix"]


class Source:
    """Columns, how many records they hold, and the owners of the memory they point to."""

    def __init__(self, columns: Columns, n: int, owners: Sequence[object]) -> None:
        self.columns = columns
        self.n = n
        self.owners = owners


def check_matrix(values: NDArray[Any], survey: Survey) -> NDArray[Any]:
    """The same matrix of real numbers, a masked value a missing one; anything else is named."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    if values.dtype.kind not in "buif":
        raise InvalidInput(f"records of type {values.dtype}: expected real numbers")
    if values.ndim != 2 or values.shape[1] != len(survey.schema):
        raise InvalidInput(f"records of shape {values.shape}: expected (n, {len(survey.schema)})")
    return values


def from_matrix(values: NDArray[Any], survey: Survey) -> Source:
    """A matrix [n, d] of numbers in any layout; a categorical dimension's numbers are category indices."""
    values = check_matrix(values, survey)
    if values.dtype not in DTYPES:
        values = values.astype(np.float64)
    n, d = values.shape
    sizes = np.array([len(x.categories) if isinstance(x, Categorical) else 0 for x in survey.schema])
    columns = Columns(
        address=(values.ctypes.data + np.arange(d, dtype=np.int64) * values.strides[1]).view(np.uint64),
        stride=np.full(d, values.strides[0]),
        dtype=np.full(d, DTYPES.index(values.dtype), np.uint8),
        valid=np.zeros(d, np.uint64),
        valid_offset=np.zeros(d, np.int64),
        lut=np.arange(max(1, sizes.max()), dtype=np.uint32),  # category indices stand for themselves
        lut_start=np.zeros(d, np.int64),
        lut_size=sizes,
        step=values.strides[1],
    )
    return Source(columns, n, [values])


def from_batch(batch: pa.RecordBatch, survey: Survey) -> Source:
    """A record batch whose columns are the survey's dimensions, in its order."""
    d = len(survey.schema)
    address, valid = np.zeros((2, d), np.uint64)
    stride, valid_offset, lut_start, lut_size = np.zeros((4, d), np.int64)
    dtype = np.zeros(d, np.uint8)
    luts: list[list[int]] = [[0]]
    owners: list[object] = []
    n_lut = 1
    for j, dimension in enumerate(survey.schema):
        column: Any = batch.column(j)
        if not isinstance(dimension, Numeric | Categorical):
            array = _placed(column, j, survey)
        elif isinstance(dimension, Categorical):
            array, lut = _indices(column, dimension)
            lut_start[j], lut_size[j] = n_lut, len(lut)
            n_lut += len(lut)
            luts.append(lut)
        else:
            array = _numbers(column, dimension)
        width = array.type.bit_width // 8
        mask, data = array.buffers()
        dtype[j] = DTYPES.index(np.dtype(array.type.to_pandas_dtype()))
        address[j] = data.address + array.offset * width
        stride[j] = width
        if array.null_count:
            valid[j], valid_offset[j] = mask.address, array.offset
        owners.append(array)
    lut_array = np.array([x for lut in luts for x in lut], np.uint32)
    columns = Columns(address, stride, dtype, valid, valid_offset, lut_array, lut_start, lut_size, 0)
    return Source(columns, batch.num_rows, owners)


def _placed(column: Any, j: int, survey: Survey) -> Any:
    """The positions of a dimension of another package, which alone knows how its values become inputs."""
    question = survey.questions[survey.question_of(j)]
    size = question.channel.takes[question.dimensions.index(j)].size
    dimension = survey.schema.dimensions[j]
    return pa.array([dimension.place(value, size) for value in column.to_pylist()], pa.float64())


def _numbers(column: Any, dimension: Numeric) -> Any:
    """An array of a primitive type that the kernel reads; what is not a number is null."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _numbers(column.dictionary_decode(), dimension)
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return column
    if pa.types.is_boolean(kind):
        return column.cast(pa.uint8())
    if pa.types.is_decimal(kind):
        return column.cast(pa.float64())
    if pa.types.is_null(kind):
        return pa.nulls(len(column), pa.uint8())
    if _is_text(kind):
        try:
            return column.cast(pa.string()).cast(pa.float64())
        except pa.ArrowInvalid:  # some of it is no number: as the client reads it, one by one
            return pa.array([dimension.clean(value) for value in _texts(column)], pa.float64())
    raise InvalidInput(f"column {dimension.name!r} is of type {kind}: numbers are expected")


def _indices(column: Any, dimension: Categorical) -> tuple[Any, list[int]]:
    """Integer indices, null where missing, and the category each index stands for."""
    kind = column.type
    if pa.types.is_null(kind):
        return pa.nulls(len(column), pa.uint8()), [0]
    if not pa.types.is_dictionary(kind):
        if not (
            _is_text(kind)
            or pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_boolean(kind)
        ):
            raise InvalidInput(f"column {dimension.name!r} is of type {kind}: categories are expected")
        column = pc.dictionary_encode(column.cast(pa.float32()) if pa.types.is_float16(kind) else column)
    labels = column.dictionary
    lut = [
        dimension.clean(value) for value in (_texts(labels) if _is_text(labels.type) else labels.to_pylist())
    ]
    return column.indices, lut or [0]


def _is_text(kind: Any) -> bool:
    """Strings, and bytes as a CSV file has them: what they say is only known when they are decoded."""
    tests = ("string", "large_string", "string_view", "binary", "large_binary")
    return any(getattr(pa.types, f"is_{test}")(kind) for test in tests)


def _texts(column: Any) -> list[str | None]:
    """The texts of a column; bytes that are no UTF-8 become a mark that names no category and no number."""
    raw = column.cast(pa.large_binary()).to_pylist()
    return [None if value is None else value.decode("utf-8", "replace") for value in raw]
