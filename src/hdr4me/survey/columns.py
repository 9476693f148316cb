"""Whole columns cleaned by the rule of their dimension, with data-quality counts; loaded with NumPy and Arrow only.

A value means here what it means to the client. Nothing is copied that need not be: numbers stay in the memory of their
Arrow array and the kernel clamps them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hdr4me.channels.codebook import PRECISION
from hdr4me.errors import InvalidInput
from hdr4me.survey.dimension import FAULTS, FRACTION_BITS, Dimension
from hdr4me.survey.texts import as_text, is_text, texts_as_numbers
from hdr4me.survey.values import as_number, is_blank

if TYPE_CHECKING:
    from hdr4me.survey.categorical import Categorical
    from hdr4me.survey.numeric import Numeric
    from hdr4me.survey.product import Product
    from hdr4me.survey.selection import Selection
    from hdr4me.survey.vector import Vector


Counts = tuple[int, int, int, int]
"""How many values are missing, unknown, below and above the range, in the order of `FAULTS`."""
Floats = NDArray[np.float64]


class Column:
    """A clean column: the array that encoders take, and what became of the values.

    `array` is an Arrow array of a primitive type, null where the dimension's default counts: numbers in the
    dimension's units, positions (see `Dimension.place`), or indices into `lut`, the category of each index. `points`
    are the vectors [n, n_asked] of a dimension that is a vector.
    """

    array: Any
    lut: Sequence[int] | None = None
    points: Floats | None = None

    def counts(self) -> Counts:
        """How many values are missing, unknown, below and above the range."""
        raise NotImplementedError

    def values(self) -> Any:
        """The clean values in the dimension's own units, as an Arrow array."""
        raise NotImplementedError


# -- numbers ---------------------------------------------------------------------------------------------------


class NumberColumn(Column):
    """Numbers between two bounds; text is read as a number if it is one."""

    def __init__(self, dimension: Numeric, column: Any) -> None:
        self._dimension = dimension
        self.array, self._n_unknown = _numbers(column, dimension.name)

    def counts(self) -> Counts:
        low, high = self._dimension.bounds
        missing, below, above = number_counts(_valid(self.array), low, high)
        return self.array.null_count + missing - self._n_unknown, self._n_unknown, below, above

    def values(self) -> Any:
        dimension, numbers = self._dimension, as_floats(self.array)
        inside = np.clip(numbers, dimension.low, dimension.high)
        if dimension.optional:
            return pa.array(inside, mask=np.isnan(numbers))
        return pa.array(np.where(np.isnan(numbers), dimension.default, inside))


def number_counts(values: NDArray[Any], low: float, high: float) -> tuple[int, int, int]:
    """How many values are NaN, below `low` and above `high`; two passes if there are none."""
    if not len(values):
        return 0, 0, 0
    least, largest = values.min(), values.max()
    missing = int(np.isnan(values).sum()) if least != least else 0
    # Comparisons in double precision, like the kernel's: a NaN is in no range and is not counted twice.
    below = 0 if least >= low else int(np.count_nonzero(values < np.float64(low)))
    above = 0 if largest <= high else int(np.count_nonzero(values > np.float64(high)))
    return missing, below, above


def as_floats(array: Any) -> Floats:
    """An array of numbers in double precision, NaN where it is null."""
    return np.asarray(array.cast(pa.float64()).fill_null(np.nan))


def _valid(array: Any) -> NDArray[Any]:
    """The values of an Arrow array that are not null."""
    if array.null_count or not len(array):
        return np.asarray(array.drop_null())
    dtype = np.dtype(array.type.to_pandas_dtype())
    return np.frombuffer(array.buffers()[1], dtype)[array.offset : array.offset + len(array)]


