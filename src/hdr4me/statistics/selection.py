"""What users chose: the share of users with each category, and how many categories they chose on average."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from hdr4me.channels import Channel, HeavySet
from hdr4me.channels.privset import PrivSet
from hdr4me.channels.privset.design import number_variance
from hdr4me.channels.proof import ONE
from hdr4me.statistics.calibrate import frequency_moments
from hdr4me.statistics.few import few_categories
from hdr4me.statistics.statistic import Counted, Part, Statistic
from hdr4me.survey import Dimension

__all__ = ["CHOSEN", "NUMBER_CHOSEN"]


class Chosen(Statistic):
    """The share of users with each category."""

    name = "chosen"
    by_default = True

    def serves(self, dimension: Dimension, channel: Channel) -> bool:
        return dimension.reads == "selection" and _privset(channel) is not None

    def parts(self, counted: Counted, dimensions: Sequence[int], **options: Any) -> list[Part]:
        made = []
        for j in dimensions:
            counts, answers, channel = _counts(counted, j)
            categories = counted.survey.schema.dimensions[j].categories
            share = error = np.full(len(categories), np.nan)
            few = None
            if answers:
                share, variance = frequency_moments(counts, counted.n_reports, answers, channel)
                error = np.sqrt(variance) if answers > 1 else error
                law = few_categories(channel, counts, answers, error, counted.n_reports)
                few = law, np.arange(len(categories))
            made.append(Part(j, categories, share, error, answers, few=few))
        return made


class NumberChosen(Statistic):
    """The mean number of categories that a user chose.

    A report names a categories, whose mean is linear and whose mean square is a concave function g of the number c that
    the user chose (`hdr4me.channels.privset.design.number_variance`). Counters do not tell the spread of c; by Jensen's
    inequality Var a ≤ g(E c) − (E a)², which is what the standard error uses: it is never too small, and exact if all
    users chose the same number. Where a missing value is a category, its share is taken off the number, and the
    standard errors of both are added: the sum is never too small either, whatever their correlation.
    """

    name = "number chosen"
    by_default = True

    def serves(self, dimension: Dimension, channel: Channel) -> bool:
        return CHOSEN.serves(dimension, channel)

    def parts(self, counted: Counted, dimensions: Sequence[int], **options: Any) -> list[Part]:
        made = []
        for j in dimensions:
            counts, answers, channel = _counts(counted, j)
            value = error = np.nan
            if answers:
                value, error = _number(counts, answers, channel)
                if getattr(counted.survey.schema.dimensions[j], "optional", False):
                    share, variance = frequency_moments(counts, counted.n_reports, answers, channel)
                    value, error = value - float(share[-1]), error + float(variance[-1]) ** 0.5
            made.append(Part(j, (None,), np.array([value]), np.array([error]), answers))
        return made


CHOSEN, NUMBER_CHOSEN = Chosen(), NumberChosen()


def _privset(channel: Channel) -> PrivSet | None:
    family = channel.family if isinstance(channel, HeavySet) else None
    return family if isinstance(family, PrivSet) else None


def _counts(counted: Counted, j: int) -> tuple[Any, int, HeavySet]:
    q = counted.survey.question_of(j)
    channel = counted.survey.questions[q].channel
    assert isinstance(channel, HeavySet)
    counts = counted.layout.of_question(counted.counts, q)
    return counts, int(counts.sum()) // channel.per_report, channel


def _number(counts: Any, answers: int, channel: HeavySet) -> tuple[float, float]:
    family = _privset(channel)
    assert family is not None
    weight = Fraction(channel.weight, ONE)
    p, q = map(float, family.shares(weight))
    v = family.size
    named = float(counts[:v].sum()) / answers
    value = (named - v * q) / (p - q)
    if answers < 2:
        return value, float("nan")
    c = min(max(value, 0.0), float(family.most))
    return value, (number_variance(channel, c) / answers) ** 0.5
