"""m of d dimensions without replacement, from uniform 32-bit words and nothing else.

Words become integers below d by Lemire's multiplication with rejection: exactly uniform. They are taken in turn until m
different ones are in a bitmap; for m above d / 2, until those left out are. What is drawn twice costs a word (at most
39 % more words, at m = d / 2), but no draw waits for the one before, as in methods that need exactly m. By symmetry all
subsets are equally likely, whatever the number of words used.

The bitmap has a second storey, one bit for each word: reading it back sorts the dimensions, in O(m + d / 4096).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hdr4me.kernels.machine.intrinsics import ones, trailing_zeros
from hdr4me.kernels.machine.jit import kernel

__all__ = ["SLACK", "below", "bitmap", "subsets", "unsorted_subsets", "words_needed"]

SLACK = 1
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
    """Words that draw so many subsets but for bad luck: a bound of the average, four standard deviations and a few."""
    drawn = min(m, d - m)
    at_most = times * d * math.log(d / (d - drawn)) if drawn else 0.0
    return int(at_most + 4.0 * math.sqrt(at_most)) + 16


@kernel()
def below(words, bound, out):  # type: ignore[no-untyped-def]
    """Write the integers below the bound that the words stand for, and return how many; seldom one stands for none."""
    bound = np.uint64(bound)
    biased = (_2_32 - bound) % bound
    signs = np.uint64(0)
    for i in range(words.size):
        out[i] = np.uint16(np.uint64(words[i]) * bound >> np.uint64(32))
    for i in range(words.size):
        signs |= (np.uint64(words[i]) * bound & _LOW) - biased
    if signs >> _63 == 0:
        return words.size
    count = 0
    for i in range(words.size):
        product = np.uint64(words[i]) * bound
        out[count] = np.uint16(product >> np.uint64(32))
        count += product & _LOW >= biased
    return count


@njit
def _mark(scratch, chosen):  # type: ignore[no-untyped-def]
    """Set a bit of the bitmap; 1 if it was not set before, else 0."""
    word, bit = chosen >> _6, _1 << (chosen & _63)
    before = scratch[word]
    scratch[word] = before | bit
    return np.uint64(before & bit == 0)


@kernel()
def unsorted_subsets(d, m, drawn, cursor, scratch, out, at, count):  # type: ignore[no-untyped-def]
    """As `subsets`, each in no order that matters."""
    if 2 * m > d:
        return subsets(d, m, drawn, cursor, scratch, out, at, count)
    taken, end = np.uint64(cursor), np.uint64(drawn.size)
    have = np.uint64(at)
    for done in range(count):
        first, wanted = have, have + np.uint64(m)
        while have < wanted and taken < end:
            chosen = np.uint64(drawn[taken])
            taken += _1
            out[have] = np.uint16(chosen)
            have += _mark(scratch, chosen)
        for i in range(first, have):
            scratch[np.uint64(out[i]) >> _6] = np.uint64(0)
        if have < wanted:
            return done, np.int64(taken)
    return count, np.int64(taken)


@kernel()
def subsets(d, m, drawn, cursor, scratch, out, at, count):  # type: ignore[no-untyped-def]
    """Write uniform m-subsets of range(d), each sorted, one after the other to out[at:], from integers `drawn` below d.

    Returns how many there are, `count` or those before the integers ran out, and the cursor after the integers taken.
    How many are taken tells nothing of the subset, so going on with fresh ones leaves it uniform. Up to SLACK elements
    after the last are overwritten: two bits of a word are read back without asking whether they are there, which no
    branch predictor could guess.
    """
    n_words = np.uint64((d + 63) >> 6)
    taken, end = np.uint64(cursor), np.uint64(drawn.size)
    complement = 2 * m > d
    wanted = np.uint64(d - m if complement else m)
    position = np.uint64(at)
    for done in range(count):
        have = np.uint64(0)
        while have < wanted and taken < end:
            chosen = np.uint64(drawn[taken])
            taken += _1
            have += _mark(scratch, chosen)
            _mark(scratch, (n_words << _6) + (chosen >> _6))
        if have < wanted:
            scratch[:] = np.uint64(0)
            return done, np.int64(taken)
        if complement:
            _complement(d, n_words, scratch)
        for summary in range(n_words, np.uint64(scratch.size)):
            storey = scratch[summary]
            scratch[summary] = np.uint64(0)
            while storey:
                word = (summary - n_words) << _6 | trailing_zeros(storey)
                storey &= storey - _1
                bits = scratch[word]
                scratch[word] = np.uint64(0)
                following = position + ones(bits)
                while True:
                    for k in range(1 + SLACK):
                        out[position + np.uint64(k)] = np.uint16(word << _6 | trailing_zeros(bits))
                        bits &= bits - _1
                    if bits == 0:
                        break
                    position += np.uint64(1 + SLACK)
                position = following
    return count, np.int64(taken)


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
