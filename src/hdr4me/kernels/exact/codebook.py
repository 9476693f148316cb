"""Codebooks for many users at once: the codeword of a given rank, the levels of codewords, and ranks for an audit.

The codewords are those of `hdr4me.channels.codebook`: counters go through SplitMix64, half words through a table.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from hdr4me.kernels.machine.jit import kernel

_1 = np.uint64(1)
_MASK = np.uint64(0xFFFF)
_GOLDEN, _FIRST, _SECOND = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)


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
    """The codeword at place `rank` by falling score, of equal scores the first: every place is another codeword."""
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
    """Write for each user the codeword whose inner product with targets[i] has the place ranks[i].

    `targets` [n, d + 1, filled up to a multiple of 4] are float32, `numbers` what each of the 65,536 half words stands
    for. Every codeword is computed, and every product taken, whatever the target.
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
    """Write the places of each codeword for the two ends of the first axis: by its first number, falling and rising."""
    for i in range(seeds.size):
        own = numbers[_mix(_counter(seeds[i], indices[i])) & _MASK]
        above, below = 0, 0
        for index in range(n_codewords):
            other = numbers[_mix(_counter(seeds[i], index)) & _MASK]
            equal = other == own and index < indices[i]
            above += other > own or equal
            below += other < own or equal
        out[i, 0], out[i, 1] = above, below