def _numbers(column: Any, name: str) -> tuple[Any, int]:
    """An array of a primitive type, and how many texts are not numbers; those are null or NaN."""
    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        return _numbers(_plain_dictionary(column).dictionary_decode(), name)
    if is_text(kind):
        return texts_as_numbers(column)
    if types.is_float16(kind):
        return column.cast(pa.float32()), 0
    if types.is_integer(kind) or types.is_floating(kind):
        return column, 0
    if types.is_boolean(kind):
        return column.cast(pa.uint8()), 0
    if types.is_decimal(kind):
        return column.cast(pa.float64()), 0
    if types.is_null(kind):
        return pa.nulls(len(column), pa.uint8()), 0
    raise InvalidInput(f"column {name!r} is of type {kind}: numbers are expected")


class ProductColumn(Column):
    """Products on [−1, 1] of two columns of numbers, each cleaned by its own dimension."""

    def __init__(self, dimension: Product, columns: Sequence[Any]) -> None:
        first, second = (
            as_floats(_numbers(column, factor.name)[0])
            for column, factor in zip(columns, dimension.both, strict=True)
        )
        self.array = pa.array(product_of(first, second, dimension))

    def counts(self) -> Counts:
        """None: what is wrong with a factor is counted in its own column."""
        return 0, 0, 0, 0

    def values(self) -> Any:
        return self.array


def product_of(first: NDArray[Any], second: NDArray[Any], dimension: Product) -> Floats:
    """The products on [−1, 1] of two arrays of numbers in the product's order; NaN counts as the number's default."""
    a, b = dimension.both
    return _scaled(first, a) * _scaled(second, b)


def _scaled(values: NDArray[Any], factor: Numeric) -> Floats:
    found = values.astype(np.float64)
    found = np.clip(np.where(np.isnan(found), factor.default, found), factor.low, factor.high)
    return np.asarray(2.0 * ((found - factor.low) / (factor.high - factor.low)) - 1.0)


# -- values by their distinct ones -------------------------------------------------------------------------------


class DistinctColumn(Column):
    """Any dimension's column: its own rule for one value, applied once to each distinct value."""

    def __init__(self, dimension: Dimension, columns: Sequence[Any], size: int) -> None:
        self._dimension, self._size = dimension, size
        self._distinct, self._indices = _encoded(columns)
        self._places = [dimension.place(value, size) for value in [*self._distinct, None]]
        if dimension.reads == "category":
            self.array, self.lut = self._indices, [place >> FRACTION_BITS for place in self._places]
        else:
            self.array = pa.array(np.array(self._places, np.float64)).take(self._indices)

    def counts(self) -> Counts:
        found: Counter[str] = Counter({self._dimension.quality(None): self._indices.null_count})
        for value, times in zip(self._distinct, self._times(), strict=True):
            found[self._dimension.quality(value)] += times
        missing, unknown, low, high = (found[fault] for fault in FAULTS)
        return missing, unknown, low, high

    def values(self) -> Any:
        dimension, places = self._dimension, np.array(self._places)
        each: Any
        if dimension.reads == "category":
            each = pa.array([dimension.categories[place] for place in places >> FRACTION_BITS], pa.string())
        else:
            low, high = dimension.bounds
            top = (self._size - 1 - (dimension.reads == "optional")) << FRACTION_BITS
            each = pa.array(low + (high - low) * (places / top), mask=places > top)
        return self._by_row(each)

    def _by_row(self, each: Any) -> Any:
        """The value of each row, given those of the distinct values and of null."""
        return each.take(self._indices.cast(pa.int64()).fill_null(len(self._distinct)))

    def _times(self) -> list[int]:
        """How often each distinct value occurs."""
        times: list[int] = np.bincount(_valid(self._indices), minlength=len(self._distinct)).tolist()
        return times


