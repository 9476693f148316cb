"""A vector in a ball: a gradient, an embedding; standard library only.

A coordinate that is not a finite number counts as 0. A value that is not a vector of the right length counts as the
zero vector unless the vector is optional. No value raises an exception here.

The input of a channel is the vector divided by the norm. An optional vector has one more coordinate: (x, 0) for a
vector x and (0, −1) for a missing one, both in the unit ball.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hdr4me.channels.channel import Input
from hdr4me.channels.codebook import MAX_LENGTH, PRECISION, Codebook
from hdr4me.survey.dimension import FRACTION_BITS, Dimension, Fault
from hdr4me.survey.numeric import NARROWEST
from hdr4me.survey.values import as_number, check_name, finite, is_blank, refused

SEPARATOR = "|"  # between the coordinates in a string, as in CSV files


@dataclass(frozen=True)
class Vector(Dimension):
    """A vector of `length` numbers whose Euclidean norm is at most `norm`.

    A value is a list of numbers, or a string with `|` between them.

    Parameters
    ----------
    name
        The name of the column.
    length
        The number of coordinates.
    norm
        The largest norm. Longer vectors are scaled to it.
    optional
        Whether "no vector" is a valid answer. Then both the share of users who have a vector and the mean among them
        are estimated from one report. Otherwise a missing or invalid vector is refused.

    Examples
    --------
    >>> gradient = Vector("gradient", length=2, norm=5.0)
    >>> gradient.clean([3, 0]), gradient.clean("6|8"), gradient.clean([1, float("nan")]), gradient.clean([1, 2, 3])
    ((3.0, 0.0), (3.0, 4.0), (1.0, 0.0), (0.0, 0.0))
    >>> gradient.point([3, 0]), Vector("gradient", 2, 5.0, optional=True).point([3, 0])
    ([0.6, 0.0], [0.6, 0.0, 0.0])
    >>> Vector("gradient", 2, 5.0, optional=True).point(None)
    [0.0, 0.0, -1.0]
    """

    kind = "vector"
    _column = "VectorColumn"
    input_kind = "vector"

    name: str
    length: int
    norm: float = 1.0
    optional: bool = False

    def __post_init__(self) -> None:
        check_name(self.name)
        if not isinstance(self.optional, bool):
            raise refused(self.name, f"optional = {self.optional!r} must be true or false")
        most = MAX_LENGTH - self.optional
        if type(self.length) is not int or not 1 <= self.length <= most:
            more = " (an optional vector uses one more coordinate)" * self.optional
            raise refused(self.name, f"length = {self.length!r} must be an integer from 1 to {most}{more}")
        norm = finite(self.name, "norm", self.norm)
        if not NARROWEST <= norm <= 1 / NARROWEST:
            raise refused(self.name, f"norm = {norm} must be a positive number")
        object.__setattr__(self, "norm", norm)

    @property
    def rows(self) -> tuple[str | None, ...]:
        return tuple(map(str, range(self.length)))

    @property
    def has_gaps(self) -> bool:
        return self.optional

    @property
    def bounds(self) -> tuple[float, float]:
        return -self.norm, self.norm

    @property
    def n_asked(self) -> int:
        """The number of coordinates of the channel's input: one more than the vector's if it is optional."""
        return self.length + self.optional

    def numbers(self, value: Any) -> list[float] | None:
        """The coordinates of a value, NaN for each that is not a finite number; None if the length is wrong."""
        try:
            if isinstance(value, str):
                value = value.split(SEPARATOR)
            if isinstance(value, Mapping | bytes) or not isinstance(value, Iterable):
                return None
            found = [as_number(part) for part in value]
        except Exception:  # a value may be an object that raises any exception
            return None
        return [x if math.isfinite(x) else math.nan for x in found] if len(found) == self.length else None

    def clean(self, value: Any) -> tuple[float, ...]:
        """The vector inside the ball, in its own units; 0 for an invalid value."""
        return self._inside(self.numbers(value))

    def point(self, value: Any) -> list[float]:
        """The input of a channel: a vector of the unit ball, with one more coordinate if it is optional."""
        numbers = self.numbers(value)
        inside = [x / self.norm for x in self._inside(numbers)]
        return [*inside, float(_some(numbers)) - 1.0] if self.optional else inside

    def has(self, value: Any) -> bool:
        """Whether a value is a vector: the right length and at least one finite number."""
        return _some(self.numbers(value))

    def _inside(self, numbers: list[float] | None) -> tuple[float, ...]:
        found = [0.0 if math.isnan(x) else x for x in numbers or [0.0] * self.length]
        largest = max(map(abs, found))
        if largest == 0.0:
            return tuple(found)
        size = math.hypot(*(x / largest for x in found))  # so that no square is too large for a float
        scale = min(1.0, self.norm / largest / size)
        return tuple(found) if scale == 1.0 else tuple(x / largest * (self.norm / size) for x in found)

    def encode(self, value: Any, size: int) -> int:
        """The index of the vector among all vectors with this precision."""
        bits = (size.bit_length() - 1) // self.n_asked
        family = Codebook(self.n_asked, 2, 1, precision=bits)
        return family.number(self.point(value)) << FRACTION_BITS

    def fits(self, input_: Input) -> bool:
        return input_ == Input("vector", 1 << PRECISION * self.n_asked)

    @property
    def expected(self) -> str:
        return f"a list of {self.length} numbers"

    def quality(self, value: Any) -> str:
        numbers = self.numbers(value)
        if is_blank(value) or (self.optional and numbers is not None and not _some(numbers)):
            return "missing"
        if numbers is None or any(map(math.isnan, numbers)):
            return "unknown"
        return "high" if math.hypot(*numbers) > self.norm * (1 + 1e-12) else "usable"

    def faults(self) -> dict[str, Fault]:
        wrong = "no vector" if self.optional else "0"
        effect = f"and count as {wrong} if the length is wrong; otherwise each "
        effect += "coordinate that is not a number counts as 0"
        return {
            "missing": Fault("missing", "" if self.optional else "and count as 0", self.optional),
            "unknown": Fault(f"not lists of {self.length} numbers", effect),
            "high": Fault(f"longer than {self.norm:g}", "and are scaled to that norm", True),
        }


def _some(numbers: list[float] | None) -> bool:
    """Whether at least one coordinate is a finite number."""
    return numbers is not None and not all(map(math.isnan, numbers))
