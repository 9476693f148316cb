"""A column of vectors as a matrix, cleaned as the device cleans them, and the account of what was cleaned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hdr4me.channels.codebook import PRECISION
from hdr4me.errors import InvalidInput
from hdr4me.io.texts import as_text, is_text
from hdr4me.survey import Vector

__all__ = ["vectors_of"]

_ONE = (1 << PRECISION - 1) - 1


def vectors_of(column: Any, dimension: Vector) -> tuple[NDArray[np.float64], tuple[int, int, int]]:
    """Vectors [n, n_asked] of the ball of norm 1, and how many were missing, no vector, and too long.

    Row by row these are `Vector.point`: an optional vector has one coordinate more.

    Parameters
    ----------
    column
        An Arrow array of lists of numbers, or of texts with `|` between the numbers.
    dimension
        What the column should hold.
    """
    found = np.full((len(column), dimension.length), np.nan)
    there, right = ~np.asarray(column.is_null()), np.zeros(len(column), bool)
    if is_text(column.type):
        texts = as_text(column).to_pylist()
        there = np.array([text is not None and bool(text) for text in texts], bool)
        for row in np.flatnonzero(there).tolist():
            _write(row, dimension.numbers(texts[row]), found, right)
    elif pa.types.is_null(column.type):
        pass
    else:
        _lists(column, dimension, found, right)
    whole = np.isfinite(found)
    some = whole.any(axis=1)
    if dimension.optional:
        there &= some | ~right
    found[~whole] = 0.0
    largest = np.maximum(np.abs(found).max(axis=1), 1e-300)
    size = largest * np.sqrt(np.square(found / largest[:, None]).sum(axis=1))
    long = size > dimension.norm * (1 + 1e-12)
    found /= np.maximum(size, dimension.norm)[:, None]
    found = np.round(found * _ONE) / _ONE
    wrong = there & ~whole.all(axis=1)
    if dimension.optional:
        found = np.column_stack([found, some - 1.0])
    return found, (int((~there).sum()), int(wrong.sum()), int(long.sum()))


def _write(row: int, numbers: list[float] | None, out: NDArray[np.float64], right: NDArray[np.bool_]) -> None:
    """Write one row, if it is of the right length."""
    if numbers is not None:
        out[row], right[row] = numbers, True


def _lists(column: Any, dimension: Vector, out: NDArray[np.float64], right: NDArray[np.bool_]) -> None:
    """Write the lists of the right length and mark their rows; the others stay NaN."""
    kind = column.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        raise InvalidInput(f"column {dimension.name!r} is of type {kind}: lists of numbers are expected")
    if pa.types.is_fixed_size_list(kind):
        if kind.list_size != dimension.length:
            return
        column = column.cast(pa.list_(kind.value_type))
    numbers, offsets = column.values, np.asarray(column.offsets, np.int64)
    if is_text(numbers.type) or pa.types.is_null(numbers.type):
        rows = column.to_pylist()
        for row, value in enumerate(rows):
            _write(row, dimension.numbers(value), out, right)
        return
    if not (
        pa.types.is_integer(numbers.type)
        or pa.types.is_floating(numbers.type)
        or pa.types.is_decimal(numbers.type)
        or pa.types.is_boolean(numbers.type)
    ):
        raise InvalidInput(f"column {dimension.name!r} is of type {kind}: lists of numbers are expected")
    kind = pa.uint8() if pa.types.is_boolean(numbers.type) else pa.float64()
    flat = numbers.cast(kind, safe=False).to_numpy(zero_copy_only=False).astype(np.float64)
    rows = np.flatnonzero((np.diff(offsets) == dimension.length) & ~np.asarray(column.is_null()))
    out[rows] = flat[offsets[rows][:, None] + np.arange(dimension.length)]
    right[rows] = True
