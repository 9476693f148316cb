"""Lengths of time in whole days, as people write them; standard library only."""

from __future__ import annotations

import re
from typing import Any

from hdr4me.errors import InvalidInput

_UNITS = {"day": 1, "week": 7, "month": 30, "quarter": 91, "year": 365, "d": 1, "w": 7, "m": 30, "y": 365}
_ALLOWED = (
    "a number of days from 1 to 36500, or a text such as day, week, month, quarter, year, 30d, 2w, 6m, 1y"
)
_LONGEST = 36_500


def days(length: Any, parameter: str = "every") -> int:
    """The days in a length of time: a whole number, "week", "30d", "2 weeks"; a month has 30, a year 365.

    >>> [days(x) for x in (7, "week", "30d", "2 weeks", "1y")]
    [7, 7, 30, 14, 365]
    """
    found = 0
    if type(length) is int:
        found = length
    elif isinstance(length, str):
        match = re.fullmatch(r"(\d{1,5})?\s*([a-z]+?)s?", length.strip().lower(), re.ASCII)
        if match and match[2] in _UNITS:
            found = int(match[1] or 1) * _UNITS[match[2]]
    if not 1 <= found <= _LONGEST:
        raise InvalidInput.of(parameter, length, _ALLOWED)
    return found


def rounds(every: Any, during: Any) -> int:
    """How many collections there are when one is made `every` so often `during` a time, the first on day one.

    >>> rounds("week", "1y"), rounds("day", "30d")
    (53, 30)
    """
    return -(-days(during, "during") // days(every))
