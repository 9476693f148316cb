"""The design of the channel for vectors: the number of codewords, the number of heavy codewords, and the error.

With the moments of `CodebookResponse`, vectors x of the ball have n·E|error|² = v·(d + (E[z²] − 1)·|x|²)/c² − |x|².
"""

from __future__ import annotations

from functools import lru_cache

from hdr4me.channels import KSubset
from hdr4me.channels.codebook.channel import Codebook
from hdr4me.channels.codebook.response import CodebookResponse
from hdr4me.channels.k_subset import heaviest
from hdr4me.channels.proof import check_epsilon

_MOST_CODEWORDS = 4096
_ENOUGH = 1.005  # allowed ratio of the error to that of the largest codebook


def total_error(channel: KSubset, norm: float = 1.0) -> float:
    """n·E|error|² for vectors of this norm in the unit ball."""
    response = CodebookResponse(channel)
    length = response.n_coordinates()
    return float(length * response.scores.square(norm**2 / length) - norm**2)


@lru_cache(maxsize=256)
def codebook_channel(epsilon: float, length: int, codewords: int | None = None) -> KSubset:
    """The smallest codebook for vectors of `length` coordinates with nearly the error of 4,096 codewords."""
    check_epsilon(epsilon)
    if codewords is not None:
        return _best_design(float(epsilon), length, codewords)
    largest = total_error(_best_design(float(epsilon), length, _MOST_CODEWORDS))
    size = 16
    while (
        size < _MOST_CODEWORDS and total_error(_best_design(float(epsilon), length, size)) > _ENOUGH * largest
    ):
        size *= 2
    return _best_design(float(epsilon), length, size)


@lru_cache(maxsize=1024)
def _best_design(epsilon: float, length: int, codewords: int) -> KSubset:
    """The number of heavy codewords with the smallest error."""

    def channel(heavy: int) -> KSubset:
        family = Codebook(length, codewords, heavy)
        return KSubset("codebook", epsilon, family, heaviest(epsilon, family))

    low, high = 1, codewords // 2  # the error is unimodal
    while low < high:
        middle = (low + high) // 2
        if total_error(channel(middle + 1)) < total_error(channel(middle)):
            low = middle + 1
        else:
            high = middle
    return channel(low)
