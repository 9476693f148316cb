"""Kinds of dimension: the agreement of a person, a bounded count, and the difference of two columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hdr4me.survey import Dimension
from hdr4me.survey.values import as_number, is_blank

_WORDS = ("not at all", "little", "somewhat", "much", "fully")


@dataclass(frozen=True)
class Agreement(Dimension):
    """One of five words, or their number; anything else counts as the middle."""

    kind = "agreement"

    name: str

    @property
    def input_kind(self) -> str:
        return "category"

    @property
    def categories(self) -> tuple[str, ...]:
        return _WORDS

    def encode(self, value: Any, size: int) -> int:
        if isinstance(value, str) and value in _WORDS:
            return _WORDS.index(value) << 16
        number = value if type(value) in (int, float) and value in (1, 2, 3, 4, 5) else 3
        return int(number - 1) << 16

    def quality(self, value: Any) -> str:
        known = (
            value in _WORDS
            if isinstance(value, str)
            else type(value) in (int, float) and value in range(1, 6)
        )
        return "usable" if known else super().quality(value) if is_blank(value) else "unknown"

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "type": self.kind}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Agreement:
        return cls(**fields)


@dataclass(frozen=True)
class Count(Dimension):
    """How often something happened, from 0 to `most`; what is no number counts as 0."""

    kind = "count"

    name: str
    most: int

    @property
    def input_kind(self) -> str:
        return "number"

    @property
    def bounds(self) -> tuple[float, float]:
        return 0.0, float(self.most)

    def encode(self, value: Any, size: int) -> int:
        number = as_number(value)
        inside = 0.0 if math.isnan(number) else min(max(number, 0.0), float(self.most))
        return round(inside / self.most * ((size - 1) << 16))


@dataclass(frozen=True)
class Gain(Dimension):
    """A later number minus an earlier one, from −10 to 10, of two columns; no difference counts as 0."""

    kind = "gain"
    input_kind = "number"

    name: str
    before: str
    after: str

    @property
    def columns(self) -> tuple[str, ...]:
        return self.before, self.after

    @property
    def bounds(self) -> tuple[float, float]:
        return -10.0, 10.0

    def encode(self, value: Any, size: int) -> int:
        pair = value if isinstance(value, list | tuple) and len(value) == 2 else (None, None)
        found = as_number(pair[1]) - as_number(pair[0])
        inside = 0.0 if math.isnan(found) else min(max(found, -10.0), 10.0)
        return round((inside + 10.0) / 20.0 * ((size - 1) << 16))

    def quality(self, value: Any) -> str:
        pair = value if isinstance(value, list | tuple) and len(value) == 2 else (None, None)
        return "missing" if any(map(is_blank, pair)) else "usable"
