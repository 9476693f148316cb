"""m of d dimensions without replacement, from uniform 32-bit words and nothing else.

Integers below d are drawn until m different ones are in a bitmap; for m above d / 2, until those left out are. What
is drawn twice costs a word (at most 39 % more words, at m = d / 2), but no draw waits for the one before, as in
methods that need exactly m. By symmetry all subsets are equally likely, whatever the number of words used. A bounded
integer is Lemire's multiplication with rejection: exactly uniform.

The bitmap has a second storey, one bit for each word: reading it back sorts the dimensions, in O(m + d / 4096).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hdr4me.kernels.jit import kernel
from hdr4me.kernels.machine import ones, trailing_zeros

__all__ = ["SLACK", "bitmap", "subset", "unsorted_subset", "words_needed"]

SLACK = 3
"""Elements after the last that a subset may overwrite."""

_1 = np.uint64(1)
_6 = np.uint64(6)
_63 = np.uint64(63)
_LOW = np.uint64(0xFFFFFFFF)
_2_32 = np.uint64(1 << 32)


@kernel()
def bitmap(d: int) -> NDArray[np.uint64]:
    """Empty scratch for subsets of d: the words of d bits, then one summary bit per word."""
    words = (d + 63) // 64
    return np.zeros(words + (words + 63) // 64, np.uint64)


@kernel()
def words_needed(d: int, m: int, times: int) -> int:
    """Words that draw so many subsets but for bad luck: the average, four standard deviations and a few."""
    drawn = min(m, d - m)
    average = times * d * math.log(d / (d - drawn)) if drawn else 0.0
    return int(average + 4.0 * math.sqrt(average)) + 16


@njit(inline="always")
def _below(words, cursor, bound):  # type: ignore[no-untyped-def]
    """(cursor, integer): uniform below bound from the words at the cursor; the cursor is -1 if they ran out."""
    while cursor < words.size:
        product = np.uint64(words[cursor]) * bound
        cursor += 1
        low = product & _LOW
        if low >= bound or low >= (_2_32 - bound) % bound:
            return cursor, product >> np.uint64(32)
    return -1, np.uint64(0)


@kernel()
def _mark(d, m, words, cursor, scratch):  # type: ignore[no-untyped-def]
    """Mark m different integers below d; the cursor, or -1 and nothing marked."""
    n_words = np.uint64((d + 63) >> 6)
    have = 0
    while have < m:
        cursor, chosen = _below(words, cursor, np.uint64(d))
        if cursor < 0:
            scratch[:] = np.uint64(0)
            break
        word, bit = chosen >> _6, _1 << (chosen & _63)
        before = scratch[word]
        scratch[word] = before | bit
        scratch[n_words + (word >> _6)] |= _1 << (word & _63)
        have += before & bit == 0
    return cursor


@kernel()
def unsorted_subset(d, m, words, cursor, scratch, out, at):  # type: ignore[no-untyped-def]
    """A uniform m-subset of range(d) at out[at:at+m], in no order that matters; see `subset`."""
    if 2 * m > d:
        return subset(d, m, words, cursor, scratch, out, at)
    have = 0
    while have < m:
        cursor, chosen = _below(words, cursor, np.uint64(d))
        if cursor < 0:
            break
        word, bit = chosen >> _6, _1 << (chosen & _63)
        before = scratch[word]
        scratch[word] = before | bit
        out[at + have] = chosen
        have += before & bit == 0
    for i in range(at, at + have):
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

    How many words are used tells nothing of the subset, so starting again with fresh words after -1 leaves it
    uniform. Up to SLACK elements after the last are overwritten: four bits of a word are read back without asking
    whether they are there, which no branch predictor could guess.
    """
    n_words = np.uint64((d + 63) >> 6)
    if 2 * m <= d:
        cursor = _mark(d, m, words, cursor, scratch)
    else:
        cursor = _mark(d, d - m, words, cursor, scratch)
        if cursor >= 0:
            _complement(d, n_words, scratch)
    if cursor < 0:
        return cursor
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


@kernel()
def _complement(d, n_words, scratch):  # type: ignore[no-untyped-def]
    """Mark what is not marked, of range(d), and nothing else."""
    for word in range(n_words):
        scratch[word] = ~scratch[word]
    if d & 63:
        scratch[n_words - _1] &= (_1 << np.uint64(d & 63)) - _1
    scratch[n_words:] = np.uint64(0)
    for word in range(n_words):
        scratch[n_words + (word >> _6)] |= np.uint64(scratch[word] != 0) << (word & _63)
