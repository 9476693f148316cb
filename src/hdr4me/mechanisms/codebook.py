"""The channel for vectors: how many codewords, how many of them heavy, and the error that follows.

With z the inner product of the input's direction and the codeword sent, over its standard deviation, and v the variance
of a codeword's numbers, a codeword u has E u = √v·E[z]·x and E u_j² = v·(1 + (E[z²] − 1)·x_j²) for an input x on the
sphere. So u/c with c = √v·E[z] is unbiased, and the vectors of the ball have

    n·E|error|² = v·(d + (E[z²] − 1)·|x|²)/c² − |x|².
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

from hdr4me.channels import HeavySet
from hdr4me.channels.codebook import Codebook, thresholds, values
from hdr4me.channels.heavy_set import heaviest
from hdr4me.channels.proof import ONE
from hdr4me.mechanisms.law import check_epsilon

__all__ = ["Scores", "codebook_channel", "least_noise", "scores_of", "total_error", "value_variance"]

_MOST_CODEWORDS = 4096
_ENOUGH = 1.005
"""The error may be this many times that of the largest codebook."""


class Scores(NamedTuple):
    """E[z] and E[z²] of the codeword that is sent."""

    first: float
    second: float

    @property
    def contrast(self) -> float:
        """c: the mean of a codeword along a direction of length 1."""
        return float(np.sqrt(value_variance()) * self.first)

    def square(self, x: float) -> float:
        """The mean square of a decoded coordinate whose own mean square over users is `x`.

        >>> Scores(0.5, 1.25).square(0.0), Scores(0.5, 1.25).square(1.0)
        (4.0, 5.0)
        """
        return (1.0 + (self.second - 1.0) * x) / self.first**2


@lru_cache(maxsize=1)
def value_variance() -> float:
    """v: the variance of a codeword's numbers."""
    shares = np.diff(thresholds()) / 65536
    return float(shares @ np.square(values()))


@lru_cache(maxsize=4096)
def _top(codewords: int, heavy: int) -> tuple[float, float]:
    """The mean, and the mean square, of the k largest of K independent normal numbers.

    A number z is among them if at most k − 1 of the others exceed it:
    E g = (K/k)∫ g(z) φ(z) P(Bin(K − 1, Φ(−z)) < k) dz.
    """
    z = np.linspace(-9.0, 9.0, 1201)
    inside = special.betainc(codewords - heavy, heavy, special.ndtr(z))
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * inside * codewords / heavy
    step = z[1] - z[0]
    return float((z * density).sum() * step), float((z**2 * density).sum() * step)


@lru_cache(maxsize=4096)
def _scores(codewords: int, heavy: int, p: float) -> Scores:
    first, second = _top(codewords, heavy)
    rest = heavy / (codewords - heavy)  # all K numbers together have the mean 0 and the mean square 1
    others = 1 + rest * (1 - second)
    return Scores(p * first - (1 - p) * rest * first, p * second + (1 - p) * others)


def scores_of(channel: HeavySet) -> Scores:
    """The moments of a codebook's scores."""
    family = channel.family
    assert isinstance(family, Codebook)
    return _scores(family.codewords, family.heavy, channel.weight / ONE)


def least_noise(channel: HeavySet) -> float:
    """The least variance of a decoded report along a direction of length 1, whatever the vector is.

    A report u/c about a vector x of the sphere has the covariance (I + (E[z²] − 1 − E[z]²)·x·xᵀ)/E[z]².

    >>> least_noise(codebook_channel(4.0, 100)) < total_error(codebook_channel(4.0, 100)) / 100
    True
    """
    first, second = scores_of(channel)
    return min(1.0, second - first**2) / first**2


def total_error(channel: HeavySet, norm: float = 1.0) -> float:
    """n·E|error|² for vectors of this norm in the ball of norm 1.

    >>> channel = codebook_channel(4.0, 100)
    >>> round(total_error(channel) / 100, 2) <= 0.44
    True
    """
    family = channel.family
    assert isinstance(family, Codebook)
    return _error(family.length, scores_of(channel), norm)


def _error(length: int, scores: Scores, norm: float) -> float:
    return length * scores.square(norm**2 / length) - norm**2


@lru_cache(maxsize=256)
def codebook_channel(epsilon: float, length: int, codewords: int | None = None) -> HeavySet:
    """The codebook for vectors of `length` coordinates; the smallest one whose error is nearly that of 4,096 codewords.

    Parameters
    ----------
    epsilon
        The budget of one answer.
    length
        How many coordinates a vector has.
    codewords
        How many codewords a seed has, if not the plan's own choice: a device computes K·d products.

    Examples
    --------
    >>> codebook_channel(8.0, 100, 4096).family.heavy
    13
    """
    check_epsilon(epsilon)
    if codewords is not None:
        return _made(float(epsilon), length, codewords)
    largest = total_error(_made(float(epsilon), length, _MOST_CODEWORDS))
    size = 16
    while size < _MOST_CODEWORDS and total_error(_made(float(epsilon), length, size)) > _ENOUGH * largest:
        size *= 2
    return _made(float(epsilon), length, size)


@lru_cache(maxsize=1024)
def _made(epsilon: float, length: int, codewords: int) -> HeavySet:
    """The number of heavy codewords of least error."""

    def channel(heavy: int) -> HeavySet:
        family = Codebook(length, codewords, heavy)
        return HeavySet("codebook", epsilon, family, heaviest(epsilon, family))

    low, high = 1, codewords // 2  # the error falls to one least value and rises after it
    while low < high:
        middle = (low + high) // 2
        if total_error(channel(middle + 1)) < total_error(channel(middle)):
            low = middle + 1
        else:
            high = middle
    return channel(low)
