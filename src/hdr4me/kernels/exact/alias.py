"""Walker's alias method in exact integers: one 32-bit word picks a cell with probability weight / 2^32.

A row of weights summing to 2^32 is cut into 2^k columns of 2^(32-k) units; each column holds units of at most
two cells. The word's low k bits choose the column, its high bits a unit. An entry packs the column's
threshold (high 32-k bits) and the other cell (low k bits), so

    cell = word mod 2^k  if  word < (entry with its low k bits cleared)  else  entry mod 2^k.

Nothing is rounded: adding up the units of all columns gives back the weights, as a test does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["BITS", "alias_row", "alias_table", "alias_weights", "columns_bits"]

BITS = 32


def columns_bits(n_cells: int) -> int:
    """The k of the smallest 2^k >= n_cells.

    >>> columns_bits(1), columns_bits(2), columns_bits(19), columns_bits(256)
    (0, 1, 5, 8)
    """
    return (n_cells - 1).bit_length()


def alias_row(weights: list[int], bits: int) -> list[int]:
    """The 2^bits packed entries of one row of weights (Vose's construction on integers).

    >>> alias_row([2**32], 0)
    [0]
    >>> [hex(entry) for entry in alias_row([2**30, 3 * 2**30], 1)]
    ['0x80000001', '0x1']
    """
    if len(weights) > 1 << bits or min(weights) < 0 or sum(weights) != 1 << BITS:
        raise ValueError(
            f"weights must be at most {1 << bits} integers >= 0 that sum to 2**32, not {weights!r}"
        )
    capacity = 1 << (BITS - bits)
    left = weights + [0] * ((1 << bits) - len(weights))
    small = [cell for cell, weight in enumerate(left) if weight < capacity]
    large = [cell for cell, weight in enumerate(left) if weight >= capacity]
    # A column that its own cell fills keeps threshold 0 and points to itself: 2^(32-k) would not fit.
    entries = list(range(1 << bits))
    while small:
        cell, other = small.pop(), large[-1]
        entries[cell] = left[cell] << bits | other
        left[other] -= capacity - left[cell]
        if left[other] < capacity:
            small.append(large.pop())
    return entries


def alias_table(weights: NDArray[np.int64], bits: int) -> NDArray[np.uint32]:
    """Packed entries of every row: uint32 [L, 2^bits] from weights int64 [L, N]."""
    return np.array([alias_row(row, bits) for row in weights.tolist()], np.uint32)


def alias_weights(entries: NDArray[np.uint32], bits: int) -> NDArray[np.int64]:
    """Give back the weights int64 [L, 2^bits] that packed entries stand for.

    >>> alias_weights(alias_table(np.array([[2**31, 2**30, 2**30]]), 2), 2).tolist()
    [[2147483648, 1073741824, 1073741824, 0]]
    """
    capacity = 1 << (BITS - bits)
    weights = np.zeros(entries.shape, np.int64)
    for row, packed in zip(weights, entries.astype(np.int64), strict=True):
        threshold, other = packed >> bits, packed & ((1 << bits) - 1)
        row += threshold
        np.add.at(row, other, capacity - threshold)
    return weights
