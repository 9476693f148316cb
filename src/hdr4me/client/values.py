"""From whatever a record holds to a position on a table's levels; standard library only.

A value that is missing or wrong becomes the declared default and one out of range its nearest bound, silently:
nothing here raises because of a value, and what is sent afterwards looks the same.
"""

from __future__ import annotations

import math
from typing import Any

from hdr4me.survey import Categorical, Numeric

__all__ = ["FRACTION_BITS", "as_number", "category", "number", "position"]

FRACTION_BITS = 16
"""A position is a level and sixteen bits of the way to the next one."""


def number(dimension: Numeric, value: Any) -> float:
    """The value inside [low, high]: NaN, None and what is no number become the default; the rest is clamped.

    Text is read as a number if it is one, as CSV files have it; ±inf is out of range like any other large number. The
    texts true and false, in any case, are 1 and 0, as truth values are.

    >>> age = Numeric("age", 0, 120, default=40)
    >>> [number(age, x) for x in (31, "31", -5, 1e400, float("nan"), None, "?", 10**400, True)]
    [31.0, 31.0, 0.0, 120.0, 40.0, 40.0, 40.0, 120.0, 1.0]
    """
    found = as_number(value)
    if math.isnan(found):
        return dimension.default
    return min(max(found, dimension.low), dimension.high)


def as_number(value: Any) -> float:
    """The number that a value is or says, wherever it lies; NaN if it is none.

    >>> [as_number(x) for x in (31, " 31 ", "TRUE", "12 min", None, -(10**400))]
    [31.0, 31.0, 1.0, nan, nan, -inf]
    """
    try:
        return _as_float(value)
    except Exception:  # a value may be an object that raises anything at all
        return math.nan


def _as_float(value: Any) -> float:
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return float(value.strip().lower() == "true")
    try:
        return float(value)
    except OverflowError:  # a whole number beyond every float
        return math.inf if value > 0 else -math.inf


def position(dimension: Numeric, value: Any, n_levels: int) -> int:
    """round(u·(L−1)·2^16) with u = (value − low)/(high − low): the level above 16 bits of fraction.

    >>> position(Numeric("age", 0, 120), 60, 3) / 65536
    1.0
    """
    u = (number(dimension, value) - dimension.low) / (dimension.high - dimension.low)
    return round(u * ((n_levels - 1) << FRACTION_BITS))


def category(dimension: Categorical, value: Any) -> int:
    """The number of the category that the value names, or of the default.

    >>> category(Categorical("smoker", ["no", "yes"]), "yes"), category(Categorical("smoker", ["no", "yes"]), 7)
    (1, 0)
    """
    try:
        found = dimension.find(value)
    except Exception:
        found = None
    return dimension.index[dimension.default] if found is None else found
