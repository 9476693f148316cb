"""Means and shares by group: a number, or a category, among those who have each category of another dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hdr4me.channels import Channel
from hdr4me.errors import InvalidInput
from hdr4me.statistics.covariance import two
from hdr4me.statistics.joint import Joint, joint_of
from hdr4me.statistics.shapes import has_law
from hdr4me.statistics.statistic import Counted, Part, Statistic
from hdr4me.survey import Dimension

__all__ = ["MEAN_BY", "SHARE_BY"]

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
