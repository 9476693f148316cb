"""Cleaning of whole columns by the rule of their dimension, with data-quality counts; needs NumPy and Arrow.

Numbers stay in the memory of their Arrow array, and the kernel clamps them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hdr4me.channels.codebook import PRECISION
from hdr4me.errors import InvalidInput
from hdr4me.survey.derived import outer_point
from hdr4me.survey.dimension import FAULTS, FRACTION_BITS, Dimension
from hdr4me.survey.values import as_number, is_missing_number

if TYPE_CHECKING:
    from hdr4me.survey.categorical import Categorical, Selection
    from hdr4me.survey.derived import Joint, Outer
    from hdr4me.survey.numeric import Numeric, Product
    from hdr4me.survey.times import Calendar
    from hdr4me.survey.vector import Vector

Counts = tuple[int, int, int, int]  # missing, unknown, below and above the range, in the order of `FAULTS`
Floats = NDArray[np.float64]

_TEXTS = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
_LISTS = ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")
# A number that Arrow and Python parse alike.
_PLAIN = r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"
_MARKS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")  # usual missing values, found without a loop
_FOR_TIMES = " (for dates and times, declare a dimension of type time or calendar)"
_ONE = (1 << PRECISION - 1) - 1


class Column:
    """A clean column: the input of the encoders, and the counts of faulty values.

    `array` is an Arrow array of a primitive type, null where the dimension's default counts. It holds numbers in the
    dimension's units, positions (see `Dimension.encode`), or indices into `lut`, which has the category of each index.
    `points` holds the vectors [n, n_asked] of a `Vector`.
    """

    array: Any
    lut: Sequence[int] | None = None
    points: Floats | None = None

    def counts(self) -> Counts:
        """The numbers of values that are missing, unknown, below and above the range."""
        raise NotImplementedError

    def values(self) -> Any:
        """The clean values in the dimension's own units, as an Arrow array."""
        raise NotImplementedError


# -- numbers ---------------------------------------------------------------------------------------------------


class NumberColumn(Column):
    """Numbers between two bounds; strings that hold a number are converted."""

    def __init__(self, dimension: Numeric, columns: Sequence[Any], size: int) -> None:
        self._dimension = dimension
        self.array, self._n_unknown = _numbers(columns[0], dimension)

    def counts(self) -> Counts:
        low, high = self._dimension.bounds
        missing, below, above = number_counts(_valid(self.array), low, high)
        return self.array.null_count + missing - self._n_unknown, self._n_unknown, below, above

    def values(self) -> Any:
        dimension, numbers = self._dimension, as_floats(self.array)
        inside = np.clip(numbers, dimension.low, dimension.high)
        if dimension.optional:
            return pa.array(inside, mask=np.isnan(numbers))
        return pa.array(np.where(np.isnan(numbers), dimension.fallback, inside))


def number_counts(values: NDArray[Any], low: float, high: float) -> tuple[int, int, int]:
    """The numbers of values that are NaN, below `low` and above `high`; two passes if there are none."""
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
    return np.asarray(
        array.cast(pa.float64(), safe=False).fill_null(np.nan)
    )  # integers above 2^53 are rounded


def _valid(array: Any) -> NDArray[Any]:
    return np.asarray(array.drop_null())


def _numbers(column: Any, dimension: Numeric) -> tuple[Any, int]:
    """An array of a primitive type, and the number of strings that are not numbers; these are null or NaN."""
    kind, types = column.type, pa.types
    if dimension.is_time:
        return _times_as_numbers(column, dimension)
    if types.is_dictionary(kind):
        return _numbers(_plain_dictionary(column).dictionary_decode(), dimension)
    if is_text(kind):
        return texts_as_numbers(column)
    if types.is_integer(kind) or types.is_float32(kind) or types.is_float64(kind):
        return column, 0
    if types.is_float16(kind) or types.is_decimal(kind):
        return column.cast(pa.float64()), 0
    if types.is_boolean(kind) or types.is_null(kind):
        return column.cast(pa.uint8()), 0
    hint = _FOR_TIMES if types.is_temporal(kind) else ""
    raise InvalidInput(f"column {dimension.name!r} is of type {kind}: numbers are expected{hint}")


