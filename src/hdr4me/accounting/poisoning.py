"""Manipulation bounds: how far poisoned reports can move an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hdr4me.errors import InvalidInput
from hdr4me.survey import Survey


@dataclass(frozen=True)
class ManipulationBound:
    """The manipulation bound of one dimension.

    `reach` is the largest change of the estimate if all of its reports are poisoned: V + 1 for a number on [−1, 1]
    whose largest decoded value is V. `width` converts it to the dimension's own units.
    """

    dimension: str
    reach: float
    width: float
    inclusion: float

    def shift(self, share: float, *, aimed: bool = False) -> float:
        """The largest change of the answer by a share of poisoned reports, in the dimension's own units.

        >>> one = ManipulationBound("age", 4.0, 60.0, 0.1)
        >>> one.shift(0.01), round(one.shift(0.01, aimed=True), 2)
        (2.4, 22.02)
        """
        if not 0 <= share <= 1:
            raise InvalidInput.of("share", share, "a number between 0 and 1")
        if aimed:
            share = share / (share + (1 - share) * self.inclusion) if share else 0.0
        return share * self.reach * self.width

    def to_dict(self, share: float = 0.01) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "dimension": self.dimension,
            "share": share,
            "shift": self.shift(share),
            "shift_aimed": self.shift(share, aimed=True),
        }


def manipulation_bounds(survey: Survey) -> tuple[ManipulationBound, ...]:
    """The manipulation bound of every dimension whose channel has one.

    >>> from hdr4me.survey import Numeric, Schema
    >>> found = manipulation_bounds(Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0, mechanism="duchi"))[0]
    >>> round(found.shift(0.01), 2)
    1.9
    """
    made = []
    for q, question in enumerate(survey.questions):
        for place, j in enumerate(question.dimensions):
            dimension, far = survey.schema.dimensions[j], question.channel.response.reach(place)
            if far is not None:
                low, high = dimension.bounds
                width = 1.0 if dimension.categories else (high - low) / 2
                made.append(ManipulationBound(dimension.name, far, width, float(survey.inclusion(q))))
    return tuple(made)
