"""A kind of dimension: how often something happened, up to a bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hdr4me.survey import Dimension


@dataclass(frozen=True)
class Count(Dimension):
    """A count from 0 to `most`: larger ones are cut to it, and what is no count is 0."""

    kind = "count"

    name: str
    most: int

    @property
    def reads(self) -> str:
        return "number"

    @property
    def bounds(self) -> tuple[float, float]:
        return 0.0, float(self.most)

    def place(self, value: Any, size: int) -> int:
        known = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
        count = min(int(min(value, self.most)), self.most) if known else 0
        return round(count / self.most * ((size - 1) << 16))

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "type": self.kind, "most": self.most}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Count:
        return cls(**fields)
