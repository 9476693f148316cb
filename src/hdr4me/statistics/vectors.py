"""The mean of vectors that were answered by codewords: one row for each coordinate."""

from __future__ import annotations

import numpy as np

from hdr4me.channels import Channel, HeavySet
from hdr4me.channels.codebook import N_LEVELS, Codebook, values
from hdr4me.mechanisms.codebook import scores_of
from hdr4me.statistics.statistic import Counted, Part

__all__ = ["is_codebook", "mean_vector"]


def is_codebook(channel: Channel) -> bool:
    """Whether a channel answers vectors."""
    return isinstance(channel, HeavySet) and isinstance(channel.family, Codebook)


def mean_vector(counted: Counted, j: int) -> Part:
    """The mean of each coordinate, as a share of the norm, and its standard error.

    A codeword's number over c is an unbiased report of a coordinate. The levels of each coordinate are counted, so the
    sample variance of these reports is known; its r-th part is the variance of the mean of a population that r users
    come from.
    """
    q = counted.survey.question_of(j)
    channel = counted.survey.questions[q].channel
    assert isinstance(channel, HeavySet)
    assert isinstance(channel.family, Codebook)
    length = channel.family.length
    counts = counted.layout.of_question(counted.counts, q).reshape(length, N_LEVELS).astype(np.float64)
    r = int(counts[0].sum())
    decode = np.array(values()) / scores_of(channel).contrast
    mean = error = np.full(length, np.nan)
    if r:
        mean = counts @ decode / r
    if r > 1:
        spread = counts @ decode**2 / r - mean**2
        error = np.sqrt(np.maximum(spread, 0.0) / (r - 1))
    return Part(j, tuple(map(str, range(length))), mean, error, r, scaled=True)
