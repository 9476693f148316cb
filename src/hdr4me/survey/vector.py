"""A vector in a ball: a gradient, an embedding; standard library only.

A coordinate that is no finite number counts as 0, and so does a value that is no vector of the right length unless the
vector is optional. Nothing here raises because of a value.

A channel is asked for the vector over its norm. For an optional vector it is asked for one coordinate more: (x, 0) if
there is a vector x and (0, −1) if there is none, both in the ball of norm 1.
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
from hdr4me.survey.values import as_number, check_name, finite, refused

SEPARATOR = "|"  # between the coordinates of a text, as CSV files have them


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
        Whether "no vector" is an answer of its own: then the share of users who have a vector and the mean among those
        are both estimated, from one report. Otherwise a missing vector counts as 0.

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
            more = " (one more coordinate says whether an optional vector is there)" * self.optional
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
        """How many coordinates a channel takes: the vector's, and one for whether an optional vector is there."""
        return self.length + self.optional

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
        """The vector inside the ball, in its own units; 0 for what is no vector."""
        return self._inside(self.numbers(value))

    def point(self, value: Any) -> list[float]:
        """What a channel is asked for: a vector of the ball of norm 1, with one coordinate more if it is optional."""
        numbers = self.numbers(value)
        inside = [x / self.norm for x in self._inside(numbers)]
        return [*inside, float(_some(numbers)) - 1.0] if self.optional else inside

    def has(self, value: Any) -> bool:
        """Whether a value is a vector: of the right length, with at least one finite number."""
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
        """The number of the vector among all those of so many bits a coordinate."""
        bits = (size.bit_length() - 1) // self.n_asked
        family = Codebook(self.n_asked, 2, 1, precision=bits)
        return family.number(self.point(value)) << FRACTION_BITS

    def fits(self, input_: Input) -> bool:
        return input_ == Input("vector", 1 << PRECISION * self.n_asked)

    def faults(self) -> dict[str, Fault]:
        wrong = "no vector" if self.optional else "0"
        effect = f"and count as {wrong} if the length is wrong; otherwise each "
        effect += "coordinate that is not a number counts as 0"
        return {
            "missing": Fault("missing", "" if self.optional else "and count as 0", self.optional),
            "unknown": Fault(f"not {self.length} numbers", effect),
            "high": Fault(f"longer than {self.norm:g}", "and are scaled to that norm", True),
        }


def _some(numbers: list[float] | None) -> bool:
    """Whether there is a vector in which one coordinate at least is a finite number."""
    return numbers is not None and not all(map(math.isnan, numbers))
