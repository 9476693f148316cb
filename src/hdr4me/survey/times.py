"""Dates and times as numbers with a unit, or as categories of the calendar; standard library only.

A value is an ISO 8601 string (`2013-01-31`, `2013-01-31 17:30`, `17:30`), or an object of `datetime`. A time with an
offset from UTC is that instant for a `Time`; its calendar is that of the clock as written.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from hdr4me.survey.categorical import Categorical
from hdr4me.survey.numeric import Numeric
from hdr4me.survey.values import NO_TIMES, check_name, is_missing_number, refused

_DAY = 86_400_000_000  # microseconds
UNITS = {"s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000, "day": _DAY, "week": 7 * _DAY}
PARTS = {
    "weekday": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
    "month": [
        "January", "February", "March", "April", "May", "June",
        "July", "August", "September", "October", "November", "December",
    ],
    "hour": [f"{hour:02}" for hour in range(24)],
}  # fmt: skip
_CLOCK = r"([0-2]\d):([0-5]\d)(?::([0-5]\d)(?:[.,](\d{1,9}))?)?(Z|[+-]\d\d:?\d\d)?"
_ISO = re.compile(rf"(\d{{4}}-\d\d-\d\d)?(?:(?:[T ]|^){_CLOCK})?", re.ASCII)
_EXPECTED = "a date or time such as 2013-01-31, 2013-01-31 17:30 or 17:30"


class Moment(NamedTuple):
    """A date, a time of day in microseconds, or both; and the offset of the clock from UTC in microseconds."""

    day: date | None
    clock: int | None
    offset: int = 0

    @classmethod
    def of(cls, value: Any) -> Moment | None:
        """The date or time of a value, or None.

        >>> Moment.of("2013-01-31 17:30"), Moment.of("31/01/2013")
        (Moment(day=datetime.date(2013, 1, 31), clock=63000000000, offset=0), None)
        """
        try:
            if type(value).__module__ == "numpy":
                value = str(value)
            text = value.strip() if isinstance(value, str) else value.isoformat()
            found = _ISO.fullmatch(text)
            if found is None or not text:
                return None
            day, hours, minutes, seconds, fraction, zone = found.groups()
            there = None if day is None else date.fromisoformat(day)
            if hours is None:
                return cls(there, None)
            seconds_of_day = 3600 * int(hours) + 60 * int(minutes) + int(seconds or 0)
            clock = seconds_of_day * 1_000_000 + int((fraction or "").ljust(6, "0")[:6])
            return cls(there, clock, _offset(zone)) if clock <= _DAY else None
        except Exception:  # a value may be an object that raises any exception
            return None

    @property
    def time(self) -> datetime:
        """The time in UTC; on the first of January 1970 if there is no date."""
        day = datetime.combine(self.day or date(1970, 1, 1), time())
        return day + timedelta(microseconds=(self.clock or 0) - self.offset)


def _offset(zone: str | None) -> int:
    if zone in (None, "Z"):
        return 0
    assert zone is not None
    minutes = 60 * int(zone[1:3]) + int(zone[-2:])
    return (-1 if zone[0] == "-" else 1) * minutes * UNITS["min"]


@dataclass(frozen=True, init=False)
class Time(Numeric):
    """A date or time between `start` and `end`, as the number of units since `start`.

    Parameters
    ----------
    name
        The name of the column.
    start, end
        The range: two dates (with or without a time), or two times of day. Values outside count as the nearest bound.
        The date of a value does not count if the range is one of times of day.
    unit
        "s", "min", "h", "day" or "week".
    optional
        Whether "no value" is a valid answer, as for `Numeric`. Otherwise a missing or invalid value is refused.

    Examples
    --------
    >>> flight = Time("flight", "2013-01-01", "2013-12-31")
    >>> flight.bounds, flight.clean("2013-02-01"), flight.clean("2013-02-01 12:00")
    ((0.0, 364.0), 31.0, 31.5)
    >>> Time("departure", "00:00", "24:00", "h").clean("2013-02-01 17:30")
    17.5
    """

    kind = "time"
    is_time = True
    _unknown = NO_TIMES

    start: str = ""
    end: str = ""

    def __init__(
        self, name: str, start: str | date, end: str | date, unit: str = "day", optional: bool = False
    ) -> None:
        check_name(name)
        if unit not in UNITS:
            raise refused(name, f"unit = {unit!r} must be one of {', '.join(UNITS)}")
        object.__setattr__(self, "unit", unit)
        for label, value in (("start", start), ("end", end)):
            if Moment.of(value) is None:
                raise refused(name, f"{label} = {value!r} must be {_EXPECTED}")
            object.__setattr__(self, label, value if isinstance(value, str) else value.isoformat())
        high = self.number(self.end)
        if not high > 0:
            raise refused(name, f"start = {self.start!r} must be before end = {self.end!r}, both of one kind")
        super().__init__(name, 0.0, high, optional=optional, unit=unit)

    @cached_property
    def _origin(self) -> Moment:
        found = Moment.of(self.start)
        assert found is not None  # checked by the constructor
        return found

    @property
    def unit_label(self) -> str:
        return f"{self.unit} since {self.start}"

    @property
    def expected(self) -> str:
        return _EXPECTED

    def number(self, value: Any) -> float:
        """The units from `start` to a date or time; NaN if the value is neither, or lacks the date or the time."""
        moment, start = Moment.of(value), self._origin
        if moment is None or (moment.clock if start.day is None else moment.day) is None:
            return math.nan
        found = (moment.clock or 0) - (start.clock or 0)
        if start.day is not None and moment.day is not None:
            found += (moment.day - start.day).days * _DAY - moment.offset + start.offset
        return found / UNITS[str(self.unit)]


@dataclass(frozen=True, init=False)
class Calendar(Categorical):
    """The weekday, month or hour of a date or time, as a category.

    Parameters
    ----------
    name
        The name of the dimension, and of the column unless `column` is given.
    part
        "weekday", "month" or "hour".
    default
        The category that replaces a missing or invalid value. Without it, such values are refused unless `optional`.
    optional
        Whether there is one more category, "missing", as for `Categorical`.
    column
        The column that holds the date or time.

    Examples
    --------
    >>> day = Calendar("weekday", "weekday", column="flight")
    >>> day.categories[day.clean("2013-01-31 17:30")], day.columns
    ('Thursday', ('flight',))
    """

    kind = "calendar"
    _column = "CalendarColumn"
    is_time = True
    _unknown = NO_TIMES

    part: str
    column: str | None

    def __init__(
        self,
        name: str,
        part: str,
        default: str | None = None,
        *,
        optional: bool = False,
        column: str | None = None,
    ) -> None:
        if part not in PARTS:
            raise refused(name, f"part = {part!r} must be one of {', '.join(PARTS)}")
        super().__init__(name, PARTS[part], default, optional=optional)
        if column is not None:
            check_name(column)
        self._set(part=part, column=None if column == name else column)

    def to_dict(self) -> dict[str, Any]:
        made = {"name": self.name, "type": self.kind, "part": self.part}
        more = {"column": self.column, "default": None if self.optional else self.default}
        made |= {key: value for key, value in more.items() if value is not None}
        return made | ({"optional": True} if self.optional else {})

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column or self.name,)

    @property
    def expected(self) -> str:
        return _EXPECTED

    def find(self, value: Any) -> int | None:
        """The index of the weekday, month or hour of a date or time, or None."""
        moment = Moment.of(value)
        if moment is None or (moment.clock if self.part == "hour" else moment.day) is None:
            return None
        if moment.day is None or self.part == "hour":
            return (moment.clock or 0) // UNITS["h"] % 24
        return moment.day.weekday() if self.part == "weekday" else moment.day.month - 1

    def quality(self, value: Any) -> str:
        found = super().quality(value)
        return "missing" if found == "unknown" and is_missing_number(value) else found
