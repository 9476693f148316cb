"""Columns of text: as ordinary strings, and as the numbers that they hold, without a loop over the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hdr4me.survey.values import as_number, is_missing_number

_TEXTS = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
_PLAIN = r"^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"
"""A number that Arrow and Python read alike."""
_MARKS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
"""The usual spellings of missing values, so that they are found without a loop."""


def is_text(kind: Any) -> bool:
    """Whether a type is strings, or bytes that may be text."""
    return any(getattr(pa.types, f"is_{name}")(kind) for name in _TEXTS)


def as_text(column: Any) -> Any:
    """The column as strings; bytes that are not UTF-8 become a mark that names no category and no number.

    >>> as_text(pa.array([b"red", b"\\xff", None])).to_pylist()
    ['red', '\ufffd', None]
    """
    try:
        text = column.cast(pa.string())
        text.validate(full=True)
    except pa.ArrowInvalid:
        raw = column.cast(pa.large_binary()).to_pylist()
        return pa.array([None if x is None else x.decode("utf-8", "replace") for x in raw], pa.string())
    return text


def texts_as_numbers(column: Any) -> tuple[Any, int]:
    """The numbers in a column of texts, and how many texts are not numbers; those and blank texts are NaN or null.

    Arrow parses what is plainly a number. Each other distinct text is given once to `as_number`, as on a device.

    >>> numbers, n_unknown = texts_as_numbers(pa.array(["12", " 7 ", "", "1_000", "true", "12 min", None]))
    >>> numbers.to_pylist(), n_unknown
    ([12.0, 7.0, nan, 1000.0, 1.0, nan, nan], 1)
    """
    text = as_text(column)
    for attempt in range(2):
        try:
            return text.cast(pa.float64()), 0
        except pa.ArrowInvalid:  # most often only marks of missing values
            if attempt == 0:
                text = pc.if_else(pc.is_in(text, pa.array(_MARKS)), pa.scalar(None, pa.string()), text)
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
