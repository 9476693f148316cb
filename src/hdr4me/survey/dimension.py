"""What every dimension offers; standard library only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from hdr4me.channels.channel import Take

__all__ = ["FRACTION_BITS", "Dimension"]

FRACTION_BITS = 16
"""A place is an input and sixteen bits of the way to the next one."""
_ROWS = {
    "number": "mean",
    "optional": "mean",
    "category": "frequency",
    "selection": "chosen",
    "vector": "mean",
}


class Dimension(ABC):
    """An attribute that is asked.

    A dimension of another package derives from this class, registers in `DIMENSIONS`, and reads as a "number", an
    "optional" number or a "category" (see `hdr4me.channels.Take`), which is what channels know.

    Examples
    --------
    >>> from hdr4me.survey import Numeric
    >>> age = Numeric("age", 0, 120)
    >>> isinstance(age, Dimension), age.reads, age.bounds
    (True, 'number', (0.0, 120.0))
    """

    kind: ClassVar[str]
    name: str

    @property
    @abstractmethod
    def reads(self) -> str:
        """What a channel must take: "number", "optional" or "category"."""

    @abstractmethod
    def place(self, value: Any, size: int) -> int:
        """Where a raw value lies among the `size` inputs of a channel, times 2^16; a fraction is rounded at random."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The dimension as a survey document has it, `name` and `type` included."""

    @classmethod
    @abstractmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Dimension:
        """Read what `to_dict` wrote, without `type`."""

    @property
    def categories(self) -> tuple[str, ...]:
        """The names of the categories of a dimension that reads as one; empty for numbers."""
        return ()

    @property
    def bounds(self) -> tuple[float, float]:
        """What −1 and 1 stand for in the dimension's own units."""
        return (-1.0, 1.0)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a record that hold its value: its own name, or those that it is computed from."""
        return (self.name,)

    def within(self, others: Mapping[str, Dimension]) -> Dimension:
        """The dimension in a schema of these dimensions, by name: itself, unless it is computed from some of them."""
        return self

    def fits(self, take: Take) -> bool:
        """Whether a channel that takes this can serve the dimension."""
        return take.reads == self.reads and (self.reads != "category" or take.size == len(self.categories))

    @property
    def has_gaps(self) -> bool:
        """Whether "no value" is an answer beside the values, so that the share of users with a value is estimated."""
        return self.reads == "optional"

    @property
    def rows(self) -> tuple[str, ...]:
        """The statistics that every survey estimates of it: a mean, frequencies or shares; the share with a value."""
        own = _ROWS.get(self.reads)
        return () if own is None else (own, "share") if self.has_gaps else (own,)
