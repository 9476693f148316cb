"""Blocks of up to 64 signs for many users at once: values to signs, numbers of outputs to places, reports to counts.

Users pass through each stage some hundreds at a time and place by place, so that the steps of different users do not
wait for each other.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hdr4me.kernels.exact.positions import BOTTOM, DEFAULT, LOW, SCALE, TOP
from hdr4me.kernels.machine.intrinsics import load
from hdr4me.kernels.machine.jit import kernel

MOST = 64
"""Signs in one word."""
_TOGETHER = 256
_ROW = np.uint64(MOST + 1)
_0, _1 = np.uint64(0), np.uint64(1)


def ways() -> NDArray[np.uint64]:
    """C(place, t) for places below 64 and t up to 64, row by row."""
    return np.array([comb(place, t) for place in range(MOST) for t in range(MOST + 1)], np.uint64)


@njit(inline="always")
def _place(number, t, bits, below):  # type: ignore[no-untyped-def]
    """Whether a place is among the t that the number stands for: the number, t and the bits after it."""
    taken = np.uint64(number >= below)
    return number - (below & (_0 - taken)), t - taken, bits << _1 | taken


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
        place = size - 1
        while place >= 3:  # four places in a pass, so that the numbers in between stay in registers
            a = np.uint64(place * (MOST + 1))
            b, c, d = a - _ROW, a - _ROW - _ROW, a - _ROW - _ROW - _ROW
            for i in range(n):
                number, t, bits = rest[i], left[i], found[i]
                number, t, bits = _place(number, t, bits, binomials[a + t])
                number, t, bits = _place(number, t, bits, binomials[b + t])
                number, t, bits = _place(number, t, bits, binomials[c + t])
                rest[i], left[i], found[i] = _place(number, t, bits, binomials[d + t])
            place -= 4
        while place >= 0:
            a = np.uint64(place * (MOST + 1))
            for i in range(n):
                rest[i], left[i], found[i] = _place(rest[i], left[i], found[i], binomials[a + left[i]])
            place -= 1
        for i in range(n):
            blocks[start + i] ^= found[i]


@kernel()
def number_outputs(words, rows, heavy, inside, rest, keep_inside, keep_rest, numbers):  # type: ignore[no-untyped-def]
    """Number an output of each row by a word of 64 bits: below `inside` where heavy, else one of the `rest` after it.

    As many low bits of a word are kept as the bound has. Rows whose bits reach the bound are moved to the front of
    `rows`, to be drawn anew; returns how many they are.
    """
    again = 0
    for k in range(words.size):
        i = rows[k]
        own = heavy[i]
        bits = words[k] & (keep_inside if own else keep_rest)
        numbers[i] = bits + (_0 if own else inside)
        rows[again] = i
        again += bits >= (inside if own else rest)
    return again


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
def row_signs(matrix, stride, lines, users, halves, out):  # type: ignore[no-untyped-def]
    """The same of values that stand side by side in each row of a matrix, read once and row by row.

    `matrix` is the memory as one row of elements, from the block's first value of row 0 on, and `stride` the distance
    of rows in elements. `lines` [5, size] are the ranges of the block's dimensions in the order of LOW, SCALE, BOTTOM,
    TOP, DEFAULT; halves are [users, size].
    """
    size = lines.shape[1]
    low, scale, bottom, top, default = lines[0], lines[1], lines[2], lines[3], lines[4]
    bits = np.empty(size, np.uint64)
    for k in range(size):
        bits[k] = _1 << np.uint64(size - 1 - k)
    for i in range(users.size):
        row = matrix[users[i] * stride : users[i] * stride + size]
        half = halves[i]
        block = _0
        for k in range(size):
            value = np.float64(row[k])
            x = (value - low[k]) * scale[k] + bottom[k]
            x = x if x > bottom[k] else bottom[k]
            x = x if x < top[k] else top[k]
            x = x if value == value else default[k]
            block |= bits[k] if half[k] + 0.5 <= x else _0
        out[i] = block


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
