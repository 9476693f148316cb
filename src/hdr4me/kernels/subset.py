"""m of d dimensions without replacement, in increasing order, from uniform 32-bit words and nothing else.

Floyd's algorithm needs exactly m bounded integers and keeps its set in a bitmap of two storeys, so the cost is
O(m + d / 4096) and reading the bitmap back yields the dimensions sorted. A bounded integer is Lemire's
multiplication with rejection: exactly uniform, no division except once in 2^32 / bound words.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hdr4me.kernels.jit import kernel
from hdr4me.kernels.machine import ones, trailing_zeros

__all__ = ["SLACK", "bitmap", "subset", "unsorted_subset"]

SLACK = 3
"""Elements after the last that `subset` may overwrite."""

_1 = np.uint64(1)
_6 = np.uint64(6)
_63 = np.uint64(63)
_LOW = np.uint64(0xFFFFFFFF)
_2_32 = np.uint64(1 << 32)


def bitmap(d: int) -> NDArray[np.uint64]:
    """Empty scratch for subsets of d: the words of d bits, then one summary bit per word."""
    words = (d + 63) // 64
    return np.zeros(words + (words + 63) // 64, np.uint64)


@njit(inline="always")
def _bounded(words, cursor, bound):  # type: ignore[no-untyped-def]
    """(cursor, integer): uniform below bound from the words at the cursor; the cursor is -1 if they ran out."""
    while cursor < words.size:
        product = np.uint64(words[cursor]) * bound
        cursor += 1
        low = product & _LOW
        if low >= bound or low >= (_2_32 - bound) % bound:
            return cursor, product >> np.uint64(32)
    return -1, np.uint64(0)


@kernel()
def unsorted_subset(d, m, words, cursor, scratch, out, at):  # type: ignore[no-untyped-def]
    """A uniform m-subset of range(d) at out[at:at+m], in no order that matters; see `subset`."""
    chosen_so_far = 0
    for step in range(m):
        top = np.uint64(d - m + step)
        cursor, chosen = _bounded(words, cursor, top + _1)
        if cursor < 0:
            break
        chosen = top if scratch[chosen >> _6] >> (chosen & _63) & _1 else chosen
        scratch[chosen >> _6] |= _1 << (chosen & _63)
        out[at + step] = chosen
        chosen_so_far += 1
    for i in range(at, at + chosen_so_far):
        scratch[np.uint64(out[i]) >> _6] = np.uint64(0)
    return cursor


@kernel()
def subset(
    d: int,
    m: int,
    words: NDArray[np.uint32],
    cursor: int,
    scratch: NDArray[np.uint64],
    out: NDArray[np.uint16],
    at: int,
) -> int:
    """Write a uniform m-subset of range(d), sorted, to out[at:at+m]; the cursor after the words used, or -1 if too few.

    How many words are rejected is independent of the integers accepted, so starting again with fresh words
    after -1 leaves the subset uniform. Up to SLACK elements after the last are overwritten: four bits of a word are
    read back without asking whether they are there, which no branch predictor could guess.
    """
    n_words = np.uint64((d + 63) >> 6)
    for step in range(m):
        top = np.uint64(d - m + step)
        cursor, chosen = _bounded(words, cursor, top + _1)
        if cursor < 0:
            break
        chosen = top if scratch[chosen >> _6] >> (chosen & _63) & _1 else chosen
        word = chosen >> _6
        scratch[word] |= _1 << (chosen & _63)
        scratch[n_words + (word >> _6)] |= _1 << (word & _63)
    position = np.uint64(at)
    for summary in range(n_words, np.uint64(scratch.size)):
        storey = scratch[summary]
        scratch[summary] = np.uint64(0)
        while storey:
            word = (summary - n_words) << _6 | trailing_zeros(storey)
            storey &= storey - _1
            bits = scratch[word]
            scratch[word] = np.uint64(0)
            end = position + ones(bits)
            while True:
                for k in range(4):
                    out[position + np.uint64(k)] = word << _6 | trailing_zeros(bits)
                    bits &= bits - _1
                if bits == 0:
                    break
                position += np.uint64(4)
            position = end
    return cursor
