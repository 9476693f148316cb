"""The mean of vectors that were answered by codewords: one row for each coordinate.

An optional vector x is asked as (x, 0), and no vector as (0, −1). Let y be the decoded number of one coordinate, and s
that of the last one. The mean of y over all users is share·mean, and the mean of 1 + s is the share of users who have a
vector. In every input the coordinate or the last one is 0, so the product y·s has the mean 0 for every user. A tally
counts each coordinate by itself, and this is then all that the standard error of the ratio needs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Channel, HeavySet
from hdr4me.channels.codebook import N_LEVELS, Codebook, values
from hdr4me.channels.codebook.design import least_noise, scores_of
from hdr4me.statistics.statistic import SURELY, Counted, Part
from hdr4me.survey import Dimension, Vector

__all__ = ["is_codebook", "is_optional_vector", "mean_vector", "share_of_vectors"]

Floats = NDArray[np.float64]


class _Reports(NamedTuple):
    """Decoded reports: how many, the mean and the mean square of each coordinate, and the least variance of one."""

    n: int
    mean: Floats
    square: Floats
    least: float


def is_codebook(channel: Channel) -> bool:
    """Whether a channel answers vectors."""
    return isinstance(channel, HeavySet) and isinstance(channel.family, Codebook)


def is_optional_vector(dimension: Dimension) -> bool:
    """Whether a dimension is a vector that may be missing."""
    return isinstance(dimension, Vector) and dimension.optional


def mean_vector(counted: Counted, j: int) -> Part:
    """The mean of each coordinate, as a share of the norm, and its standard error.

    A codeword's number over c is an unbiased report of a coordinate. The levels of each coordinate are counted, so the
    sample variance of these reports is known; its r-th part is the variance of the mean of a population that r users
    come from. Of an optional vector it is the mean among those who have one.
    """
    if is_optional_vector(counted.survey.schema.dimensions[j]):
        return _mean_among_present(counted, j)
    reports = _decoded(counted, j)
    error = np.full(len(reports.mean), np.nan)
    if reports.n > 1:
        spread = reports.square - reports.mean**2
        error = np.sqrt(np.maximum(spread, 0.0) / (reports.n - 1))
    return Part(j, _names(len(reports.mean)), reports.mean, error, reports.n, scaled=True)


def share_of_vectors(counted: Counted, j: int) -> Part:
    """The share of users who have a vector: 1 and the mean of the last coordinate."""
    reports = _decoded(counted, j)
    share, error = _share(reports)
    return Part(j, (None,), np.array([share]), np.array([error]), reports.n)


def _mean_among_present(counted: Counted, j: int) -> Part:
    """The ratio R = mean of y over the share, by the delta method.

    The residual y − R·(1 + s) has the mean 0. Its variance, over the share's square, is the ratio's to first order:
    E y² − 2R·E y + R²·E(1 + s)², because E[y·s] = 0. The variance is at least that of the noise, `least_noise` times
    1 + R². In the residual R is kept within [−1, 1], where the truth is.
    """
    reports = _decoded(counted, j)
    length = len(reports.mean) - 1
    mean = error = np.full(length, np.nan)
    unsure = False
    if reports.n > 1:
        share, share_error = _share(reports)
        unsure = not share > SURELY * share_error
        y, ratio = reports.mean[:-1], reports.mean[:-1] / (share or np.nan)
        kept = np.clip(ratio, -1.0, 1.0)
        present = 1.0 + 2.0 * reports.mean[-1] + reports.square[-1]
        spread = reports.square[:-1] - 2.0 * kept * y + kept**2 * present - (y - kept * share) ** 2
        noise = reports.least * (1.0 + kept**2)
        mean, error = ratio, np.sqrt(np.maximum(spread, noise) / (reports.n - 1)) / abs(share)
    return Part(j, _names(length), mean, error, reports.n, scaled=True, unsure=unsure)


def _share(reports: _Reports) -> tuple[float, float]:
    """The share of users who have a vector, and its standard error."""
    last, square = float(reports.mean[-1]), float(reports.square[-1])
    if reports.n < 2:
        return 1.0 + last, np.nan
    return 1.0 + last, float(np.sqrt(max(square - last**2, reports.least) / (reports.n - 1)))


def _decoded(counted: Counted, j: int) -> _Reports:
    q = counted.survey.question_of(j)
    channel = counted.survey.questions[q].channel
    assert isinstance(channel, HeavySet)
    assert isinstance(channel.family, Codebook)
    length = channel.family.length
    counts = counted.layout.of_question(counted.counts, q).reshape(length, N_LEVELS).astype(np.float64)
    r = int(counts[0].sum())
    decode = np.array(values()) / scores_of(channel).contrast
    nothing = np.full(length, np.nan)
    if not r:
        return _Reports(r, nothing, nothing, least_noise(channel))
    return _Reports(r, counts @ decode / r, counts @ decode**2 / r, least_noise(channel))


def _names(length: int) -> tuple[str, ...]:
    return tuple(map(str, range(length)))
