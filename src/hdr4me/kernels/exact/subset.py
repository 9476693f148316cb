"""Uniform samples of m of d dimensions without replacement, from uniform 32-bit words.

1. `below` turns words into integers below d by Lemire's multiplication with rejection sampling: exactly uniform.
2. The integers are marked in a bitmap of d bits until m bits are set. For m > d / 2 the d - m dimensions that are left
   out are marked instead. An integer that is already marked is skipped, which costs at most 39 % more words (at
   m = d / 2); in return no draw depends on the one before, as it does in methods that use exactly m words. By symmetry
   all subsets are equally likely, whatever number of words was used.
3. Reading the bitmap back gives the dimensions in increasing order. A summary bitmap (one bit per 64-bit word of the
   first) skips empty words, so that reading takes O(m + d / 4096).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hdr4me.kernels.machine.intrinsics import ones, trailing_zeros
from hdr4me.kernels.machine.jit import kernel

SLACK = 1
"""How many elements after its last one a subset may overwrite."""

_1 = np.uint64(1)
_6 = np.uint64(6)
_63 = np.uint64(63)
_LOW = np.uint64(0xFFFFFFFF)
_2_32 = np.uint64(1 << 32)


@kernel()
def bitmap(d: int) -> NDArray[np.uint64]:
    """An empty buffer for subsets of d: the words of a bitmap of d bits, then those of its summary bitmap."""
    words = (d + 63) // 64
    return np.zeros(words + (words + 63) // 64, np.uint64)


@kernel()
def words_needed(d: int, m: int, times: int) -> int:
    """How many words nearly always suffice for `times` subsets: a bound of the mean, 4 standard deviations, and 16."""
    drawn = min(m, d - m)
    at_most = times * d * math.log(d / (d - drawn)) if drawn else 0.0
    return int(at_most + 4.0 * math.sqrt(at_most)) + 16


@kernel()
def below(words, bound, out):  # type: ignore[no-untyped-def]
    """Write uniform integers below `bound` made from the words, and return how many: rejected words give none.

    Rejections are rare, so all words are first converted as if none were rejected, in loops that vectorise. Only if the
    sign bits of the differences show a rejection are the words gone through one by one.
    """
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
    """Set a bit of the bitmap; returns 1 if the bit was not set before, else 0."""
    word, bit = chosen >> _6, _1 << (chosen & _63)
    before = scratch[word]
    scratch[word] = before | bit
    return np.uint64(before & bit == 0)


@kernel()
def unsorted_subsets(d, m, drawn, cursor, scratch, out, at, count):  # type: ignore[no-untyped-def]
    """The same as `subsets`, but the dimensions of a subset are in the order in which they were drawn."""
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
    """Write `count` uniform m-subsets of range(d), each sorted, one after the other to out[at:].

    `drawn` holds uniform integers below d, used from index `cursor` on; `scratch` is an empty `bitmap(d)` and is empty
    again afterwards. Returns how many subsets were written (fewer than `count` if the integers ran out) and the index
    of the first unused integer. A subset that was begun when the integers ran out is dropped; it is begun again with
    fresh integers, which leaves it uniform, because the number of integers used is independent of the subset. Up to
    SLACK elements after the last subset are overwritten: the bits of a word are read back two at a time, without a
    test for whether there is a second, because the processor could not predict that branch.
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
            left = scratch[summary]
            scratch[summary] = np.uint64(0)
            while left:
                word = (summary - n_words) << _6 | trailing_zeros(left)
                left &= left - _1
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
    """Replace the marked subset of range(d) by its complement, and rebuild the summary bitmap."""
    for word in range(n_words):
        scratch[word] = ~scratch[word]
    if d & 63:
        scratch[n_words - _1] &= (_1 << np.uint64(d & 63)) - _1
    scratch[n_words:] = np.uint64(0)
    for word in range(n_words):
        scratch[n_words + (word >> _6)] |= np.uint64(scratch[word] != 0) << (word & _63)
