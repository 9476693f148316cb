"""Records in Arrow or NumPy as columns of addresses: nothing is copied that need not be.

A value means here what it means to the client: text in a numeric column is read as a number if it is one, a
category is known by its label, and whatever is missing or wrong becomes the declared default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.io.choices import check_choices
from hdr4me.io.products import product_of, with_products
from hdr4me.io.texts import as_text, is_text, texts_as_numbers
from hdr4me.io.vectors import vectors_of
from hdr4me.kernels.exact.perturb import Columns
from hdr4me.kernels.machine.intrinsics import DTYPES
from hdr4me.survey import Categorical, Numeric, Product, Selection, Survey, Vector

__all__ = ["KNOWN", "MISSING", "UNKNOWN", "Source", "check_matrix", "from_batch", "from_matrix"]

KNOWN, MISSING, UNKNOWN = range(3)
"""What an entry of a categorical column's dictionary is."""


class Source:
    """Columns, how many records they hold, and the owners of the memory they point to.

    For the account of a batch, `unknown` is the number of texts in each numeric column that are no number, and
    `states` has for each categorical column what each entry of its dictionary is, and `selections` has what
    `Selection.account` or `Vector.account` counts in each column of several choices or of vectors. `vectors` are those
    of the dimensions that are vectors.
    """

    def __init__(
        self,
        columns: Columns,
        n: int,
        owners: Sequence[Any],
        unknown: Sequence[int] = (),
        states: Sequence[NDArray[np.uint8] | None] = (),
        selections: Mapping[int, tuple[int, int, int, int]] = MappingProxyType({}),
        vectors: Mapping[int, NDArray[np.float64]] = MappingProxyType({}),
    ) -> None:
        self.columns = columns
        self.n = n
        self.owners = owners
        self.unknown = unknown
        self.states = states
        self.selections = selections
        self.vectors = vectors


def check_matrix(values: NDArray[Any], survey: Survey) -> NDArray[Any]:
    """The same matrix of real numbers, a masked value a missing one; anything else is named."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    if values.dtype.kind not in "buif":
        raise InvalidInput(f"records of type {values.dtype}: expected real numbers")
    if any(isinstance(dimension, Selection) for dimension in survey.schema):
        raise InvalidInput(
            "a matrix cannot hold several choices at once: give a table with a column of lists"
        )
    if any(isinstance(dimension, Vector) for dimension in survey.schema):
        return _check_vectors(values, survey)
    if values.ndim != 2 or values.shape[1] != len(survey.schema.columns):
        raise InvalidInput(f"records of shape {values.shape}: expected (n, {len(survey.schema.columns)})")
    return values


def _check_vectors(values: NDArray[Any], survey: Survey) -> NDArray[Any]:
    first = survey.schema.dimensions[0]
    if len(survey.schema) > 1 or not isinstance(first, Vector):
        raise InvalidInput("a matrix holds vectors or numbers, not both: give a table with a column of lists")
    if values.ndim != 2 or values.shape[1] != first.length:
        raise InvalidInput(f"records of shape {values.shape}: expected (n, {first.length})")
    return values


@lru_cache(maxsize=32)
def _category_counts(survey: Survey) -> NDArray[np.int64]:
    """How many categories each dimension has, 0 for a number; the same array each time, which nobody changes."""
    return np.array([len(x.categories) if isinstance(x, Categorical) else 0 for x in survey.schema], np.int64)


def from_matrix(values: NDArray[Any], survey: Survey) -> Source:
    """A matrix [n, columns] of numbers in any layout; a categorical dimension's numbers are category indices."""
    values = check_matrix(values, survey)
    first = survey.schema.dimensions[0]
    if isinstance(first, Vector):
        names = [first.name]
        whole = pa.FixedSizeListArray.from_arrays(
            pa.array(np.ascontiguousarray(values, np.float64).ravel()), first.length
        )
        return from_batch(pa.RecordBatch.from_arrays([whole], names), survey)
    values = with_products(values, survey.schema)
    if values.dtype not in DTYPES:
        values = values.astype(np.float64)
    n, d = values.shape
    sizes = _category_counts(survey)
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
    """A record batch whose columns are the survey's own (`Schema.columns`), in its order."""
    d = len(survey.schema)
    address, valid = np.zeros((2, d), np.uint64)
    stride, valid_offset, lut_start, lut_size = np.zeros((4, d), np.int64)
    dtype = np.zeros(d, np.uint8)
    luts: list[list[int]] = [[0]]
    owners: list[object] = []
    unknown: list[int] = []
    states: list[NDArray[np.uint8] | None] = []
    selections: dict[int, tuple[int, int, int, int]] = {}
    vectors: dict[int, NDArray[np.float64]] = {}
    n_lut = 1
    at = {name: place for place, name in enumerate(survey.schema.columns)}
    for j, dimension in enumerate(survey.schema):
        column: Any = None if isinstance(dimension, Product) else batch.column(at[dimension.name])
        array: Any
        if isinstance(dimension, Product):
            array = _products(batch, at, dimension)
            unknown.append(0)
            states.append(None)
        elif isinstance(dimension, Vector):
            vectors[j], (missing, wrong, long) = vectors_of(column, dimension)
            selections[j] = (missing, wrong, 0, long)
            array = pa.nulls(0, pa.float64()) if not len(column) else pa.array(np.zeros(len(column)))
            unknown.append(0)
            states.append(None)
        elif not isinstance(dimension, Numeric | Categorical):
            values, where = _distinct(column)
            if isinstance(dimension, Selection):
                check_choices(column.type, dimension)
                times = np.bincount(where, minlength=len(values)).tolist()
                selections[j] = dimension.account(zip(values, times, strict=True))
            array = _placed(values, j, survey).take(where)
            unknown.append(0)
            states.append(None)
        elif isinstance(dimension, Categorical):
            array, lut, state = _indices(column, dimension)
            lut_start[j], lut_size[j] = n_lut, len(lut)
            n_lut += len(lut)
            luts.append(lut)
            unknown.append(0)
            states.append(state)
        else:
            array, n_unknown = _numbers(column, dimension)
            unknown.append(n_unknown)
            states.append(None)
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
    return Source(columns, batch.num_rows, owners, unknown, states, selections, vectors)


