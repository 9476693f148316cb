"""Records as columns of memory addresses for the kernels, and the counts of their data-quality report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.io.quality import FIELDS, DataQuality
from hdr4me.survey import Numeric, Schema, Survey

if TYPE_CHECKING:
    from hdr4me.kernels.exact.perturb import Columns
    from hdr4me.survey.columns import Column


@dataclass(frozen=True, eq=False)
class Source:
    """Columns for a kernel, the number of records, and the owners of the memory that the columns point to.

    `cleaned` has the clean column of each dimension. The numbers of a matrix are read in place, so that only computed
    dimensions are in `cleaned`.
    """

    columns: Columns
    n: int
    owners: Sequence[Any]
    cleaned: Mapping[int, Column]

    @property
    def vectors(self) -> dict[int, NDArray[np.float64]]:
        """The vectors of each `Vector` dimension."""
        return {j: column.points for j, column in self.cleaned.items() if column.points is not None}


@lru_cache(maxsize=32)
def _sizes(survey: Survey) -> list[int]:
    """The number of inputs of each dimension's channel."""
    sizes = [0] * len(survey.schema)
    for question in survey.questions:
        for j, input_ in zip(question.dimensions, question.channel.inputs, strict=True):
            sizes[j] = input_.size
    return sizes


def check_matrix(values: NDArray[Any], survey: Survey) -> NDArray[Any]:
    """The matrix of real numbers, with masked values as missing; anything else is an error."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    if values.dtype.kind not in "buif":
        raise InvalidInput(f"records of type {values.dtype}: expected real numbers")
    kinds = {dimension.input_kind for dimension in survey.schema}
    if "selection" in kinds:
        raise InvalidInput(
            "a matrix cannot hold several choices at once: give a table with a column of lists"
        )
    if "vector" in kinds and len(survey.schema) > 1:
        raise InvalidInput("a matrix holds vectors or numbers, not both: give a table with a column of lists")
    refused = [x for x in survey.schema if x.is_time or (x.is_derived and not x.is_number)]
    if refused:
        raise InvalidInput(
            f"a matrix cannot hold a {refused[0].kind} dimension such as {refused[0].name!r}: "
            "give a table with named columns"
        )
    width = len(survey.schema.columns)
    if "vector" in kinds:
        width = getattr(survey.schema.dimensions[0], "length", 1)
    if values.ndim != 2 or values.shape[1] != width:
        raise InvalidInput(f"records of shape {values.shape}: expected (n, {width})")
    return values


def from_matrix(values: NDArray[Any], survey: Survey) -> Source:
    """A matrix [n, columns] of numbers in any layout, with indices for categories."""
    from hdr4me.kernels.exact.perturb import Columns
    from hdr4me.kernels.machine.intrinsics import DTYPES

    values = check_matrix(values, survey)
    first = survey.schema.dimensions[0]
    if first.input_kind == "vector":
        flat = pa.array(np.ascontiguousarray(values, np.float64).ravel())
        lists = pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
        return from_batch(pa.RecordBatch.from_arrays([lists], [first.name]), survey)
    values, cleaned = _computed(values, survey)
    if values.dtype not in DTYPES:
        values = values.astype(np.float64)
    n, d = values.shape
    sizes = np.array([len(dimension.categories) for dimension in survey.schema], np.int64)
    columns = Columns(
        address=(values.ctypes.data + np.arange(d, dtype=np.int64) * values.strides[1]).view(np.uint64),
        stride=np.full(d, values.strides[0]),
        dtype=np.full(d, DTYPES.index(values.dtype), np.uint8),
        valid=np.zeros(d, np.uint64),
        valid_offset=np.zeros(d, np.int64),
        lut=np.arange(max(1, sizes.max()), dtype=np.uint32),  # category indices are used unchanged
        lut_start=np.zeros(d, np.int64),
        lut_size=sizes,
        step=values.strides[1],
    )
    return Source(columns, n, [values], cleaned)


def _computed(values: NDArray[Any], survey: Survey) -> tuple[NDArray[Any], dict[int, Column]]:
    """The matrix with a column for each dimension, and the clean columns that are not read in place."""
    if all(isinstance(x, Numeric) or x.categories for x in survey.schema):
        return values, {}
    parts, cleaned = [], {}
    at = {name: place for place, name in enumerate(survey.schema.columns)}
    for j, x in enumerate(survey.schema):
        columns = [values[:, at[name]].astype(np.float64) for name in x.columns]
        if isinstance(x, Numeric) or x.categories:
            parts += columns
        else:
            cleaned[j] = x.clean_column([pa.array(column) for column in columns], _sizes(survey)[j])
            parts.append(np.asarray(cleaned[j].array))
    return np.stack(parts, axis=1), cleaned


def from_batch(batch: pa.RecordBatch, survey: Survey) -> Source:
    """A record batch with the columns of the survey's schema (`Schema.columns`), in order."""
    from hdr4me.kernels.exact.perturb import Columns
    from hdr4me.kernels.machine.intrinsics import DTYPES

    d = len(survey.schema)
    address, valid = np.zeros((2, d), np.uint64)
    stride, valid_offset, lut_start, lut_size = np.zeros((4, d), np.int64)
    dtype = np.zeros(d, np.uint8)
    lut = [0]
    at = {name: place for place, name in enumerate(survey.schema.columns)}
    sizes = _sizes(survey)
    cleaned: dict[int, Column] = {}
    for j, dimension in enumerate(survey.schema):
        arrays: list[Any] = [batch.column(at[name]) for name in dimension.columns]
        column = cleaned[j] = dimension.clean_column(arrays, sizes[j])
        if column.lut is not None:
            lut_start[j], lut_size[j] = len(lut), len(column.lut)
            lut += column.lut
        array = column.array
        width = array.type.bit_width // 8
        mask, data = array.buffers()
        dtype[j] = DTYPES.index(np.dtype(array.type.to_pandas_dtype()))
        address[j] = data.address + array.offset * width if data is not None else 0
        stride[j] = width
        if array.null_count:
            valid[j], valid_offset[j] = mask.address, array.offset
    luts = np.array(lut, np.uint32)
    columns = Columns(address, stride, dtype, valid, valid_offset, luts, lut_start, lut_size, 0)
    return Source(columns, batch.num_rows, [column.array for column in cleaned.values()], cleaned)


