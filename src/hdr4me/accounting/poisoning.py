"""Manipulation bounds: how far poisoned reports can move an answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from hdr4me.errors import InvalidInput
from hdr4me.survey import Survey

Cells = tuple[tuple[float, float], ...]
PRESENT = 0.05  # the share of users with a value that is assumed for an optional number before it is observed


@dataclass(frozen=True)
class ManipulationBound:
    """The manipulation bound of one dimension: the largest change of the expected estimate by poisoned reports.

    `reach` is the largest change if all reports are poisoned: V + 1 for a number on [−1, 1] whose largest decoded value
    is V, and V for the frequency of a category. `width` converts it to the dimension's own units.

    The mean of an optional number is a ratio: the mean of the decoded values over the share of users with a value. Then
    `cells` holds (decoded value, decoded presence) of each possible report, and `present` the share of honest users
    with a value, or with `observed` the share that the collected reports show, poisoned ones included. The smaller that
    share is, the larger is the effect of a poisoned report.
    """

    dimension: str
    reach: float
    width: float
    inclusion: float
    cells: Cells = ()
    present: float = 1.0
    observed: bool = False

    def shift(self, share: float, *, aimed: bool = False) -> float:
        """The largest change of the answer by a share of poisoned reports, in own units; infinite if unbounded.

        With `aimed`, all poisoned reports answer this question. A ratio is unbounded if poisoned reports can bring its
        denominator to zero.

        >>> one = ManipulationBound("age", 4.0, 60.0, 0.1)
        >>> one.shift(0.01), round(one.shift(0.01, aimed=True), 2)
        (2.4, 22.02)
        """
        if not 0 <= share <= 1:
            raise InvalidInput.of("share", share, "a number between 0 and 1")
        if aimed:
            share = share / (share + (1 - share) * self.inclusion) if share else 0.0
        if not self.cells or not share:
            return share * self.reach * self.width
        # With honest mean μ the ratio moves by β(v − μs) over the observed share (1 − β)·π + βs: linear in μ, so an end
        # is the worst, and quasi-convex in (v, s), so one cell is the worst.
        honest = 0.0 if self.observed else share
        shares = [(1 - honest) * self.present + honest * s for _, s in self.cells]
        if min(shares) <= 0:
            return math.inf
        moved = (share * (abs(v) + abs(s)) / below for (v, s), below in zip(self.cells, shares, strict=True))
        return max(moved) * self.width

    def to_dict(self, share: float = 0.01) -> dict[str, Any]:
        """Plain values for JSON; None for an unbounded shift."""
        shifts = {"shift": self.shift(share), "shift_aimed": self.shift(share, aimed=True)}
        return {
            "dimension": self.dimension,
            "share": share,
            **{name: value if math.isfinite(value) else None for name, value in shifts.items()},
            **({"present": self.present} if self.cells else {}),
        }


def manipulation_bounds(
    survey: Survey, present: Mapping[str, float] | None = None, *, observed: bool = False
) -> tuple[ManipulationBound, ...]:
    """The manipulation bound of every dimension whose channel has one.

    Parameters
    ----------
    survey
        The survey.
    present
        For optional numbers and vectors, the share of honest users with a value; 5 % where it is not given.
    observed
        `present` holds shares of collected reports, such as `present_shares(tally)` of `hdr4me.auditing` gives them;
        some of these reports may be poisoned.

    Examples
    --------
    >>> from hdr4me.survey import Numeric, Schema
    >>> result = manipulation_bounds(Survey(Schema([Numeric("age", 0, 120)]), epsilon=1.0, mechanism="duchi"))[0]
    >>> round(result.shift(0.01), 2)
    1.9
    """
    made = []
    for q, question in enumerate(survey.questions):
        for place, j in enumerate(question.dimensions):
            dimension, far = survey.schema.dimensions[j], question.channel.response.reach(place)
            if far is None:
                continue
            low, high = dimension.bounds
            width = 1.0 if dimension.categories else (high - low) / 2
            cells: Cells = ()
            share = 1.0
            if "share" in dimension.statistics:
                cells = _cells(question.channel.response.marginal(place).decoders)
                share = min((present or {}).get(dimension.name, PRESENT), 1.0)
            made.append(
                ManipulationBound(
                    dimension.name, far, width, float(survey.inclusion(q)), cells, share, observed
                )
            )
    return tuple(made)


def _cells(decoders: Mapping[str, Any]) -> Cells:
    """(decoded value, decoded presence) of every report about an optional dimension, or of their extremes."""
    if "present" in decoders:
        return tuple(zip(decoders["value"].tolist(), decoders["present"].tolist(), strict=True))
    # An optional vector: one more coordinate s is decoded, and 1 + s is the presence.
    ends = (float(decoders["value"].min()), float(decoders["value"].max()))
    return tuple((v, 1.0 + s) for v, s in product(ends, repeat=2))
