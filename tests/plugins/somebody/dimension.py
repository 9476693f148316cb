"""A kind of dimension: how much somebody agrees, as a word or a number from 1 to 5."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hdr4me.survey import Dimension

_WORDS = ("not at all", "little", "somewhat", "much", "fully")


@dataclass(frozen=True)
class Agreement(Dimension):
    """One of five words, or their number; anything else counts as the middle."""

    kind = "agreement"

    name: str

    @property
    def reads(self) -> str:
        return "category"

    @property
    def categories(self) -> tuple[str, ...]:
        return _WORDS

    def place(self, value: Any, size: int) -> int:
        if isinstance(value, str) and value in _WORDS:
            return _WORDS.index(value) << 16
        number = value if type(value) in (int, float) and value in (1, 2, 3, 4, 5) else 3
        return int(number - 1) << 16

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "type": self.kind}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Agreement:
        return cls(**fields)
