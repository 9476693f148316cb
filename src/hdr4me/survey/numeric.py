"""A number between two bounds, and the product of two numbers; standard library only.

A missing or invalid value becomes the default, or "no value" if the number is optional. Clients and engines refuse it
if neither is declared. A value out of range becomes the nearest bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from hdr4me.errors import nearest
from hdr4me.survey.dimension import FRACTION_BITS, Dimension
from hdr4me.survey.values import check_name, finite, is_unicode, refused

NARROWEST = 1e-290  # below this width, the number of levels per unit exceeds the range of floats


@dataclass(frozen=True)
class Numeric(Dimension):
    """A number between `low` and `high`.

    Parameters
    ----------
    name
        The name of the column.
    low, high
        The range. Values outside count as the nearest bound.
    default
        The replacement for a missing or invalid value. Without it, such values are refused unless `optional`.
    optional
        Whether "no value" is a valid answer. Then both the share of users who have a value and the mean among them are
        estimated from one report, and `default` is not used.
    curve
        The name of a curve of which this dimension is one point, in the schema's order: hours of a day, ages.
    group
        The name of a group of dimensions. Only re-calibration uses `curve` and `group`.
    unit
        The unit of the number, such as "min". Answers and plans show it, and a tolerance may name it.

    Examples
    --------
    >>> age = Numeric("age", 0, 120, default=40)
    >>> [age.clean(x) for x in (31, "31", -5, 1e400, float("nan"), None, "?", 10**400, True)]
    [31.0, 31.0, 0.0, 120.0, 40.0, 40.0, 40.0, 120.0, 1.0]
    >>> age.encode(60, 3) / 65536
    1.0
    """

    kind = "numeric"
    _column = "NumberColumn"

    name: str
    low: float
    high: float
    default: float | None = None
    optional: bool = False
    curve: str | None = None
    group: str | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        for label, value in (("curve", self.curve), ("group", self.group), ("unit", self.unit)):
            if value is not None and (not isinstance(value, str) or not value or not is_unicode(value)):
                raise refused(self.name, f"{label} = {value!r} must be a non-empty string")
        if self.unit is not None and self.unit != " ".join(self.unit.split()):
            raise refused(
                self.name,
                f"unit = {self.unit!r} must have no leading, trailing or repeated spaces",
            )
        low, high = finite(self.name, "low", self.low), finite(self.name, "high", self.high)
        if not low < high or not math.isfinite(high - low):
            raise refused(self.name, f"low = {low} must be below high = {high}")
        if high - low < NARROWEST:
            raise refused(self.name, f"high - low = {high - low} must be at least {NARROWEST}")
        default = None if self.default is None else finite(self.name, "default", self.default)
        if default is not None and not low <= default <= high:
            raise refused(self.name, f"default = {default} is outside [{low}, {high}]")
        if not isinstance(self.optional, bool):
            raise refused(self.name, f"optional = {self.optional!r} must be true or false")
        for end, number in (("low", low), ("high", high), ("default", default)):
            if number is not None:
                object.__setattr__(self, end, number + 0.0)  # −0.0 and 0.0 are written alike

    @property
    def fallback(self) -> float:
        """The replacement for a missing value where it is not refused: the default, or the middle of the range."""
        return self.low + (self.high - self.low) / 2 if self.default is None else self.default

    @property
    def input_kind(self) -> str:
        return "optional" if self.optional else "number"

    @property
    def bounds(self) -> tuple[float, float]:
        return self.low, self.high

    def clean(self, value: Any) -> float:
        """The value clamped to [low, high]; NaN, None and anything that is not a number become the fallback.

        A string that holds a number, as in CSV files, is converted. ±inf is out of range like any other large number.
        """
        found = self.number(value)
        return self.fallback if math.isnan(found) else min(max(found, self.low), self.high)

    def share(self, value: Any) -> float:
        """The clean value rescaled to [0, 1]."""
        return (self.clean(value) - self.low) / (self.high - self.low)

    def encode(self, value: Any, size: int) -> int:
        n_levels, missing = size - self.optional, math.isnan(self.number(value))
        place = round(self.share(value) * ((n_levels - 1) << FRACTION_BITS))
        return n_levels << FRACTION_BITS if self.optional and missing else place


@dataclass(frozen=True)
class Product(Dimension):
    """The product of two numbers of the same schema, each relative to the middle of its range.

    The mean of a product sent as one answer has far less noise than the product of two answers under half the budget.

    With a and b cleaned as their own dimensions clean them, in double precision and in this order of operations,

        s = 2·((a − low_a)/(high_a − low_a)) − 1,   t = 2·((b − low_b)/(high_b − low_b)) − 1,   x = s·t,

    the answer is about x, which lies in [−1, 1]. The position among L levels is (x + 1)/2·(L − 1)·2^16, rounded to the
    nearest integer (a half to even), as for every number. In the original units, x represents
    (a − middle_a)·(b − middle_b), whose range is plus and minus the product of both half-widths.

    Parameters
    ----------
    name
        The question's name. Records have no column of this name.
    product
        The names of two different numbers of the schema that are not optional.

    Examples
    --------
    >>> from hdr4me.survey import Schema
    >>> schema = Schema([Numeric("a", 0, 10), Numeric("b", 0, 4), Product("a × b", ["a", "b"])])
    >>> schema["a × b"].bounds, schema.columns
    ((-10.0, 10.0), ('a', 'b'))
    >>> [schema["a × b"].clean(pair) for pair in ((10, 4), (5, 4), (0, 4), (None, 4))]
    [1.0, 0.0, -1.0, 0.0]
    """

    kind = "product"
    _column = "ProductColumn"
    input_kind = "number"

    name: str
    product: Sequence[str]
    factors: tuple[Numeric, Numeric] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        names = self.product
        if isinstance(names, str) or not isinstance(names, list | tuple) or len(names) != 2:
            raise refused(self.name, f"product = {names!r} must be two names of numeric dimensions")
        for name in names:
            check_name(name)
        if names[0] == names[1] or self.name in names:
            raise refused(self.name, f"product = {list(names)!r} must name two other, different dimensions")
        object.__setattr__(self, "product", (str(names[0]), str(names[1])))

    def within(self, others: Mapping[str, Dimension]) -> Product:
        """The product with the ranges of its two factors; InvalidInput unless both are non-optional numbers."""
        found = []
        for name in self.product:
            factor = others.get(name)
            if not isinstance(factor, Numeric) or factor.optional:
                missing = f"no dimension has that name{nearest(name, others)}"
                reason = missing if factor is None else "it must be a number that is not optional"
                raise refused(self.name, f"the product of {name!r} is not possible: {reason}")
            found.append(factor)
        product = copy(self)
        object.__setattr__(product, "factors", (found[0], found[1]))
        return product

    @property
    def both(self) -> tuple[Numeric, Numeric]:
        """The two factors."""
        if self.factors is None:
            raise refused(self.name, "a product must be in a schema with both of its factors")
        return self.factors

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.product)

    @property
    def leaves(self) -> tuple[Dimension, ...]:
        return self.both

    @property
    def bounds(self) -> tuple[float, float]:
        half = math.prod((factor.high - factor.low) / 2 for factor in self.both)
        return -half, half

    def quality(self, value: Any) -> str:
        return "usable"  # the factors are checked in their own dimensions

    def clean(self, value: Any) -> float:
        """The product on [−1, 1] of a pair of raw values; anything else counts as two missing values."""
        pair = value if isinstance(value, list | tuple) and len(value) == 2 else (None, None)
        shares = (x.share(raw) for x, raw in zip(self.both, pair, strict=True))
        return math.prod(2.0 * share - 1.0 for share in shares)

    def encode(self, value: Any, size: int) -> int:
        return round((self.clean(value) + 1.0) / 2.0 * ((size - 1) << FRACTION_BITS))

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "type": self.kind, "product": list(self.product)}
