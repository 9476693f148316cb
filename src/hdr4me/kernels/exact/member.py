"""Subsets of the other categories become subsets that may have one's own, for many users at once."""

from __future__ import annotations

import numpy as np

from hdr4me.kernels.machine.intrinsics import ones, trailing_zeros
from hdr4me.kernels.machine.jit import kernel

__all__ = ["SMALL", "small_sets", "with_member"]

SMALL = 128
"""Up to so many categories a set is two words of 64 bits."""

_0, _1, _6, _63, _64 = (np.uint64(x) for x in (0, 1, 6, 63, 64))


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


@kernel()
def small_sets(drawn, width, inputs, heavy, places, out, at):  # type: ignore[no-untyped-def]
    """Draw sets of others and write them as `with_member` does, for up to `SMALL` categories; returns the next row.

    `drawn` are uniform numbers among the categories other than one's own; a number that the set has is passed over.
    Rows from `at` on are written until the numbers run out. A set that was begun then is dropped, as `subsets` does.
    """
    taken, end = 0, drawn.size
    for i in range(at, inputs.size):
        low, high, have = _0, _0, 0
        while have < width and taken < end:
            number = np.uint64(drawn[taken])
            taken += 1
            bit, upper = _1 << (number & _63), number >> _6
            in_high, in_low = bit * upper, bit * (_1 - upper)
            have += (low & in_low) | (high & in_high) == _0
            low |= in_low
            high |= in_high
        if have < width:
            return i
        x = np.uint64(inputs[i])
        if x < _64:  # numbers from one's own on are raised by one
            below = (_1 << x) - _1
            high = high << _1 | low >> _63
            low = (low & below) | (low & ~below) << _1
        else:
            below = (_1 << (x - _64)) - _1
            high = (high & below) | (high & ~below) << _1
        if heavy[i]:
            gone, in_low = np.uint64(places[i]), ones(low)
            left = low if gone < in_low else high
            for _ in range(gone if gone < in_low else gone - in_low):
                left &= left - _1
            first = left & (_0 - left)
            if gone < in_low:
                low ^= first
            else:
                high ^= first
            low |= (_1 << x) if x < _64 else _0
            high |= (_1 << (x - _64)) if x >= _64 else _0
        c = 0
        while low:
            out[i, c] = trailing_zeros(low)
            low &= low - _1
            c += 1
        while high:
            out[i, c] = _64 + trailing_zeros(high)
            high &= high - _1
            c += 1
    return inputs.size