def _times_as_numbers(column: Any, dimension: Numeric) -> tuple[Any, int]:
    """The numbers of dates and times, each distinct value by the rule of a device, and the number of unknown values."""
    distinct, indices = _encoded([_times_as_text(column, dimension.name)])
    numbers = np.array([dimension.number(value) for value in distinct], np.float64)
    unknown = np.array([dimension.quality(value) == "unknown" for value in distinct], bool)
    n_unknown = int(unknown[_valid(indices)].sum()) if len(distinct) else 0
    return pa.array(numbers).take(indices.cast(pa.int64())), n_unknown


def _times_as_text(column: Any, name: str) -> Any:
    """A column of dates and times as ISO 8601 strings."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_temporal(kind):
        return column.cast(pa.string())
    if is_text(kind) or pa.types.is_null(kind):
        return column
    raise InvalidInput(f"column {name!r} is of type {kind}: dates or times are expected")


class ProductColumn(Column):
    """Products on [−1, 1] of two columns of numbers; faults are counted in the columns of the factors."""

    def __init__(self, dimension: Product, columns: Sequence[Any], size: int) -> None:
        pairs = zip(columns, dimension.both, strict=True)
        first, second = (as_floats(_numbers(column, factor)[0]) for column, factor in pairs)
        self.array = pa.array(product_of(first, second, dimension))

    def counts(self) -> Counts:
        return 0, 0, 0, 0

    def values(self) -> Any:
        return self.array


def product_of(first: NDArray[Any], second: NDArray[Any], dimension: Product) -> Floats:
    """The products on [−1, 1] of two arrays of numbers in the product's order; NaN counts as the number's default."""
    found = np.ones(len(first))
    for values, factor in zip((first, second), dimension.both, strict=True):
        clean = np.clip(np.where(np.isnan(values), factor.fallback, values), factor.low, factor.high)
        found *= 2.0 * ((clean - factor.low) / (factor.high - factor.low)) - 1.0
    return found


# -- distinct values -------------------------------------------------------------------------------


class DistinctColumn(Column):
    """The column of any dimension: its rule for one value, applied once to each distinct value."""

    def __init__(self, dimension: Dimension, columns: Sequence[Any], size: int) -> None:
        self._dimension, self._size = dimension, size
        self._distinct, self._indices = _encoded(columns)
        self._places = [dimension.encode(value, size) for value in [*self._distinct, None]]
        if dimension.is_category:
            self.array, self.lut = self._indices, [place >> FRACTION_BITS for place in self._places]
        else:
            self.array = pa.array(np.array(self._places, np.float64)).take(self._indices)

    def counts(self) -> Counts:
        found: Counter[str] = Counter()
        times = np.bincount(_valid(self._indices), minlength=len(self._distinct)).tolist()
        for value, n in zip([*self._distinct, None], [*times, self._indices.null_count], strict=True):
            for fault in self._faults(value):
                found[fault] += n
        missing, unknown, low, high = (found[fault] for fault in FAULTS)
        return missing, unknown, low, high

    def _faults(self, value: Any) -> Iterable[str]:
        return (self._dimension.quality(value),)

    def values(self) -> Any:
        dimension, places = self._dimension, np.array(self._places)
        each: Any
        if dimension.is_category:
            each = pa.array([dimension.categories[place] for place in places >> FRACTION_BITS], pa.string())
        else:
            low, high = dimension.bounds
            top = (self._size - 1 - dimension.has_gaps) << FRACTION_BITS
            each = pa.array(low + (high - low) * (places / top), mask=places > top)
        return self._by_row(each)

    def _by_row(self, each: Any) -> Any:
        """The result of each row, from the results of the distinct values and of null."""
        return each.take(self._indices.cast(pa.int64()).fill_null(len(self._distinct)))


def _encoded(columns: Sequence[Any]) -> tuple[list[Any], Any]:
    """The distinct values of a column, or all rows of several columns, and the index of each row (null for null)."""
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
    if pa.types.is_float32(column.dictionary.type):
        # 2.1 is 2.1, as in a text file, and not 2.0999999046325684.
        labels = [None if x is None else float(str(np.float32(x))) for x in labels]
    return labels, column.indices


def _plain_dictionary(column: Any) -> Any:
    """The same column with a dictionary of ordinary strings."""
    if not is_text(column.type.value_type):
        return column
    return pa.DictionaryArray.from_arrays(column.indices, as_text(column.dictionary))


class CategoryColumn(DistinctColumn):
    """A categorical column, of a type that can hold categories."""

    def __init__(self, dimension: Categorical, columns: Sequence[Any], size: int) -> None:
        types, kind = pa.types, columns[0].type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        if types.is_boolean(kind) and dimension.find(True) is None and dimension.find(False) is None:
            raise InvalidInput(
                f"column {dimension.name!r} holds Booleans, but neither true nor false is one of its categories"
            )
        if not (is_text(kind) or types.is_null(kind) or types.is_boolean(kind) or _is_number(kind)):
            hint = _FOR_TIMES if types.is_temporal(kind) else ""
            hint = "; convert it to integers or strings" if types.is_decimal(kind) else hint
            raise InvalidInput(f"column {dimension.name!r} is of type {kind}: categories are expected{hint}")
        super().__init__(dimension, columns, size)


class CalendarColumn(DistinctColumn):
    """The weekday, month or hour of a column of dates and times."""

    def __init__(self, dimension: Calendar, columns: Sequence[Any], size: int) -> None:
        super().__init__(dimension, [_times_as_text(columns[0], dimension.name)], size)


class SelectionColumn(DistinctColumn):
    """Several categories at once: lists, or strings with a separator."""

    _dimension: Selection

    def __init__(self, dimension: Selection, columns: Sequence[Any], size: int) -> None:
        if not _may_choose(columns[0].type, dimension):
            raise InvalidInput(
                f"column {dimension.name!r} is of type {columns[0].type}: lists of categories, or strings with '|' "
                "between them, are expected"
            )
        super().__init__(dimension, columns, size)

    def _faults(self, value: Any) -> Iterable[str]:
        """Missing; no known choice; known and unknown choices; too many choices."""
        found, wrong = self._dimension.choices(value)
        faults = (
            self._dimension.quality(value) == "missing",
            wrong and not found,
            wrong and found,
            self._dimension.at_most < len(found),
        )
        return [name for name, holds in zip(FAULTS, faults, strict=True) if holds]

    def values(self) -> Any:
        labels, clean = self._dimension.categories, self._dimension.clean
        chosen = [[labels[k] for k in clean(value)] for value in [*self._distinct, None]]
        return self._by_row(pa.array(chosen, pa.list_(pa.string())))


def _may_choose(kind: Any, dimension: Selection) -> bool:
    """Whether a type can hold choices: lists and strings; numbers and Booleans if some categories are such."""
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


class VectorColumn(Column):
    """Vectors in the unit ball, each row as `Vector.point` gives it."""

    def __init__(self, dimension: Vector, columns: Sequence[Any], size: int) -> None:
        self._dimension, column = dimension, columns[0]
        found = np.full((len(column), dimension.length), np.nan)
        there, right = _fill(column, dimension, found)
        finite = np.isfinite(found)
        some = finite.any(axis=1)
        if dimension.optional:
            there &= some | ~right
        found[~finite] = 0.0
        largest = np.maximum(np.abs(found).max(axis=1), 1e-300)
        norm = largest * np.sqrt(np.square(found / largest[:, None]).sum(axis=1))
        found /= np.maximum(norm, dimension.norm)[:, None]
        found = np.round(found * _ONE) / _ONE
        unknown, high = there & ~finite.all(axis=1), norm > dimension.norm * (1 + 1e-12)
        self._counts = int((~there).sum()), int(unknown.sum()), 0, int(high.sum())
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
    """Write the vectors of the right length; returns which rows have a value and which have the right length."""
    there, right = ~np.asarray(column.is_null()), np.zeros(len(column), bool)
    kind, types = column.type, pa.types
    rows: Sequence[Any] = ()
    if types.is_fixed_size_list(kind):
        column = column.cast(pa.list_(kind.value_type))
    nested = types.is_list(column.type) or types.is_large_list(column.type)
    inner: Any = column.type.value_type if nested else None
    if is_text(kind):
        rows = as_text(column).to_pylist()
        there = np.array([bool(text) for text in rows], bool)
    elif nested and (is_text(inner) or types.is_null(inner)):
        rows = column.to_pylist()
    elif nested and (_is_number(inner) or types.is_decimal(inner) or types.is_boolean(inner)):
        offsets = np.asarray(column.offsets, np.int64)
        flat = column.values.cast(pa.uint8() if types.is_boolean(inner) else pa.float64(), safe=False)
        right = (np.diff(offsets) == dimension.length) & there
        at = offsets[:-1][right][:, None] + np.arange(dimension.length)
        out[right] = flat.to_numpy(zero_copy_only=False).astype(np.float64)[at]
    elif not types.is_null(kind):
        raise InvalidInput(f"column {dimension.name!r} is of type {kind}: lists of numbers are expected")
    for row, value in enumerate(rows):
        if (numbers := dimension.numbers(value)) is not None:
            out[row], right[row] = numbers, True
    return there, right


# -- types and strings ---------------------------------------------------------------------------------------------


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def is_text(kind: Any) -> bool:
    """Whether a type holds strings, or bytes that may be text."""
    return any(getattr(pa.types, f"is_{name}")(kind) for name in _TEXTS)


def as_text(column: Any) -> Any:
    """The column as strings; bytes that are not UTF-8 become replacement characters."""
    try:
        text = column.cast(pa.string())
        text.validate(full=True)
    except pa.ArrowInvalid:
        raw = column.cast(pa.large_binary()).to_pylist()
        return pa.array([None if x is None else x.decode("utf-8", "replace") for x in raw], pa.string())
    return text


def texts_as_numbers(column: Any) -> tuple[Any, int]:
    """The numbers in a column of strings, NaN or null where there is none, and how many are not numbers.

    Arrow parses ordinary numbers. `as_number`, which devices use, parses each other distinct string once.
    """
    text = as_text(column)
    text = pc.if_else(pc.is_in(text, pa.array(_MARKS)), pa.scalar(None, pa.string()), text)
    try:
        return text.cast(pa.float64()), 0
    except pa.ArrowInvalid:  # some strings are not plain numbers
        pass
    text = pc.utf8_trim_whitespace(text)
    plain = pc.match_substring_regex(text, _PLAIN)
    numbers = pc.if_else(plain, text, pa.scalar(None, pa.string())).cast(pa.float64())
    values = numbers.to_numpy(zero_copy_only=False).copy()
    is_odd = pc.fill_null(pc.invert(plain), False).to_numpy(zero_copy_only=False)
    odd = pc.dictionary_encode(text.filter(pa.array(is_odd)))
    distinct = odd.dictionary.to_pylist()
    read = np.array([as_number(label) for label in distinct], np.float64)
    unknown = np.array([not is_missing_number(label) for label in distinct], bool) & np.isnan(read)
    codes = odd.indices.to_numpy(zero_copy_only=False)
    values[is_odd] = read[codes]
    return pa.array(values), int(unknown[codes].sum())


# -- derived inputs: each part's column is cleaned by its own rule, then combined ----------------------------------


def _sum_of_counts(parts: Iterable[Column]) -> Counts:
    """The faults of all parts together."""
    missing, unknown, low, high = np.sum([part.counts() for part in parts], axis=0).tolist()
    return missing, unknown, low, high


class JointColumn(Column):
    """The combinations of a joint dimension."""

    def __init__(self, dimension: Joint, columns: Sequence[Any], size: int) -> None:
        self._dimension, self._parts = dimension, []
        found = np.zeros(len(columns[0]), np.int64)
        for column, part in zip(columns, dimension.parts, strict=True):
            clean = part.clean_column([column], len(part.categories))
            lut = np.asarray(clean.lut, np.int64)  # the last entry is that of a missing value
            own = lut[np.asarray(clean.array.cast(pa.int64()).fill_null(len(lut) - 1))]
            found = found * len(part.categories) + own
            self._parts.append(clean)
        self.array, self.lut = pa.array(found.astype(np.uint32)), range(size)

    def counts(self) -> Counts:
        return _sum_of_counts(self._parts)

    def values(self) -> Any:
        return pa.array(self._dimension.categories).take(self.array)


class OuterColumn(VectorColumn):
    """The products of standardized numbers, as `Outer.point` gives them."""

    def __init__(self, dimension: Outer, columns: Sequence[Any], size: int) -> None:
        pairs = zip(columns, dimension.parts, strict=True)
        parts = [part.clean_column([column], 2) for column, part in pairs]
        constants = zip(parts, dimension.shift, dimension.scale, strict=True)
        z = [(np.asarray(part.values()) - shift) / scale for part, shift, scale in constants]
        found = np.stack(outer_point(z, dimension.norm, np.maximum), axis=1)
        self._dimension, self._counts = dimension, _sum_of_counts(parts)
        self.points = np.round(found * _ONE) / _ONE
        self.array = pa.array(np.zeros(len(found)))
