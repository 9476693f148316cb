"""Blocks of up to 64 signs for many users at once: values to signs, numbers of outputs to places, reports to counts.

Users pass through each stage some hundreds at a time and place by place, so that the steps of different users do not
wait for each other.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray

from hdr4me.kernels.exact.positions import BOTTOM, DEFAULT, LOW, SCALE, TOP
from hdr4me.kernels.machine.intrinsics import load
from hdr4me.kernels.machine.jit import kernel

__all__ = ["MOST", "count_signs", "differ", "flip", "signs", "ways"]

MOST = 64
"""Signs in one word."""
_TOGETHER = 256
_0, _1 = np.uint64(0), np.uint64(1)


def ways() -> NDArray[np.uint64]:
    """C(place, t) for places below 64 and t up to 64, row by row."""
    return np.array([comb(place, t) for place in range(MOST) for t in range(MOST + 1)], np.uint64)


@kernel()
def differ(numbers, ends, size, binomials, blocks):  # type: ignore[no-untyped-def]
    """Flip in each block the places in which the output of this number differs (`Agreement.differing`).

    `ends` are the numbers of blocks that differ in at most 0, 1, … size − 1 places, `binomials` those of `ways`.
    """
    rest, left, found = (
        np.empty(_TOGETHER, np.uint64),
        np.empty(_TOGETHER, np.uint64),
        np.empty(_TOGETHER, np.uint64),
    )
    for start in range(0, numbers.size, _TOGETHER):
        n = min(_TOGETHER, numbers.size - start)
        for i in range(n):
            number, t = numbers[start + i], _0
            for e in range(size):
                t += np.uint64(number >= ends[e])
            rest[i] = number - (ends[t - _1] if t else _0)
            left[i] = t
            found[i] = _0
        for place in range(size - 1, -1, -1):
            first = np.uint64(place * (MOST + 1))
            for i in range(n):
                below = binomials[first + left[i]]
                taken = np.uint64(rest[i] >= below)
                rest[i] -= below & (_0 - taken)
                left[i] -= taken
                found[i] = found[i] << _1 | taken
        for i in range(n):
            blocks[start + i] ^= found[i]


@kernel()
def flip(users, places, ends, blocks):  # type: ignore[no-untyped-def]
    """Flip places[i] in the block of users[i]; field f holds the places below ends[f] that no field before it holds."""
    for i in range(users.size):
        block = blocks[users[i]]
        for k in range(places.shape[1]):
            field = places[i, k] >> 6
            block[field] ^= _1 << np.uint64(ends[field] - 1 - places[i, k])


@kernel()
def signs(columns, ranges, dims, users, halves, out):  # type: ignore[no-untyped-def]
    """Write the signs of dimensions `dims` of the records `users` as bits, the first one the most significant.

    A value is placed as in `positions`; its sixteen bits behind the point are compared with a random half word, so
    that the sign is +1 with the probability (1 + t)/2.
    """
    address, stride, dtype = columns.address, columns.stride, columns.dtype
    valid, valid_offset = columns.valid, columns.valid_offset
    values = np.empty(_TOGETHER)
    for start in range(0, users.size, _TOGETHER):
        n = min(_TOGETHER, users.size - start)
        out[start : start + n] = _0
        for k in range(dims.size):
            j = np.uint64(dims[k])
            _values(address[j], stride[j], dtype[j], users[start : start + n], values)
            if valid[j]:
                _nulls(valid[j], valid_offset[j], users[start : start + n], values)
            _append(ranges[j], values[:n], halves[k, start : start + n], out[start : start + n])


@kernel()
def _values(address, stride, dtype, users, values):  # type: ignore[no-untyped-def]
    """The values of one dimension."""
    step = np.uint64(stride)
    if dtype == 0:  # float64, the type of most matrices, without a test for each value
        for i in range(users.size):
            values[i] = load(address + np.uint64(users[i]) * step, 0)
    else:
        for i in range(users.size):
            values[i] = load(address + np.uint64(users[i]) * step, dtype)


@kernel()
def _nulls(valid, offset, users, values):  # type: ignore[no-untyped-def]
    """A value that its bit says is missing becomes NaN."""
    for i in range(users.size):
        bit = users[i] + offset
        byte = np.int64(load(valid + np.uint64(bit >> 3), 9))
        values[i] = values[i] if (byte >> (bit & 7)) & 1 else np.nan


@kernel()
def _append(line, values, halves, out):  # type: ignore[no-untyped-def]
    """Append the sign of each value to the bits of its block; the loop vectorises.

    A place x is rounded to whole 16-bit steps: half < ⌊x + ½⌋ is half + ½ ≤ x.
    """
    low, scale, bottom, top, default = line[LOW], line[SCALE], line[BOTTOM], line[TOP], line[DEFAULT]
    for i in range(values.size):
        value = values[i]
        x = (value - low) * scale + bottom
        x = x if x > bottom else bottom
        x = x if x < top else top
        x = x if value == value else default
        out[i] = out[i] << _1 | np.uint64(halves[i] + 0.5 <= x)


@kernel()
def count_signs(blocks, good, size, counts):  # type: ignore[no-untyped-def]
    """Add the signs of the good blocks to counts[2 · size]: for each dimension those that are −1, then those +1."""
    n = np.int64(0)
    for i in range(blocks.size):
        n += np.int64(good[i])
    for j in range(size):
        shift = np.uint64(size - 1 - j)
        ones = np.int64(0)
        for i in range(blocks.size):
            ones += np.int64(blocks[i] >> shift & _1) & np.int64(good[i])
        counts[2 * j] += n - ones
        counts[2 * j + 1] += ones
