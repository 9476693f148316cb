"""Loops of single channels: blocks of signs, codebooks, and points of a projective space."""

from __future__ import annotations

from math import comb

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hdr4me.kernels.exact.blocks import BOTTOM, DEFAULT, LOW, SCALE, TOP
from hdr4me.kernels.machine.intrinsics import load
from hdr4me.kernels.machine.jit import kernel

MOST = 64  # signs in one word
_BLOCK = 256
_ROW = np.uint64(MOST + 1)
_0, _1 = np.uint64(0), np.uint64(1)


def ways() -> NDArray[np.uint64]:
    """Binomial coefficients C(position, t) for positions below 64 and t up to 64, row by row."""
    return np.array([comb(place, t) for place in range(MOST) for t in range(MOST + 1)], np.uint64)


@njit(inline="always")
def _decoded(number, t, bits, below):  # type: ignore[no-untyped-def]
    """Decode one position of a number that encodes t positions: the number, t and the bits after this step."""
    included = np.uint64(number >= below)
    return number - (below & (_0 - included)), t - included, bits << _1 | included


@kernel()
def differ(numbers, ends, size, binomials, blocks):  # type: ignore[no-untyped-def]
    """Flip in each block the positions in which the output of this number differs (`Agreement.differing`).

    `ends` are the numbers of blocks that differ in at most 0, 1, … size − 1 positions, and `binomials` comes from
    `ways`.
    """
    rest, left = np.empty(_BLOCK, np.uint64), np.empty(_BLOCK, np.uint64)
    found = np.empty(_BLOCK, np.uint64)
    for start in range(0, numbers.size, _BLOCK):
        n = min(_BLOCK, numbers.size - start)
        for i in range(n):
            number, t = numbers[start + i], _0
            for e in range(size):
                t += np.uint64(number >= ends[e])
            rest[i] = number - (ends[t - _1] if t else _0)
            left[i] = t
            found[i] = _0
        place = size - 1
        while place >= 3:  # four positions per pass, so that intermediate numbers stay in registers
            a = np.uint64(place * (MOST + 1))
            b, c, d = a - _ROW, a - _ROW - _ROW, a - _ROW - _ROW - _ROW
            for i in range(n):
                number, t, bits = rest[i], left[i], found[i]
                number, t, bits = _decoded(number, t, bits, binomials[a + t])
                number, t, bits = _decoded(number, t, bits, binomials[b + t])
                number, t, bits = _decoded(number, t, bits, binomials[c + t])
                rest[i], left[i], found[i] = _decoded(number, t, bits, binomials[d + t])
            place -= 4
        while place >= 0:
            a = np.uint64(place * (MOST + 1))
            for i in range(n):
                rest[i], left[i], found[i] = _decoded(rest[i], left[i], found[i], binomials[a + left[i]])
            place -= 1
        for i in range(n):
            blocks[start + i] ^= found[i]


@kernel()
def flip(users, places, ends, blocks):  # type: ignore[no-untyped-def]
    """Flip the sign at places[i] in the block of users[i]; field f holds positions ends[f − 1] to ends[f] − 1."""
    for i in range(users.size):
        block = blocks[users[i]]
        for k in range(places.shape[1]):
            field = places[i, k] >> 6
            block[field] ^= _1 << np.uint64(ends[field] - 1 - places[i, k])


@kernel()
def signs(columns, ranges, dims, users, halves, out):  # type: ignore[no-untyped-def]
    """Write the signs of dimensions `dims` of the records `users` as bits, the first one the most significant.

    A value is converted as in `positions`; its sixteen fractional bits are compared with a random half word, so that
    the sign is +1 with the probability (1 + t)/2.
    """
    address, stride, dtype = columns.address, columns.stride, columns.dtype
    valid, valid_offset = columns.valid, columns.valid_offset
    values = np.empty(_BLOCK)
    for start in range(0, users.size, _BLOCK):
        n = min(_BLOCK, users.size - start)
        out[start : start + n] = _0
        for k in range(dims.size):
            j = np.uint64(dims[k])
            _values(address[j], stride[j], dtype[j], users[start : start + n], values)
            if valid[j]:
                _nulls(valid[j], valid_offset[j], users[start : start + n], values)
            _append(ranges[j], values[:n], halves[k, start : start + n], out[start : start + n])


@kernel()
def row_signs(matrix, stride, lines, users, halves, out):  # type: ignore[no-untyped-def]
    """The same for values that are adjacent in each row of a matrix, which is read once, row by row.

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
    """A value whose bit marks it as missing becomes NaN."""
    for i in range(users.size):
        bit = users[i] + offset
        byte = np.int64(load(valid + np.uint64(bit >> 3), 9))
        values[i] = values[i] if (byte >> (bit & 7)) & 1 else np.nan


@kernel()
def _append(line, values, halves, out):  # type: ignore[no-untyped-def]
    """Append the sign of each value to the bits of its block; the loop vectorizes.

    A position x is rounded to whole 16-bit steps: half < ⌊x + ½⌋ is half + ½ ≤ x.
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


_MASK = np.uint64(0xFFFF)
_GOLDEN, _FIRST = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


@njit(inline="always")
def _mix(counter):  # type: ignore[no-untyped-def]
    z = counter * _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@njit(inline="always")
def _counter(seed, index):  # type: ignore[no-untyped-def]
    return np.uint64(seed) << np.uint64(32) | np.uint64(index) << np.uint64(16)