def _encoded(columns: Sequence[Any]) -> tuple[list[Any], Any]:
    """The distinct values of a column, and the index of each row's value, null where the row is null.

    Rows of several columns, and lists, are taken one by one.
    """
    column = columns[0]
    if len(columns) > 1:
        rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
        return rows, pa.array(np.arange(len(rows)))
    if pa.types.is_null(column.type):
        return [], pa.nulls(len(column), pa.uint8())
    if not pa.types.is_dictionary(column.type):
        column = as_text(column) if is_text(column.type) else column
        column = column.cast(pa.float32()) if pa.types.is_float16(column.type) else column
        try:
            column = pc.dictionary_encode(column)
        except pa.ArrowNotImplementedError:
            return column.to_pylist(), pa.array(np.arange(len(column)))
    column = _plain_dictionary(column)
    labels = column.dictionary.to_pylist()
    if pa.types.is_float32(
        column.dictionary.type
    ):  # 2.1 is 2.1, as in a text file, and not 2.0999999046325684
        labels = [None if x is None else float(str(np.float32(x))) for x in labels]
    return labels, column.indices


def _plain_dictionary(column: Any) -> Any:
    """The same column, its dictionary of texts one of ordinary strings."""
    if not is_text(column.type.value_type):
        return column
    return pa.DictionaryArray.from_arrays(column.indices, as_text(column.dictionary))


class CategoryColumn(DistinctColumn):
    """One of some categories; each distinct label is looked up once."""

    def __init__(self, dimension: Categorical, column: Any) -> None:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        _check_category(kind, dimension)
        self._dimension = dimension
        self._distinct, self.array = _encoded([column])
        self._indices = self.array
        self._found = [None if value is None else dimension.find(value) for value in self._distinct]
        default = dimension.index[dimension.default]
        self.lut = [default if k is None else k for k in self._found] or [default]

    def counts(self) -> Counts:
        missing, unknown = self._indices.null_count, 0
        if None in self._found:
            for value, k, times in zip(self._distinct, self._found, self._times(), strict=True):
                missing += times if k is None and is_blank(value) else 0
                unknown += times if k is None and not is_blank(value) else 0
        return missing, unknown, 0, 0

    def values(self) -> Any:
        assert isinstance(self.lut, list)
        default = self._dimension.place(None, 0) >> FRACTION_BITS
        labels = pa.array(self._dimension.categories, pa.string())
        return self._by_row(labels.take(pa.array([*self.lut[: len(self._distinct)], default])))


def _check_category(kind: Any, dimension: Categorical) -> None:
    """Refuse a type that cannot hold categories, and truth values where no category is true or false."""
    types = pa.types
    if types.is_boolean(kind) and dimension.find(True) is None and dimension.find(False) is None:
        raise InvalidInput(
            f"column {dimension.name!r} holds truth values, and its categories have neither true nor false"
        )
    if not (is_text(kind) or types.is_null(kind) or types.is_boolean(kind) or _is_number(kind)):
        raise InvalidInput(f"column {dimension.name!r} is of type {kind}: categories are expected")


class SelectionColumn(DistinctColumn):
    """Several categories at once: lists, or texts with a separator."""

    def __init__(self, dimension: Selection, column: Any, size: int) -> None:
        if not _may_choose(column.type, dimension):
            raise InvalidInput(
                f"column {dimension.name!r} is of type {column.type}: lists of categories, or texts with '|' between "
                "them, are expected"
            )
        super().__init__(dimension, [column], size)
        self._selection = dimension

    def counts(self) -> Counts:
        """Missing; no known choice; some unknown beside a known choice; more choices than are allowed."""
        missing, unknown, some, many = self._indices.null_count, 0, 0, 0
        for value, times in zip(self._distinct, self._times(), strict=True):
            found, wrong = self._selection.choices(value)
            missing += times * (value is None or value == "")
            unknown += times * (not found and wrong > 0)
            some += times * bool(found and wrong)
            many += times * (len(found) > self._selection.at_most)
        return missing, unknown, some, many

    def values(self) -> Any:
        labels, clean = self._selection.categories, self._selection.clean
        chosen = [[labels[k] for k in clean(value)] for value in [*self._distinct, None]]
        return self._by_row(pa.array(chosen, pa.list_(pa.string())))


_LISTS = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")


