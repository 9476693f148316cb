"""The mean of a number that was asked in a block of signs."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from hdr4me.channels import Channel, HeavySet
from hdr4me.channels.agreement import Agreement
from hdr4me.channels.proof import ONE
from hdr4me.statistics.statistic import Counted, Part

__all__ = ["block_mean", "is_block"]


def is_block(channel: Channel) -> bool:
    """Whether a channel answers a block of signs."""
    return isinstance(channel, HeavySet) and isinstance(channel.family, Agreement)


@lru_cache(maxsize=64)
def _contrast(family: Agreement, weight: int) -> float:
    return float(family.contrast(Fraction(weight, ONE)))


def block_mean(counted: Counted, j: int) -> Part:
    """The mean of dimension j on [−1, 1].

    A reported sign y has mean c·t and y² = 1, so y/c is unbiased with the mean square 1/c², whatever t is. The sample
    variance of r decoded signs is therefore (1/c² − mean²)·r/(r − 1), and its r-th part is the variance of the mean. A
    sign does not tell the spread of the values, so the truth is the mean of the population that users come from.
    """
    q = counted.survey.question_of(j)
    question = counted.survey.questions[q]
    channel = question.channel
    assert isinstance(channel, HeavySet)
    assert isinstance(channel.family, Agreement)
    place = question.dimensions.index(j)
    minus, plus = counted.layout.of_question(counted.counts, q)[2 * place : 2 * place + 2].tolist()
    r = minus + plus
    c = _contrast(channel.family, channel.weight)
    mean = (plus - minus) / (r * c) if r else np.nan
    variance = max(c**-2 - mean**2, c**-2 - 1.0) / (r - 1) if r > 1 else np.nan
    return Part(j, (None,), np.array([mean]), np.array([np.sqrt(variance)]), r, scaled=True)
