"""Dimensions that are computed on the device from several columns, or from a number: buckets and joint categories."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, product
from typing import Any, Self

from hdr4me.errors import FormatError
from hdr4me.survey.categorical import MAX_CATEGORIES
from hdr4me.survey.dimension import FRACTION_BITS, Dimension, Fault, dimension_from_dict
from hdr4me.survey.values import as_number, check_name, is_missing_number, refused


@dataclass(frozen=True)
class Bucket(Dimension):
    """The range that a number lies in, as a category.

    Bucket i holds the values from edge i (included) to edge i + 1 (excluded; the last bucket includes its upper edge).
    Values below the first edge belong to the first bucket, values above the last edge to the last one.

    Parameters
    ----------
    name
        The name of the dimension, and of the column unless `column` is given.
    edges
        At least three increasing numbers.
    default
        The number that replaces a missing value. Without it, missing values are refused.
    column
        The column that holds the number.

    Examples
    --------
    >>> age = Bucket("age", [0, 18, 65, 120])
    >>> age.categories, [age.encode(x, 3) >> 16 for x in (17.9, 18, 300, "66")]
    (('0 to 18', '18 to 65', '65 to 120'), [0, 1, 2, 2])
    """

    kind = "bucket"
    input_kind = "category"

    name: str
    edges: Sequence[float]
    default: float | None = None
    column: str | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        edges: Any = self.edges
        numbers = not isinstance(edges, str) and all(
            isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x) for x in edges
        )
        if not numbers or len(edges) < 3 or any(a >= b for a, b in pairwise(edges)):
            raise refused(self.name, f"edges = {edges!r} must be at least three increasing numbers")
        object.__setattr__(self, "edges", tuple(float(x) for x in edges))
        if self.default is not None and not self.edges[0] <= as_number(self.default) <= self.edges[-1]:
            raise refused(
                self.name, f"default = {self.default!r} must lie between the first and the last edge"
            )
        if self.column is not None:
            check_name(self.column)

    @cached_property
    def categories(self) -> tuple[str, ...]:
        """The ranges."""
        return tuple(f"{low:g} to {high:g}" for low, high in zip(self.edges, self.edges[1:], strict=False))

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column or self.name,)

    @property
    def example(self) -> float:
        """A number in the first bucket."""
        return (self.edges[0] + self.edges[1]) / 2

    def index(self, value: Any) -> int:
        """The number of the bucket of a raw value, or of the default."""
        number = as_number(value[0] if isinstance(value, tuple) else value)
        if math.isnan(number):
            middle = (self.edges[0] + self.edges[-1]) / 2
            number = middle if self.default is None else float(self.default)
        return min(max(bisect_right(self.edges, number) - 1, 0), len(self.edges) - 2)

    def encode(self, value: Any, size: int) -> int:
        return self.index(value) << FRACTION_BITS

    def quality(self, value: Any) -> str:
        value = value[0] if isinstance(value, tuple) else value
        number = as_number(value)
        if math.isnan(number):
            return "missing" if is_missing_number(value) else "unknown"
        return "low" if number < self.edges[0] else "high" if number > self.edges[-1] else "usable"

    def faults(self) -> dict[str, Fault]:
        """Values outside the edges count in the bucket at that end."""
        ends = {
            "low": Fault(f"below {self.edges[0]:g}", "and count in the first bucket"),
            "high": Fault(f"above {self.edges[-1]:g}", "and count in the last bucket"),
        }
        return super().faults() | {"unknown": Fault("not numbers", "and count as the default")} | ends


@dataclass(frozen=True)
class Joint(Dimension):
    """Several categories as one: the combination of the values of its parts.

    One answer about a combination under the whole budget has far less error than several answers under a part of it
    each. The categories are all combinations, the last part varying fastest.

    Parameters
    ----------
    name
        The name of the dimension.
    joint
        The parts: two or more dimensions that are categories (`Categorical`, `Bucket`). Each reads its own column by
        its own rule for missing and unknown values.

    Examples
    --------
    >>> from hdr4me.survey import Categorical
    >>> both = Joint("who", [Categorical("sex", ["f", "m"]), Bucket("age", [0, 18, 120])])
    >>> both.columns, both.categories[1], both.encode(("f", 40), 4) >> 16
    (('sex', 'age'), 'f × 18 to 120', 1)
    """

    kind = "joint"
    _column = "JointColumn"
    input_kind = "category"

    name: str
    joint: Sequence[Dimension] = field(hash=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        parts = tuple(self.joint)
        if len(parts) < 2 or not all(isinstance(x, Dimension) and x.is_category for x in parts):
            raise refused(self.name, "joint must be a list of two or more categorical or bucket dimensions")
        if len({x.name for x in parts}) < len(parts) or any(isinstance(x, Joint) for x in parts):
            raise refused(
                self.name, "the parts of joint must be different dimensions, none of them joint itself"
            )
        size = math.prod(len(x.categories) for x in parts)
        if size > MAX_CATEGORIES:
            raise refused(
                self.name, f"its parts have {size:,} combinations: at most {MAX_CATEGORIES:,} are allowed"
            )
        object.__setattr__(self, "joint", parts)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        if not isinstance(fields.get("joint"), list):
            raise FormatError(f"dimension {fields.get('name')!r}: joint must be a list of dimensions")
        return super().from_dict({**fields, "joint": [dimension_from_dict(item) for item in fields["joint"]]})

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "type": self.kind, "joint": [part.to_dict() for part in self.joint]}

    @property
    def shape(self) -> tuple[int, ...]:
        """How many categories each part has."""
        return tuple(len(part.categories) for part in self.joint)

    @cached_property
    def categories(self) -> tuple[str, ...]:
        """All combinations."""
        return tuple(" × ".join(labels) for labels in product(*(part.categories for part in self.joint)))

    @property
    def leaves(self) -> tuple[Dimension, ...]:
        return tuple(self.joint)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column for part in self.joint for column in part.columns)

    @property
    def replaces(self) -> bool:
        return all(part.replaces for part in self.joint)

    def encode(self, value: Any, size: int) -> int:
        values = value if isinstance(value, list | tuple) else ()
        found = 0
        for place, part in enumerate(self.joint):
            own = values[place] if place < len(values) else None
            found = found * len(part.categories) + (part.encode(own, len(part.categories)) >> FRACTION_BITS)
        return found << FRACTION_BITS

    def quality(self, value: Any) -> str:
        values = value if isinstance(value, list | tuple) else (None,) * len(self.joint)
        found = [part.quality(own) for part, own in zip(self.joint, values, strict=True)]
        return next((fault for fault in ("missing", "unknown", "low", "high") if fault in found), "usable")

    def faults(self) -> dict[str, Fault]:
        """Faults are counted if any part has one."""
        what = "and count as that part's default"
        return {
            "missing": Fault("missing in a part", what),
            "unknown": Fault("unknown in a part", what),
            "low": Fault("below the range of a part", "and count in its first bucket"),
            "high": Fault("above the range of a part", "and count in its last bucket"),
        }
