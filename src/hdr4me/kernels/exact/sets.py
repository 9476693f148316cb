"""Sets of categories for subset selection, drawn for many users at once, 64 categories in an operation.

1. Each of the d other categories enters the set with probability c / 2^b, independently: b random words decide 64 of
   them, from the lowest binary digit of c on, by "or" for a digit 1 and by "and" for a digit 0.
2. Categories drawn one by one are taken out, or put in, until the set has m − 1. A category that is not in the set
   cannot be taken out, and one that is in the set cannot be put in: another is drawn.
3. One more is put in. It gives its place to one's own category if the output is heavy.

Neither step knows one category from another, so every set of as many is as likely, whatever c and b are, and however
many words were used: the law is exact, and c / 2^b only decides how much is left for step 2. Inputs decide which
bit is set at the end, never which words are drawn. Where there are few sets they are listed, and one word picks one.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdr4me.kernels.machine.intrinsics import ones, put_eight
from hdr4me.kernels.machine.jit import kernel

MOST = 65536
"""Categories: one is drawn, and written, in 16 bits."""

SLACK = 8
"""How many elements after the last one of a set may be overwritten."""

_MOST_BITS = 6
_PLANE, _DRAW = 8.0, 11.0
"""What 64 fair bits cost beside one category drawn, measured; the choice of coins does not touch the law."""

_LISTED, _LISTED_CATEGORIES = 1 << 14, 32
"""At most so many sets, of fewer categories than so many, are listed."""

_0, _1, _6, _8, _16, _32, _63, _255 = (np.uint64(x) for x in (0, 1, 6, 8, 16, 32, 63, 255))
_LOW, _LOW_32 = np.uint64(0xFFFF), np.uint64(0xFFFFFFFF)
_EACH_BYTE = np.uint64(0x0101010101010101)
_EACH_HALF = np.uint64(0x0001000100010001)


class Coins(NamedTuple):
    """With what probability, c / 2^b, a category enters at first; and draws of 16 bits a set: mean and variance."""

    c: int
    b: int
    mean: float
    variance: float


def draws_expected(d: int, m: int, c: int, b: int) -> tuple[float, float]:
    """Mean and (roughly) variance of the number of draws of 16 bits that a set takes after its coins."""
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
    """For each byte the places of its bits in increasing order, eight numbers of `size` bytes in whole words."""
    places = np.zeros((256, 8), f"<u{size}")
    for byte in range(256):
        own = [bit for bit in range(8) if byte >> bit & 1]
        places[byte, : len(own)] = own
    return places.view(np.uint64)


@kernel()
def dense_sets(planes, c, b, halves, width, v, inputs, heavy, members, out, at):  # type: ignore[no-untyped-def]
    """Write a sorted set of `width` of v categories for each input from row `at` on; returns the next row.

    `planes` [rows, b, words of 64 bits] are the coins of rows at, at + 1, …; `halves` uniform numbers of 16 bits for
    the draws. `out` holds the rows end to end, in numbers of one byte or of two, and SLACK elements. A set that was
    begun when the numbers ran out is dropped: how many it took says nothing about which set it is.
    """
    d = np.uint64(v - 1)
    n_words = (v + 63) >> 6
    biased = np.uint64((1 << 16) % (v - 1))
    mask = np.zeros(n_words, np.uint64)
    taken, end = 0, halves.size
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
        while have >= width and taken < end:
            product = np.uint64(halves[taken]) * d
            taken += 1
            if product & _LOW >= biased:
                chosen = product >> _16
                before = mask[chosen >> _6]
                bit = _1 << (chosen & _63)
                mask[chosen >> _6] = before & ~bit
                have -= np.int64(before >> (chosen & _63) & _1)
        if have >= width:
            return i
        chosen = _0
        while have < width and taken < end:
            product = np.uint64(halves[taken]) * d
            taken += 1
            if product & _LOW >= biased:
                chosen = product >> _16
                before = mask[chosen >> _6]
                bit = _1 << (chosen & _63)
                mask[chosen >> _6] = before | bit
                have += np.int64(~before >> (chosen & _63) & _1)
        if have < width:
            return i
        own, x = np.uint64(heavy[i]), np.uint64(inputs[i])
        mask[chosen >> _6] ^= own << (chosen & _63)
        # One's own place stands for the last category, which has none among the others.
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
    """Every set of m − 1 of d in the low 32 bits, with every further one in the high 32; None if they are many."""
    if d >= _LISTED_CATEGORIES or math.comb(d, m) * m > _LISTED:
        return None
    sets = (sum(1 << k for k in own) for own in combinations(range(d), m - 1))
    found = [own | 1 << k + 32 for own in sets for k in range(d) if not own >> k & 1]
    return np.array(found, np.uint64)


@kernel()
def listed_sets(words, entries, width, v, inputs, heavy, members, out, at):  # type: ignore[no-untyped-def]
    """As `dense_sets`, each set and the one that may give way from a list (`listed`): one word of 32 bits decides."""
    d, bound = np.uint64(v - 1), np.uint64(entries.size)
    biased = (_1 << _32) % bound
    taken = 0
    n_bytes = (v + 7) >> 3
    for i in range(at, inputs.size):
        while True:
            if taken == words.size:
                return i
            product = np.uint64(words[taken]) * bound
            taken += 1
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
    """Write each sorted set of others as a sorted set of categories; where `heavy`, its own takes the place of one.

    sets[i] are numbers among the categories other than inputs[i]; places[i] says which of them gives way.
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