def _may_choose(kind: Any, dimension: Selection) -> bool:
    """Whether a type can hold choices: lists and texts; single numbers and truth values if categories are such."""
    types: Any = pa.types
    if types.is_dictionary(kind) or any(getattr(types, f"is_{x}", types.is_null)(kind) for x in _LISTS):
        return types.is_null(kind) or _may_choose(kind.value_type, dimension)
    if is_text(kind) or types.is_null(kind):
        return True
    if types.is_boolean(kind):
        return bool(dimension.choices([True, False])[0])
    numbers = (x for x in dimension.categories if x.lower() not in ("true", "false"))
    return _is_number(kind) and any(math.isfinite(as_number(x)) for x in numbers)


# -- vectors ---------------------------------------------------------------------------------------------------

_ONE = (1 << PRECISION - 1) - 1


class VectorColumn(Column):
    """Vectors in the ball of norm 1, row by row what `Vector.point` gives."""

    def __init__(self, dimension: Vector, column: Any) -> None:
        self._dimension = dimension
        found = np.full((len(column), dimension.length), np.nan)
        there, right = _fill(column, dimension, found)
        whole = np.isfinite(found)
        some = whole.any(axis=1)
        if dimension.optional:
            there &= some | ~right
        found[~whole] = 0.0
        largest = np.maximum(np.abs(found).max(axis=1), 1e-300)
        norm = largest * np.sqrt(np.square(found / largest[:, None]).sum(axis=1))
        found /= np.maximum(norm, dimension.norm)[:, None]
        found = np.round(found * _ONE) / _ONE
        self._counts = (
            int((~there).sum()),
            int((there & ~whole.all(axis=1)).sum()),
            0,
            int((norm > dimension.norm * (1 + 1e-12)).sum()),
        )
        self.points = np.column_stack([found, some - 1.0]) if dimension.optional else found
        self.array = pa.array(np.zeros(len(column)))

    def counts(self) -> Counts:
        return self._counts

    def values(self) -> Any:
        dimension, points = self._dimension, self.points
        assert points is not None
        flat = pa.array((points[:, : dimension.length] * dimension.norm).ravel())
        missing = pa.array(points[:, -1] < 0) if dimension.optional else None
        return pa.FixedSizeListArray.from_arrays(flat, dimension.length, mask=missing)


def _fill(column: Any, dimension: Vector, out: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Write the vectors of the right length; which rows have a value, and which are of the right length."""
    there, right = ~np.asarray(column.is_null()), np.zeros(len(column), bool)
    kind, types = column.type, pa.types
    rows: Sequence[Any] = ()
    if is_text(kind):
        rows = as_text(column).to_pylist()
        there = np.array([bool(text) for text in rows], bool)
    elif (types.is_fixed_size_list(kind) and kind.list_size != dimension.length) or types.is_null(kind):
        return there, right
    else:
        if types.is_fixed_size_list(kind):
            column = column.cast(pa.list_(kind.value_type))
        if not (types.is_list(column.type) or types.is_large_list(column.type)):
            raise InvalidInput(f"column {dimension.name!r} is of type {kind}: lists of numbers are expected")
        inner = column.values.type
        if is_text(inner) or types.is_null(inner):
            rows = column.to_pylist()
        elif _is_number(inner) or types.is_decimal(inner) or types.is_boolean(inner):
            chosen = _lists(column, dimension.length, out)
            right[chosen] = True
        else:
            raise InvalidInput(f"column {dimension.name!r} is of type {kind}: lists of numbers are expected")
    for row, value in enumerate(rows):
        if (numbers := dimension.numbers(value)) is not None:
            out[row], right[row] = numbers, True
    return there, right


def _lists(column: Any, length: int, out: Floats) -> NDArray[np.int64]:
    """Write the lists of numbers of this length; which rows they are."""
    offsets = np.asarray(column.offsets, np.int64)
    kind = pa.uint8() if pa.types.is_boolean(column.values.type) else pa.float64()
    flat = column.values.cast(kind, safe=False).to_numpy(zero_copy_only=False).astype(np.float64)
    rows = np.flatnonzero((np.diff(offsets) == length) & ~np.asarray(column.is_null()))
    out[rows] = flat[offsets[rows][:, None] + np.arange(length)]
    return rows


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
