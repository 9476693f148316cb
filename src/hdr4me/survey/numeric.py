"""A number between two bounds; standard library only.

A value that is missing or wrong becomes the declared default (or "no value", where the number is optional) and one out
of range its nearest bound. Nothing here raises because of a value, and what is sent afterwards looks the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hdr4me.errors import InvalidInput
from hdr4me.survey.dimension import FRACTION_BITS, Dimension
from hdr4me.survey.values import as_number, check_fields, check_name, finite, is_unicode

if TYPE_CHECKING:
    from hdr4me.survey.columns import Column


NARROWEST = 1e-290
"""Below this width the number of levels per unit is no longer a float."""


@dataclass(frozen=True)
class Numeric(Dimension):
    """A number between `low` and `high`.

    Parameters
    ----------
    name
        The column that holds it.
    low, high
        Its range; values outside count as the nearer bound.
    default
        What stands for a missing value: the middle of the range unless given.
    optional
        Whether "no value" is an answer of its own: then the share of users who have a value and the mean among those
        are both estimated, from one report, and `default` is not used.
    curve
        The name of a curve of which this dimension is a point, in the schema's order: hours of a day, ages.
    group
        The name of a group that this dimension belongs to. Re-calibration makes use of either, and nothing else does.

    unit
        What the number is measured in, such as "min". Answers and plans show it, and a tolerance may name it.

    Examples
    --------
    >>> age = Numeric("age", 0, 120, default=40)
    >>> [age.clean(x) for x in (31, "31", -5, 1e400, float("nan"), None, "?", 10**400, True)]
    [31.0, 31.0, 0.0, 120.0, 40.0, 40.0, 40.0, 120.0, 1.0]
    >>> age.place(60, 3) / 65536
    1.0
    """

    kind = "numeric"

    name: str
    low: float
    high: float
    default: float = None  # type: ignore[assignment]  # None: the middle, filled in below
    optional: bool = False
    curve: str | None = None
    group: str | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        for field, value in (("curve", self.curve), ("group", self.group), ("unit", self.unit)):
            if value is not None and (not isinstance(value, str) or not value or not is_unicode(value)):
                raise InvalidInput(f"dimension {self.name!r}: {field} = {value!r} must be a name")
        if self.unit is not None and self.unit != " ".join(self.unit.split()):
            raise InvalidInput(
                f"dimension {self.name!r}: unit = {self.unit!r} has spaces at its ends or in a row"
            )
        low, high = finite(self.name, "low", self.low), finite(self.name, "high", self.high)
        if not low < high or not math.isfinite(high - low):
            raise InvalidInput(f"dimension {self.name!r}: low = {low} must be below high = {high}")
        if high - low < NARROWEST:
            raise InvalidInput(
                f"dimension {self.name!r}: high - low = {high - low} must be at least {NARROWEST}"
            )
        middle = low + (high - low) / 2
        default = middle if self.default is None else finite(self.name, "default", self.default)
        if not low <= default <= high:
            raise InvalidInput(f"dimension {self.name!r}: default = {default} is outside [{low}, {high}]")
        if not isinstance(self.optional, bool):
            raise InvalidInput(f"dimension {self.name!r}: optional = {self.optional!r} must be true or false")
        for end, number in (("low", low), ("high", high), ("default", default)):
            object.__setattr__(self, end, number + 0.0)  # −0.0 and 0.0 have one spelling

    @property
    def reads(self) -> str:
        return "optional" if self.optional else "number"

    @property
    def bounds(self) -> tuple[float, float]:
        return self.low, self.high

    def clean(self, value: Any) -> float:
        """The value inside [low, high]: NaN, None and what is no number become the default; the rest is clamped.

        Text is read as a number if it is one, as CSV files have it; ±inf is out of range like any other large number.
        """
        found = as_number(value)
        return self.default if math.isnan(found) else min(max(found, self.low), self.high)

    def place(self, value: Any, size: int) -> int:
        found = as_number(value)
        n_levels = size - self.optional
        u = (self.clean(found) - self.low) / (self.high - self.low)
        place = round(u * ((n_levels - 1) << FRACTION_BITS))
        return n_levels << FRACTION_BITS if self.optional and math.isnan(found) else place

    def clean_column(self, columns: Sequence[Any], size: int) -> Column:
        from hdr4me.survey.columns import NumberColumn

        return NumberColumn(self, columns[0])

    def to_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"low": self.low, "high": self.high, "default": self.default}
        declared = {"optional": self.optional or None, "curve": self.curve, "group": self.group}
        declared |= {"unit": self.unit}
        fields |= {name: value for name, value in declared.items() if value is not None}
        return {"name": self.name, "type": self.kind, **fields}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Numeric:
        check_fields(fields, {"name", "low", "high"}, {"default", "optional", "curve", "group", "unit"})
        return cls(**fields)