def data_quality(source: Source, survey: Survey) -> DataQuality:
    """The data-quality report of the records in a source."""
    counts = np.zeros((len(survey.schema), len(FIELDS)), np.int64)
    counts[:, 0] = source.n
    if source.n and len(source.cleaned) < len(survey.schema):
        _count_matrix(source.owners[0], survey.schema, counts)
    for j, column in source.cleaned.items():
        counts[j, 1:] = column.counts()
    return DataQuality(survey.schema, counts)


@lru_cache(maxsize=32)
def _ends(schema: Schema) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The smallest and largest value of each column of a matrix, repeated for as many rows as have 256 values."""
    ends = [(0.0, len(x.categories) - 1.0) if x.categories else x.bounds for x in schema]
    low, high = np.tile(np.array(ends).T, -(-256 // len(ends)))
    return low, high


def _count_matrix(values: NDArray[Any], schema: Schema, counts: NDArray[np.int64]) -> None:
    """Count the faults in a matrix of numbers and category indices."""
    from hdr4me.kernels.exact.blocks import count_outside
    from hdr4me.survey.columns import number_counts

    low, high = _ends(schema)
    for j in np.flatnonzero(count_outside(np.ascontiguousarray(values), low, high)).tolist():
        missing, below, above = number_counts(values[:, j], low[j], high[j])
        if schema.dimensions[j].categories:
            # Fractions are truncated, so that an index is too large only from the number of categories on.
            above = int(np.count_nonzero(values[:, j] >= high[j] + 1))
            counts[j, 1:] = missing, below + above, 0, 0
        else:
            counts[j, 1:] = missing, 0, below, above