@kernel()
def _ranked(scores, rank):  # type: ignore[no-untyped-def]
    """The codeword with this rank in decreasing order of score; equal scores are ordered by index."""
    n = scores.size
    value = np.partition(scores, n - 1 - rank)[n - 1 - rank]
    before = 0
    for i in range(n):
        before += scores[i] > value
    left = rank - before
    for i in range(n):
        if scores[i] == value:
            if left == 0:
                return i
            left -= 1
    return 0


@kernel()
def choose(targets, seeds, ranks, n_codewords, numbers, out):  # type: ignore[no-untyped-def]
    """Write for each user the codeword whose inner product with targets[i] has the rank ranks[i].

    `targets` [n, d + 1, padded to a multiple of 4] are float32, and `numbers` are the values of the 65,536 half words.
    Every codeword and every inner product is computed, whatever the target is.
    """
    n_words = targets.shape[1] // 4
    scores = np.empty(n_codewords, np.float32)
    for i in range(seeds.size):
        target = targets[i]
        for index in range(n_codewords):
            first = _counter(seeds[i], index)
            a, b = np.float32(0.0), np.float32(0.0)
            c, d = np.float32(0.0), np.float32(0.0)
            for w in range(n_words):
                word = _mix(first + np.uint64(w))
                a += numbers[word & _MASK] * target[4 * w]
                b += numbers[(word >> np.uint64(16)) & _MASK] * target[4 * w + 1]
                c += numbers[(word >> np.uint64(32)) & _MASK] * target[4 * w + 2]
                d += numbers[word >> np.uint64(48)] * target[4 * w + 3]
            scores[index] = (a + b) + (c + d)
        out[i] = _ranked(scores, ranks[i])


@kernel()
def levels_of(seeds, indices, levels, out):  # type: ignore[no-untyped-def]
    """Write the levels of the first out.shape[1] numbers of each codeword."""
    for i in range(seeds.size):
        first = _counter(seeds[i], indices[i])
        for j in range(out.shape[1]):
            word = _mix(first + np.uint64(j >> 2))
            out[i, j] = levels[(word >> np.uint64(16 * (j & 3))) & _MASK]


@kernel()
def count_levels(seeds, indices, good, levels, counts):  # type: ignore[no-untyped-def]
    """Add the levels of the good codewords to counts [length, 256]."""
    length = counts.shape[0]
    for i in range(seeds.size):
        if not good[i]:
            continue
        first = _counter(seeds[i], indices[i])
        for j in range(length):
            word = _mix(first + np.uint64(j >> 2))
            counts[j, levels[(word >> np.uint64(16 * (j & 3))) & _MASK]] += 1


@kernel()
def axis_ranks(seeds, indices, n_codewords, numbers, out):  # type: ignore[no-untyped-def]
    """Write the ranks of each codeword for both ends of the first axis: by its first number, falling and rising."""
    for i in range(seeds.size):
        own = numbers[_mix(_counter(seeds[i], indices[i])) & _MASK]
        above, below = 0, 0
        for index in range(n_codewords):
            other = numbers[_mix(_counter(seeds[i], index)) & _MASK]
            equal = other == own and index < indices[i]
            above += other > own or equal
            below += other < own or equal
        out[i, 0], out[i, 1] = above, below


@kernel()
def points(inputs, heavy, inside, outside, powers, starts, products, differences, inverses, out):  # type: ignore[no-untyped-def]
    """A point on the hyperplane of each input where `heavy`, else one that is not on it.

    `inside` are uniform points of one dimension less, `outside` uniform numbers below q^(t−1); powers[f] = q^f for f up
    to t, starts[f] = (q^f − 1)/(q − 1) for f up to t. `products` and `differences` are the field's tables, a·b and a −
    b at index a·q + b, if q is a power of a prime, and empty if q is a prime. `inverses` are empty if q is a large
    prime.
    """
    t = starts.size - 1
    q = powers[1]
    power = products.size > 0
    x = np.empty(t, np.int64)
    y = np.empty(t, np.int64)
    for i in range(inputs.size):
        free = 0
        for f in range(1, t):
            free += inputs[i] >= starts[f]
        number = powers[free] + inputs[i] - starts[free]
        for c in range(t - 1, -1, -1):
            rest = number // q
            x[c] = number - rest * q
            number = rest
        place = t - 1 - free
        free = 0
        for f in range(1, t - 1):
            free += inside[i] >= starts[f]
        number = powers[free] + inside[i] - starts[free] if heavy[i] else outside[i]
        left = 0 if heavy[i] else 1  # the missing part of ⟨x, y⟩
        for c in range(t - 1, -1, -1):
            if c == place:
                continue
            rest = number // q
            y[c] = number - rest * q
            number = rest
            if power:
                left = differences[left * q + products[x[c] * q + y[c]]]
            else:
                left -= x[c] * y[c]
        y[place] = left if power else left % q
        first = 0
        while y[first] == 0:
            first += 1
        a = y[first]
        if a != 1:
            if power:
                scale = np.int64(inverses[a])
                for c in range(first, t):
                    y[c] = products[scale * q + y[c]]
            elif inverses.size:
                scale = np.int64(inverses[a])
                for c in range(first, t):
                    y[c] = scale * y[c] % q
            else:
                scale, power_of_a, exponent = np.int64(1), a, q - 2
                while exponent:
                    if exponent & 1:
                        scale = scale * power_of_a % q
                    power_of_a = power_of_a * power_of_a % q
                    exponent >>= 1
                for c in range(first, t):
                    y[c] = scale * y[c] % q
        number = 0
        for c in range(t):
            number = number * q + y[c]
        free = t - 1 - first
        out[i] = number - powers[free] + starts[free]
