"""A product of two numbers, computed on the device; standard library only.

The mean of a product sent as one answer has far less noise than the product of two answers under half the budget, so
a covariance that is wanted is best asked as a question of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hdr4me.errors import InvalidInput
from hdr4me.survey.dimension import FRACTION_BITS, Dimension
from hdr4me.survey.numeric import Numeric
from hdr4me.survey.values import check_fields, check_name

if TYPE_CHECKING:
    from hdr4me.survey.columns import Column


@dataclass(frozen=True)
class Product(Dimension):
    """The product of two numbers of the same schema, each taken from the middle of its range.

    With a and b cleaned as their own dimensions clean them, in double precision and in this order of operations,

        s = 2·((a − low_a)/(high_a − low_a)) − 1,   t = 2·((b − low_b)/(high_b − low_b)) − 1,   x = s·t,

    the answer is about x, which lies in [−1, 1]. The place among L levels is (x + 1)/2·(L − 1)·2^16, rounded to the
    nearest whole number (a half to the even one), as for every number. In units, x stands for
    (a − middle_a)·(b − middle_b), whose range is plus and minus the product of both half-widths.

    Parameters
    ----------
    name
        The question's name. Records have no column of this name.
    product
        The names of two different numbers of the schema that are not optional.

    Examples
    --------
    >>> from hdr4me.survey.schema import Schema
    >>> schema = Schema([Numeric("a", 0, 10), Numeric("b", 0, 4), Product("a × b", ["a", "b"])])
    >>> schema["a × b"].bounds, schema.columns
    ((-10.0, 10.0), ('a', 'b'))
    >>> [schema["a × b"].clean(pair) for pair in ((10, 4), (5, 4), (0, 4), (None, 4))]
    [1.0, 0.0, -1.0, 0.0]
    """

    kind = "product"

    name: str
    product: Sequence[str]
    factors: tuple[Numeric, Numeric] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        names = self.product
        if isinstance(names, str) or not isinstance(names, list | tuple) or len(names) != 2:
            raise InvalidInput(
                f"dimension {self.name!r}: product = {names!r} must be two names of numeric dimensions"
            )
        for name in names:
            check_name(name)
        if names[0] == names[1] or self.name in names:
            raise InvalidInput(
                f"dimension {self.name!r}: product = {list(names)!r} must name two other, different dimensions"
            )
        object.__setattr__(self, "product", (str(names[0]), str(names[1])))

    def within(self, others: Mapping[str, Dimension]) -> Product:
        """The product with the ranges of its two factors, which are among these dimensions, by name.

        Raises
        ------
        InvalidInput
            If a factor is missing, or is not a number that everybody has.
        """
        found = []
        for name in self.product:
            factor = others.get(name)
            if not isinstance(factor, Numeric) or factor.optional:
                reason = (
                    "no dimension has that name"
                    if factor is None
                    else "it must be a number that is not optional"
                )
                raise InvalidInput(
                    f"dimension {self.name!r}: the product of {name!r} is not possible: {reason}"
                )
            found.append(factor)
        return replace(self, factors=(found[0], found[1]))

    @property
    def both(self) -> tuple[Numeric, Numeric]:
        """The two numbers."""
        if self.factors is None:
            raise InvalidInput(
                f"dimension {self.name!r}: a product belongs into a schema with both its numbers"
            )
        return self.factors

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.product)

    @property
    def reads(self) -> str:
        return "number"

    @property
    def bounds(self) -> tuple[float, float]:
        half = 1.0
        for factor in self.both:
            half *= (factor.high - factor.low) / 2
        return -half, half

    def clean(self, value: Any) -> float:
        """The product on [−1, 1] of a pair of raw values; what is no pair counts as two missing values."""
        pair = value if isinstance(value, list | tuple) and len(value) == 2 else (None, None)
        found = 1.0
        for factor, raw in zip(self.both, pair, strict=True):
            found *= 2.0 * ((factor.clean(raw) - factor.low) / (factor.high - factor.low)) - 1.0
        return found

    def place(self, value: Any, size: int) -> int:
        return round((self.clean(value) + 1.0) / 2.0 * ((size - 1) << FRACTION_BITS))

    def clean_column(self, columns: Sequence[Any], size: int) -> Column:
        from hdr4me.survey.columns import ProductColumn

        return ProductColumn(self, columns)

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "type": self.kind, "product": list(self.product)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Product:
        check_fields(fields, {"name", "product"}, set())
        return cls(**fields)
