"""Conversion and checks of raw values and names; standard library only.

No value of a record raises an exception here.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from numbers import Integral
from typing import Any

from hdr4me.errors import InvalidInput

_INTEGER_TEXT = re.compile("-?[0-9]+[.]0+")
NO_TIMES = "not dates or times"
_MISSING = ("", "na", "n/a", "nan", "-nan", "+nan", "null", "none")
_NOTHING = ("MaskedConstant", "NAType", "NaTType")  # the missing values of NumPy and pandas


def label(value: Any) -> str | None:
    """The category label of a value: a string itself, a number's shortest digits, `true` or `false`; else None.

    A number that needs an exponent (below 0.0001, or a float above 2⁵³) has no label.
    """
    value = plain(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    whole = isinstance(value, float) and value.is_integer() and abs(value) <= 2**53
    if whole or isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, float) and not value.is_integer():
        digits = repr(float(value))
        return digits if digits.strip("-").replace(".", "", 1).isdigit() else None
    return None


def meaning(text: str) -> str:
    """Booleans in lower case and integers without trailing ".0"; any other string unchanged."""
    lower = text.lower()
    if lower in ("true", "false"):
        return lower
    return text.partition(".")[0] if _INTEGER_TEXT.fullmatch(text) else text


def first_twice(names: Iterable[str]) -> str | None:
    """The first duplicate name, if any."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def as_number(value: Any) -> float:
    """A number, or the number in a string; NaN if there is none. Booleans are 1 and 0."""
    try:
        if type(value).__name__ in _NOTHING:  # float() would issue a warning
            return math.nan
        if isinstance(value, str):
            value = value.strip()  # float() does not strip every kind of white space
            if value.lower() in ("true", "false"):
                return float(value.lower() == "true")
        try:
            return float(value)
        except OverflowError:  # an integer beyond the range of floats
            return math.inf if value > 0 else -math.inf
    except Exception:  # a value may be an object that raises any exception
        return math.nan


def is_blank(value: Any) -> bool:
    """Whether a value is missing: None, NaN, a blank string, or a missing value of NumPy or pandas."""
    if isinstance(value, str):
        return not value.strip()
    value = plain(value)
    return value is None or type(value).__name__ in _NOTHING or (isinstance(value, float) and value != value)


def is_missing_number(value: Any) -> bool:
    """Whether a number is missing, as in "" and "NA", rather than not a number."""
    return is_blank(value) or (isinstance(value, str) and value.strip().lower() in _MISSING)


def refused(name: Any, why: str) -> InvalidInput:
    """The error for an invalid declaration of a dimension."""
    return InvalidInput(f"dimension {name!r}: {why}")


def check_name(name: Any) -> None:
    if not isinstance(name, str) or not name or not is_unicode(name):
        raise InvalidInput(
            f"name = {name!r} is not allowed: the name of a dimension must be a non-empty string"
        )


def is_unicode(text: str) -> bool:
    # A lone surrogate has no UTF-8 form.
    return not any("\ud800" <= character <= "\udfff" for character in text)


def plain(value: Any) -> Any:
    """A NumPy scalar as a Python scalar, without importing NumPy."""
    scalar = type(value).__module__ == "numpy" and hasattr(value, "item") and not getattr(value, "shape", ())
    return value.item() if scalar else value


def finite(name: str, field: str, value: Any) -> float:
    given = plain(value)
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    number = as_number(given) if is_number else math.nan
    if not math.isfinite(number):
        raise refused(name, f"{field} = {value!r} must be a finite number")
    return number
