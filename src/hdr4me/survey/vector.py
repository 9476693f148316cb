"""A vector in a ball: a gradient, an embedding; standard library only.

A vector that is longer than the norm is scaled to it, a coordinate that is no finite number counts as 0, and so does
every coordinate of a value that is no vector of the right length. Nothing here raises because of a value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import InitVar, dataclass
from typing import Any

from hdr4me.channels.channel import Take
from hdr4me.channels.codebook import MAX_LENGTH, PRECISION, Codebook
from hdr4me.errors import InvalidInput
from hdr4me.survey.dimension import FRACTION_BITS, Dimension
from hdr4me.survey.numeric import NARROWEST
from hdr4me.survey.values import as_number, check_fields, check_name, finite

__all__ = ["SEPARATOR", "Vector"]

SEPARATOR = "|"
"""Between the coordinates of a text, as CSV files have them."""


@dataclass(frozen=True)
class Vector(Dimension):
    """A vector of `length` numbers whose Euclidean norm is at most `norm`.

    A value is a list of numbers, or a text with `|` between them.

    Parameters
    ----------
    name
        The column that holds it.
    length
        How many coordinates it has.
    norm
        The largest norm; longer vectors are scaled to it.
    optional
        Only False: a missing vector counts as 0. Whether there is one is a category beside it.

    Examples
    --------
    >>> gradient = Vector("gradient", length=2, norm=5.0)
    >>> gradient.clean([3, 0]), gradient.clean("6|8"), gradient.clean([1, float("nan")]), gradient.clean([1, 2, 3])
    ((3.0, 0.0), (3.0, 4.0), (1.0, 0.0), (0.0, 0.0))
    """

    kind = "vector"

    name: str
    length: int
    norm: float = 1.0
    optional: InitVar[bool] = False

    def __post_init__(self, optional: bool) -> None:
        check_name(self.name)
        if optional is not False:
            raise InvalidInput(
                f"dimension {self.name!r}: optional = {optional!r} is not allowed: a vector is never optional, and a "
                "missing one counts as 0; ask whether there is one as a category beside it "
                f"(Categorical('has_{self.name}', ['no', 'yes']))"
            )
        if type(self.length) is not int or not 1 <= self.length <= MAX_LENGTH:
            raise InvalidInput(
                f"dimension {self.name!r}: length = {self.length!r} must be a whole number from 1 to {MAX_LENGTH}"
            )
        norm = finite(self.name, "norm", self.norm)
        if not NARROWEST <= norm <= 1 / NARROWEST:
            raise InvalidInput(f"dimension {self.name!r}: norm = {norm} must be a positive number")
        object.__setattr__(self, "norm", norm)

    @property
    def reads(self) -> str:
        return "vector"

    @property
    def bounds(self) -> tuple[float, float]:
        return -self.norm, self.norm

    def numbers(self, value: Any) -> list[float] | None:
        """The coordinates that a value has, NaN for each that is no finite number; None for what is no such vector."""
        try:
            if isinstance(value, str):
                value = value.split(SEPARATOR)
            if isinstance(value, Mapping | bytes) or not isinstance(value, Iterable):
                return None
            found = [as_number(part) for part in value]
        except Exception:  # a value may be an object that raises anything at all
            return None
        return [x if math.isfinite(x) else math.nan for x in found] if len(found) == self.length else None

    def clean(self, value: Any) -> tuple[float, ...]:
        """The vector inside the ball, in its own units."""
        found = [0.0 if math.isnan(x) else x for x in self.numbers(value) or [0.0] * self.length]
        largest = max(map(abs, found))
        if largest == 0.0:
            return tuple(found)
        size = math.hypot(*(x / largest for x in found))  # so that no square is too large for a float
        scale = min(1.0, self.norm / largest / size)
        return tuple(found) if scale == 1.0 else tuple(x / largest * (self.norm / size) for x in found)

    def place(self, value: Any, size: int) -> int:
        """The number of the vector among all those of so many bits a coordinate."""
        bits = (size.bit_length() - 1) // self.length
        family = Codebook(self.length, 2, 1, precision=bits)
        return family.number([x / self.norm for x in self.clean(value)]) << FRACTION_BITS

    def fits(self, take: Take) -> bool:
        return take == Take("vector", 1 << PRECISION * self.length)

    def account(self, values: Iterable[tuple[Any, int]]) -> tuple[int, int, int]:
        """How many values are missing, have a wrong length or a coordinate that is no number, and are too long.

        Each value comes with how often it occurs.

        >>> Vector("v", 2).account([([1, 1], 3), (None, 1), ([1], 2), ([0, None], 4), ([0.6, 0.8], 5)])
        (1, 6, 3)
        """
        missing = unknown = long = 0
        for value, times in values:
            found = self.numbers(value)
            missing += times * (value is None or value == "")
            unknown += times * (
                value is not None and value != "" and (found is None or any(map(math.isnan, found)))
            )
            inside = [0.0 if math.isnan(x) else x for x in found or []]
            long += times * (math.hypot(*inside) > self.norm * (1 + 1e-12))
        return missing, unknown, long

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "type": self.kind, "length": self.length, "norm": self.norm}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Vector:
        check_fields(fields, {"name", "length"}, {"norm", "optional"})
        return cls(**fields)
