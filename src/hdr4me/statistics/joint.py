"""Two dimensions at once: the joint counts of two decodings, from reports that answer both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Channel
from hdr4me.errors import InvalidInput
from hdr4me.statistics.statistic import Counted
from hdr4me.survey import Dimension, Survey

__all__ = ["Joint", "PairCounted", "Side", "joint_of", "side_of"]

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
    """The decoding of a number's value, or of the indicator of one category.

    Parameters
    ----------
    dimension
        The dimension.
    channel
        Its channel.
    place
        Which of the channel's dimensions it is, from 0.
    category
        The category's number; None for numbers.
    """
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
    """The joint counts of two dimensions that are asked in two questions.

    Parameters
    ----------
    counted
        The tally, for its survey.
    pairs
        Counts of both questions together.
    j, k
        The dimensions' numbers.
    category_j, category_k
        The categories that are meant, where a dimension is one.
    """
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