def _products(batch: pa.RecordBatch, at: Mapping[str, int], dimension: Product) -> Any:
    """A column of products on [−1, 1]; the two columns are understood as their own dimensions understand them."""
    first, second = (
        np.asarray(_numbers(batch.column(at[factor.name]), factor)[0].cast(pa.float64()).fill_null(np.nan))
        for factor in dimension.both
    )
    return pa.array(product_of(first, second, dimension), pa.float64())


def _distinct(column: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """The different values of a column of texts, and which of them stands in each row; any other column as it is."""
    if not is_text(column.type):
        return column.to_pylist(), np.arange(len(column))
    encoded = pc.dictionary_encode(as_text(column), null_encoding="encode")
    return encoded.dictionary.to_pylist(), np.asarray(encoded.indices, np.int64)


def _placed(values: Sequence[Any], j: int, survey: Survey) -> Any:
    """The positions of a dimension which alone knows how its values become inputs."""
    question = survey.questions[survey.question_of(j)]
    size = question.channel.takes[question.dimensions.index(j)].size
    dimension = survey.schema.dimensions[j]
    return pa.array([float(dimension.place(value, size)) for value in values], pa.float64())


def _numbers(column: Any, dimension: Numeric) -> tuple[Any, int]:
    """An array of a primitive type that the kernel reads, and how many texts are no number; those are missing."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _numbers(_plain_dictionary(column).dictionary_decode(), dimension)
    if is_text(kind):
        return texts_as_numbers(column)
    if pa.types.is_float16(kind):
        return column.cast(pa.float32()), 0
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return column, 0
    if pa.types.is_boolean(kind):
        return column.cast(pa.uint8()), 0
    if pa.types.is_decimal(kind):
        return column.cast(pa.float64()), 0
    if pa.types.is_null(kind):
        return pa.nulls(len(column), pa.uint8()), 0
    raise InvalidInput(f"column {dimension.name!r} is of type {kind}: numbers are expected")


def _indices(column: Any, dimension: Categorical) -> tuple[Any, list[int], NDArray[np.uint8]]:
    """Integer indices, null where missing, the category each index stands for, and what each index is."""
    kind = column.type
    if pa.types.is_null(kind):
        return pa.nulls(len(column), pa.uint8()), [0], np.array([MISSING], np.uint8)
    if not pa.types.is_dictionary(kind):
        column = _encoded(column, dimension)
    column = _plain_dictionary(column)
    labels = column.dictionary.to_pylist()
    if pa.types.is_float32(
        column.dictionary.type
    ):  # 2.1 is 2.1, as a text file has it, and not 2.0999999046325684
        labels = [None if x is None else float(str(np.float32(x))) for x in labels]
    if pa.types.is_boolean(column.dictionary.type):
        _check_truth(dimension)
    default = dimension.index[dimension.default]
    lut, states = [default], [MISSING]
    if labels:
        found = [None if label is None else dimension.find(label) for label in labels]
        lut = [default if k is None else k for k in found]
        states = [
            KNOWN if k is not None else MISSING if _is_missing(label) else UNKNOWN
            for k, label in zip(found, labels, strict=True)
        ]
    return column.indices, lut, np.array(states, np.uint8)


def _encoded(column: Any, dimension: Categorical) -> Any:
    kind = column.type
    if is_text(kind):
        return pc.dictionary_encode(as_text(column))
    if pa.types.is_float16(kind):
        return pc.dictionary_encode(column.cast(pa.float32()))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return pc.dictionary_encode(column)
    raise InvalidInput(f"column {dimension.name!r} is of type {kind}: categories are expected")


def _plain_dictionary(column: Any) -> Any:
    """The same column, its dictionary of texts one of ordinary strings."""
    if not is_text(column.type.value_type):
        return column
    return pa.DictionaryArray.from_arrays(column.indices, as_text(column.dictionary))


def _check_truth(dimension: Categorical) -> None:
    """A list of categories that truth values can never meet is told at once: all would become the default."""
    if dimension.find(True) is None and dimension.find(False) is None:
        raise InvalidInput(
            f"column {dimension.name!r} holds truth values, and its categories have neither true nor false"
        )


def _is_missing(label: Any) -> bool:
    if isinstance(label, float):
        return label != label
    return label is None or (isinstance(label, str) and not label.strip())
