"""Means and shares by group: a number, or a category, among those who have each category of another dimension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Channel
from hdr4me.errors import InvalidInput
from hdr4me.statistics.shapes import has_law
from hdr4me.statistics.statistic import Counted, Part, Statistic
from hdr4me.survey import Dimension, Survey

_SURELY = 3.0
"""A group's share must be this many standard errors above 0 before anything is told of the group."""


class MeanBy(Statistic):
    """The mean of a number in each group: dimensions are the number and the category that groups.

    With y the decoded number and z the decoded indicator of a group, the mean is Σyz/Σz; its error comes from the
    residuals (y − mean)·z. A group that may be empty is unknown.
    """

    name = "mean_by"

    def serves(self, dimension: Dimension, channel: Channel) -> bool:
        return (dimension.is_number and has_law(channel)) or dimension.is_category

    def refusal(self, dimension: Dimension, channel: Channel) -> str:
        return f"{dimension.name!r} has no part in {self.name}: it must be a number that is not optional, or a category"

    def parts(self, counted: Counted, dimensions: Sequence[int], **options: Any) -> list[Part]:
        j, k = two(self.name, dimensions)
        schema = counted.survey.schema
        if not schema.dimensions[j].is_number or not schema.dimensions[k].is_category:
            raise InvalidInput(
                f"{self.name} takes a number and then the category that groups, such as ['income', 'region']"
            )
        pairs = _pairs(self.name, options)
        groups = schema.dimensions[k].categories
        joints = [joint_of(counted, pairs, j, k, None, g) for g in range(len(groups))]
        return [_told(j, groups, joints, scaled=True)]


class ShareBy(MeanBy):
    """The share of each category in each group: dimensions are the category and the one that groups."""

    name = "share_by"

    def parts(self, counted: Counted, dimensions: Sequence[int], **options: Any) -> list[Part]:
        j, k = two(self.name, dimensions)
        schema = counted.survey.schema
        if not all(schema.dimensions[i].is_category for i in (j, k)):
            raise InvalidInput(f"{self.name} takes two categories, the second of which groups")
        pairs = _pairs(self.name, options)
        own, groups = schema.dimensions[j].categories, schema.dimensions[k].categories
        cells = [(c, g) for g in range(len(groups)) for c in range(len(own))]
        joints = [joint_of(counted, pairs, j, k, c, g) for c, g in cells]
        labels = tuple(f"{own[c]} | {groups[g]}" for c, g in cells)
        return [_told(j, labels, joints, scaled=False)]


MEAN_BY, SHARE_BY = MeanBy(), ShareBy()


def _pairs(name: str, options: dict[str, Any]) -> Any:
    pairs = options.pop("pairs", None)
    if options:
        raise InvalidInput(f"option {min(options)!r} is not one of {name}")
    return pairs


def _told(j: int, labels: tuple[str, ...], joints: list[Joint], *, scaled: bool) -> Part:
    found = [_ratio(joint) for joint in joints]
    value, error, unsure, answers = (np.array(column) for column in zip(*found, strict=True))
    return Part(j, labels, value, error, answers.astype(np.int64), scaled=scaled, unsure=unsure.astype(bool))


def _ratio(joint: Joint) -> tuple[float, float, bool, int]:
    """The mean of the first decoding among those whom the second one indicates; and whether there are too few."""
    n = joint.n
    if n < 2:
        return np.nan, np.nan, False, int(n)
    ones = np.ones_like(joint.first)
    indicator = np.outer(ones, joint.second)
    share, share_error = joint.mean(indicator), joint.error(indicator)
    if not share > _SURELY * share_error:
        return np.nan, np.nan, True, int(n)
    mean = joint.mean(np.outer(joint.first, joint.second)) / share
    return mean, joint.error(np.outer(joint.first - mean, joint.second)) / share, False, int(n)


Floats = NDArray[np.float64]


class PairCounted(Protocol):
    """What statistics need of pair counts."""

    @property
    def survey(self) -> Survey: ...
    def of(self, first: str, second: str) -> NDArray[np.int64]: ...


@dataclass(frozen=True)
class Side:
    """A decoding of one dimension's answers: the answers fall into classes, and each class counts for a number.

    `take` are the counters of the classes. If `rest`, there is one more class: answers that raise none of them.
    """

    values: Floats
    take: NDArray[np.int64]
    rest: bool = False

    def classes(self, counts: Floats) -> Floats:
        """Counts by class, from counts by counter along the first axis, whose last entry counts every report."""
        chosen = counts[self.take]
        return np.concatenate([chosen, (counts[-1] - chosen.sum(axis=0))[None]]) if self.rest else chosen


@dataclass(frozen=True)
class Joint:
    """How many reports fell into each pair of classes, and what the classes count for."""

    counts: Floats
    first: Floats
    second: Floats

    @property
    def n(self) -> float:
        """How many reports answered both."""
        return float(self.counts.sum())

    def mean(self, values: Floats) -> float:
        """The mean over reports of a number given for each pair of classes."""
        return float((self.counts * values).sum()) / self.n

    def error(self, values: Floats) -> float:
        """The standard error of that mean."""
        centred = values - self.mean(values)
        return float(np.sqrt((self.counts * centred**2).sum() / max(self.n - 1, 1) / self.n))


def side_of(dimension: Dimension, channel: Channel, place: int, category: int | None = None) -> Side:
    """The decoding of a number's value, or of the indicator of one category."""
    if dimension.is_number or (dimension.is_category and category is not None):
        return Side(*channel.response.classes(place, category or 0))
    raise InvalidInput(
        f"{dimension.name!r} has no part in statistics of two dimensions: "
        "it must be a number that is not optional, or a category"
    )


def joint_of(
    counted: Counted,
    pairs: PairCounted | None,
    j: int,
    k: int,
    category_j: int | None = None,
    category_k: int | None = None,
) -> Joint:
    """The joint counts of two dimensions that are asked in two questions."""
    survey = counted.survey
    names = [survey.schema.names[i] for i in (j, k)]
    if pairs is None:
        raise InvalidInput(
            f"a tally does not tell of {names[0]!r} and {names[1]!r} together: count pairs from the reports "
            "(hdr4me.PairCounts) and give them as pairs, or ask for their product in the next survey (hdr4me.Product)"
        )
    if pairs.survey != survey:
        raise InvalidInput("the pair counts are of another survey than the tally")
    counts = pairs.of(names[0], names[1]).astype(np.float64)
    sides = []
    for i, category in ((j, category_j), (k, category_k)):
        question = survey.questions[survey.question_of(i)]
        sides.append(
            side_of(survey.schema.dimensions[i], question.channel, question.dimensions.index(i), category)
        )
    by_first = sides[0].classes(counts)
    return Joint(sides[1].classes(by_first.T).T, sides[0].values, sides[1].values)


def two(name: str, dimensions: Sequence[int]) -> tuple[int, int]:
    """Exactly two different dimensions."""
    if len(dimensions) != 2 or dimensions[0] == dimensions[1]:
        raise InvalidInput.of("dimensions", list(dimensions), f"two different names for a {name}")
    return dimensions[0], dimensions[1]
