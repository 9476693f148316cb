"""Uniform sets: m of d dimensions for each user, and sets of categories for subset selection.

Dimensions: uniform integers below d are marked in a bitmap until m bits are set (for m > d / 2, the d − m that are left
out). An integer that is already marked is skipped, at most 39 % of them; in return no draw depends on the one before. A
summary bitmap, one bit for each word of the first, skips empty words when the bits are read back in increasing order.

Categories: each of the d other categories is included with probability c / 2^b, which b random words decide for 64
categories at a time ("or" for a digit 1 of c, "and" for a digit 0). Then categories are drawn one by one and removed,
or added, until the set has m − 1. One more is added; if the output is heavy, the user's own category replaces it. Every
step treats all categories alike, so that all sets are equally likely, whatever c and b are. If the number of sets is
small, a word selects one from a list.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hdr4me.kernels.machine.intrinsics import ones, put_eight, trailing_zeros
from hdr4me.kernels.machine.jit import kernel

SLACK = 1  # the number of elements after its last one that a subset may overwrite


@kernel()
def bitmap(d: int) -> NDArray[np.uint64]:
    """An empty buffer for subsets of d: the words of a bitmap of d bits, then those of its summary bitmap."""
    words = (d + 63) // 64
    return np.zeros(words + (words + 63) // 64, np.uint64)


@kernel()
def words_needed(d: int, m: int, times: int) -> int:
    """A number of words that is nearly always sufficient for `times` subsets: mean + 4 standard deviations + 16."""
    drawn = min(m, d - m)
    at_most = times * d * math.log(d / (d - drawn)) if drawn else 0.0
    return int(at_most + 4.0 * math.sqrt(at_most)) + 16


@kernel()
def below(words, bound, out):  # type: ignore[no-untyped-def]
    """Write uniform integers below `bound` made from the words, and return how many: rejected words give none.

    Rejections are rare, so all words are first converted as if none were rejected, in loops that vectorize. The words
    are checked one by one only if the sign bits of the differences show a rejection.
    """
    bound = np.uint64(bound)
    biased = (_2_32 - bound) % bound
    signs = np.uint64(0)
    for i in range(words.size):
        out[i] = np.uint16(np.uint64(words[i]) * bound >> np.uint64(32))
    for i in range(words.size):
        signs |= (np.uint64(words[i]) * bound & _LOW_32) - biased
    if signs >> _63 == 0:
        return words.size
    count = 0
    for i in range(words.size):
        product = np.uint64(words[i]) * bound
        out[count] = np.uint16(product >> np.uint64(32))
        count += product & _LOW_32 >= biased
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
    if m == 1 or 2 * m > d:
        return subsets(d, m, drawn, cursor, scratch, out, at, count)
    used, end = np.uint64(cursor), np.uint64(drawn.size)
    have = np.uint64(at)
    for done in range(count):
        first, wanted = have, have + np.uint64(m)
        while have < wanted and used < end:
            chosen = np.uint64(drawn[used])
            used += _1
            out[have] = np.uint16(chosen)
            have += _mark(scratch, chosen)
        for i in range(first, have):
            scratch[np.uint64(out[i]) >> _6] = np.uint64(0)
        if have < wanted:
            return done, np.int64(used)
    return count, np.int64(used)


@kernel()
def subsets(d, m, drawn, cursor, scratch, out, at, count):  # type: ignore[no-untyped-def]
    """Write `count` uniform m-subsets of range(d), each sorted, one after the other to out[at:].

    `drawn` holds uniform integers below d, used from index `cursor` on; `scratch` is an empty `bitmap(d)` and is empty
    again afterwards. Returns how many subsets were written (fewer than `count` if the integers ran out) and the index
    of the first unused integer. If the integers run out, an incomplete subset is dropped and drawn again with new
    integers. It remains uniform, because the number of integers used is independent of the subset. Up to SLACK elements
    after the last subset are overwritten: the bits of a word are read back two at a time, without a test for whether
    there is a second, because the processor could not predict that branch.
    """
    if m == 1 < d:
        done = min(count, drawn.size - cursor)
        out[at : at + done] = drawn[cursor : cursor + done]
        return done, cursor + done
    if d <= 64:
        return _subsets_of_one_word(d, m, drawn, cursor, out, at, count)
    n_words = np.uint64((d + 63) >> 6)
    used, end = np.uint64(cursor), np.uint64(drawn.size)
    complement = 2 * m > d
    marked = np.uint64(d - m if complement else m)
    position = np.uint64(at)
    for done in range(count):
        have = np.uint64(0)
        while have < marked and used < end:
            chosen = np.uint64(drawn[used])
            used += _1
            have += _mark(scratch, chosen)
            _mark(scratch, (n_words << _6) + (chosen >> _6))
        if have < marked:
            scratch[:] = np.uint64(0)
            return done, np.int64(used)
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
    return count, np.int64(used)


@kernel()
def _subsets_of_one_word(d, m, drawn, cursor, out, at, count):  # type: ignore[no-untyped-def]
    """The same as `subsets` for d <= 64: the bitmap is one word, which stays in a register."""
    every = ~np.uint64(0) >> np.uint64(64 - d)
    complement = 2 * m > d
    wanted = np.uint64(d - m if complement else m)
    taken, end, position = np.uint64(cursor), np.uint64(drawn.size), np.uint64(at)
    for done in range(count):
        bits, have = np.uint64(0), np.uint64(0)
        while have < wanted and taken < end:
            bit = _1 << np.uint64(drawn[taken])
            taken += _1
            have += np.uint64(bits & bit == 0)
            bits |= bit
        if have < wanted:
            return done, np.int64(taken)
        if complement:
            bits ^= every
        for _ in range(m):
            out[position] = np.uint16(trailing_zeros(bits))
            bits &= bits - _1
            position += _1
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


MOST = 65536  # categories: one is drawn, and written, in 16 bits

SETS_SLACK = 8  # the number of elements after the last one of a set that may be overwritten

_MOST_BITS = 6
# The measured cost of 64 fair bits relative to one drawn category; the choice of coins does not affect the
# distribution.
_PLANE, _DRAW = 8.0, 11.0

# Limits of the number of sets and of categories for which all sets are listed.
_LISTED, _LISTED_CATEGORIES = 1 << 14, 32

_0, _1, _6, _8, _16, _32, _63, _255 = (np.uint64(x) for x in (0, 1, 6, 8, 16, 32, 63, 255))
_LOW_16, _LOW_32, _2_32 = (np.uint64(x) for x in (0xFFFF, 0xFFFFFFFF, 1 << 32))
_EACH_BYTE = np.uint64(0x0101010101010101)
_EACH_HALF = np.uint64(0x0001000100010001)


class Coins(NamedTuple):
    """The first probability c / 2^b of a category, and the mean and variance of the number of 16-bit draws of a set."""

    c: int
    b: int
    mean: float
    variance: float


def draws_expected(d: int, m: int, c: int, b: int) -> tuple[float, float]:
    """The mean and the approximate variance of the number of 16-bit draws of a set after its coins."""
    share = c / 2**b
    spread = (d * share * (1 - share)) ** 0.5
    sizes = np.clip(np.round(d * share + spread * np.linspace(-4, 4, 161)), 0, d - 1)
    chances = np.exp(-(np.linspace(-4, 4, 161) ** 2) / 2)
    chances /= chances.sum()
    start = np.minimum(sizes, m - 1)
    put_in = d * np.log((d - start) / (d - m))
    taken_out = d * np.log(np.maximum(sizes, m - 1) / (m - 1)) if c else 0.0 * sizes
    draws = (put_in + taken_out) * 2**16 / (2**16 - 2**16 % d)
    mean = float(chances @ draws)
    return mean, float(chances @ (draws - mean) ** 2) + 4 * mean


@lru_cache(maxsize=256)
def coins(d: int, m: int) -> Coins:
    """The coins with which sets of 2 ≤ m < d of d cost least."""
    found = [(_DRAW * mean, Coins(0, 0, mean, spread)) for mean, spread in [draws_expected(d, m, 0, 0)]]
    for b in range(1, _MOST_BITS + 1):
        for c in {max(1, x | 1) for x in (int((m - 1) / d * 2**b) - 1, int((m - 1) / d * 2**b))}:
            if c < 2**b:
                mean, spread = draws_expected(d, m, c, b)
                found.append((_PLANE * b * (d / 64 + 1) + _DRAW * mean, Coins(c, b, mean, spread)))
    return min(found)[1]


@lru_cache(maxsize=2)
def members_of_bytes(size: int) -> NDArray[np.uint64]:
    """For each byte the positions of its bits in increasing order, eight numbers of `size` bytes in whole words."""
    places = np.zeros((256, 8), f"<u{size}")
    for byte in range(256):
        own = [bit for bit in range(8) if byte >> bit & 1]
        places[byte, : len(own)] = own
    return places.view(np.uint64)


@kernel()
def dense_sets(planes, c, b, halves, width, v, inputs, heavy, members, out, at):  # type: ignore[no-untyped-def]
    """Write a sorted set of `width` of v categories for each input from row `at` on; returns the next row.

    `planes` [rows, b, words of 64 bits] are the coins of rows at, at + 1, …; `halves` uniform numbers of 16 bits for
    the draws. `out` holds the rows end to end, in numbers of one byte or of two, and SETS_SLACK elements. If the
    numbers run out, an incomplete set is dropped; the number of draws is independent of the set.
    """
    d = np.uint64(v - 1)
    n_words = (v + 63) >> 6
    biased = np.uint64((1 << 16) % (v - 1))
    mask = np.zeros(n_words, np.uint64)
    used, end = 0, halves.size
    size = out.itemsize
    last = np.uint64(n_words - 1)
    low = (_1 << (d & _63)) - _1  # of the last word the bits below d; none if d is a multiple of 64
    for i in range(at, min(inputs.size, at + planes.shape[0])):
        row = i - at
        if b == 0:
            mask[:] = _0
        else:
            for j in range(n_words):
                mask[j] = planes[row, 0, j]
            for k in range(1, b):
                if c >> k & 1:
                    for j in range(n_words):
                        mask[j] |= planes[row, k, j]
                else:
                    for j in range(n_words):
                        mask[j] &= planes[row, k, j]
            mask[last] &= low
        have = np.int64(0)
        for j in range(n_words):
            have += np.int64(ones(mask[j]))
        while have >= width and used < end:
            product = np.uint64(halves[used]) * d
            used += 1
            if product & _LOW_16 >= biased:
                chosen = product >> _16
                before = mask[chosen >> _6]
                bit = _1 << (chosen & _63)
                mask[chosen >> _6] = before & ~bit
                have -= np.int64(before >> (chosen & _63) & _1)
        if have >= width:
            return i
        chosen = _0
        while have < width and used < end:
            product = np.uint64(halves[used]) * d
            used += 1
            if product & _LOW_16 >= biased:
                chosen = product >> _16
                before = mask[chosen >> _6]
                bit = _1 << (chosen & _63)
                mask[chosen >> _6] = before | bit
                have += np.int64(~before >> (chosen & _63) & _1)
        if have < width:
            return i
        own, x = np.uint64(heavy[i]), np.uint64(inputs[i])
        mask[chosen >> _6] ^= own << (chosen & _63)
        # The index of the user's own category means the last category, which has no index among the others.
        moved = mask[x >> _6] >> (x & _63) & _1
        mask[x >> _6] ^= moved << (x & _63)
        mask[d >> _6] |= moved << (d & _63)
        mask[x >> _6] |= own << (x & _63)
        address = np.uint64(out.ctypes.data) + np.uint64(i * width * size)
        for j in range(n_words):
            word = mask[j]
            if size == 1:
                base = np.uint64(j << 6) * _EACH_BYTE
                for _ in range(8):
                    byte = word & _255
                    put_eight(address, members[byte, 0] + base)
                    address += ones(byte)
                    base += _8 * _EACH_BYTE
                    word >>= _8
            else:
                base = np.uint64(j << 6) * _EACH_HALF
                for _ in range(8):
                    byte = word & _255
                    put_eight(address, members[byte, 0] + base)
                    put_eight(address + _8, members[byte, 1] + base)
                    address += ones(byte) << _1
                    base += _8 * _EACH_HALF
                    word >>= _8
    return min(inputs.size, at + planes.shape[0])


@lru_cache(maxsize=64)
def listed(d: int, m: int) -> NDArray[np.uint64] | None:
    """Every set of m − 1 of d in the low 32 bits, with each further one in the high 32; None if there are too many."""
    if d >= _LISTED_CATEGORIES or math.comb(d, m) * m > _LISTED:
        return None
    sets = (sum(1 << k for k in own) for own in combinations(range(d), m - 1))
    found = [own | 1 << k + 32 for own in sets for k in range(d) if not own >> k & 1]
    return np.array(found, np.uint64)


@kernel()
def listed_sets(words, entries, width, v, inputs, heavy, members, out, at):  # type: ignore[no-untyped-def]
    """`dense_sets` with sets and replaceable elements from a list (`listed`): one 32-bit word decides."""
    d, bound = np.uint64(v - 1), np.uint64(entries.size)
    biased = (_1 << _32) % bound
    used = 0
    n_bytes = (v + 7) >> 3
    for i in range(at, inputs.size):
        while True:
            if used == words.size:
                return i
            product = np.uint64(words[used]) * bound
            used += 1
            if product & _LOW_32 >= biased:
                break
        entry = entries[product >> _32]
        own, x = np.uint64(heavy[i]), np.uint64(inputs[i])
        mask = (entry & _LOW_32) | (entry >> _32) * (_1 - own)
        moved = mask >> x & _1
        mask ^= moved << x
        mask |= moved << d | own << x
        address = np.uint64(out.ctypes.data) + np.uint64(i * width)
        base = _0
        for _ in range(n_bytes):
            byte = mask & _255
            put_eight(address, members[byte, 0] + base)
            address += ones(byte)
            base += _8 * _EACH_BYTE
            mask >>= _8
    return inputs.size


@kernel()
def with_member(sets, inputs, heavy, places, out):  # type: ignore[no-untyped-def]
    """Write each sorted set of others as a sorted set of categories; where `heavy`, the own category replaces one.

    sets[i] number the categories other than inputs[i]; places[i] is the position of the one that is replaced.
    """
    width = sets.shape[1]
    for i in range(sets.shape[0]):
        x = inputs[i]
        gone = places[i] if heavy[i] else width
        at = 0
        waiting = heavy[i]
        for c in range(width):
            number = np.int64(sets[i, c])
            number += number >= x
            if c == gone:
                continue
            if waiting and number > x:
                out[i, at] = x
                at += 1
                waiting = False
            out[i, at] = number
            at += 1
        if waiting:
            out[i, at] = x
