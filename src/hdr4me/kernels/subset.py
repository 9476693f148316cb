"""m of d dimensions without replacement, in increasing order, from uniform 32-bit words and nothing else.

Floyd's algorithm needs exactly m bounded integers and keeps its set in a bitmap of two storeys, so the cost is
O(m + d / 4096) and reading the bitmap back yields the dimensions sorted. A bounded integer is Lemire's
multiplication with rejection: exactly uniform, no division except once in 2^32 / bound words.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdr4me.kernels.jit import kernel
from hdr4me.kernels.machine import trailing_zeros

__all__ = ["bitmap", "subset"]

_1 = np.uint64(1)
_6 = np.uint64(6)
_63 = np.uint64(63)
_LOW = np.uint64(0xFFFFFFFF)
_2_32 = np.uint64(1 << 32)


def bitmap(d: int) -> NDArray[np.uint64]:
    """Empty scratch for `subset`: the words of d bits, then one summary bit per word."""
    words = (d + 63) // 64
    return np.zeros(words + (words + 63) // 64, np.uint64)


@kernel()
def subset(
    d: int,
    m: int,
    words: NDArray[np.uint32],
    cursor: int,
    scratch: NDArray[np.uint64],
    out: NDArray[np.uint16],
) -> int:
    """Write a uniform m-subset of range(d), sorted, to out; the cursor after the words used, or -1 if too few.

    How many words are rejected is independent of the integers accepted, so starting again with fresh
    words after -1 leaves the subset uniform.
    """
    n_words = (d + 63) >> 6
    complete = True
    for step in range(m):
        top = np.uint64(d - m + step)
        bound = top + _1
        product = np.uint64(0)
        accepted = False
        while cursor < words.size:
            product = np.uint64(words[cursor]) * bound
            cursor += 1
            low = product & _LOW
            if low >= bound or low >= (_2_32 - bound) % bound:
                accepted = True
                break
        if not accepted:
            complete = False
            break
        chosen = product >> np.uint64(32)
        if scratch[chosen >> _6] >> (chosen & _63) & _1:
            chosen = top
        word = chosen >> _6
        scratch[word] |= _1 << (chosen & _63)
        scratch[np.uint64(n_words) + (word >> _6)] |= _1 << (word & _63)
    position = 0
    for summary in range(n_words, scratch.size):
        storey = scratch[summary]
        scratch[summary] = np.uint64(0)
        while storey:
            word = np.uint64(summary - n_words) << _6 | trailing_zeros(storey)
            storey &= storey - _1
            bits = scratch[word]
            scratch[word] = np.uint64(0)
            while bits:
                out[position] = word << _6 | trailing_zeros(bits)
                position += 1
                bits &= bits - _1
    return cursor if complete else -1
