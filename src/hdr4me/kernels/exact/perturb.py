"""Exact, secure perturbation: records in, report bytes out, through integer tables and an AES keystream.

`perturb` reads columns through their addresses and touches only the sampled dimensions; `perturb_matrix` is the
same for a plain matrix of numbers when every dimension is reported. Both split the records among threads, each
with its own keystream.

A report is sampled slots in increasing dimension; a slot is the dimension (two bytes, little-endian) and
`width` code bytes, the unused ones zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdr4me.kernels.exact.blocks import BOTTOM, DEFAULT, MATRIX_GROUP, column_block, encode_rows, wide_block
from hdr4me.kernels.exact.secure import BLOCK, Keystream
from hdr4me.kernels.exact.sets import bitmap, words_needed
from hdr4me.kernels.machine.intrinsics import WIDTH
from hdr4me.kernels.machine.threads import share


class Plan(NamedTuple):
    """A survey as arrays; per-dimension arrays have length d.

    All alias rows are stacked in `table`. A number's position is (value - low) * scale + bottom, clamped to [bottom,
    top]: bottom is the dimension's first row and top its last, times 2^16. A category c has position bottom + c * 2^16.
    The default is a position. These five are the columns of `ranges`; `alike` says that all dimensions are numbers of
    one range. For "entries" dimensions `entries` is the number of categories (0 for the others) and `entry_row` the row
    of an absent entry, which the row of a present entry follows; `bottom` is then only the row from which categories
    are counted.
    """

    sampled: int
    width: int
    bits: int
    table: NDArray[np.uint32]
    ranges: NDArray[np.float64]
    alike: bool
    entries: NDArray[np.int64]
    entry_row: NDArray[np.int64]

    @property
    def report_size(self) -> int:
        """Bytes of one report."""
        return self.sampled * (2 + self.width)


class Columns(NamedTuple):
    """The addresses of values: element r of a dimension has the type DTYPES[dtype] and the address + r * stride.

    `valid` is the address of an Arrow validity bitmap, or 0 where there is none. A categorical dimension has lut_size >
    0: its value v means category lut[lut_start + v], and a value outside 0..lut_size-1 is unknown. `step` is the
    distance in bytes between neighboring columns where all columns are parts of one matrix, of one type and without
    bitmaps; it is 0 otherwise. The caller must keep the memory alive.
    """

    address: NDArray[np.uint64]
    stride: NDArray[np.int64]
    dtype: NDArray[np.uint8]
    valid: NDArray[np.uint64]
    valid_offset: NDArray[np.int64]
    lut: NDArray[np.uint32]
    lut_start: NDArray[np.int64]
    lut_size: NDArray[np.int64]
    step: int


def perturb(
    columns: Columns, plan: Plan, n: int, *, threads: int = 1, out: NDArray[np.uint8] | None = None
) -> NDArray[np.uint8]:
    """Reports uint8 [n, report_size] of n records; the system's randomness samples the dimensions of each."""
    out = np.empty((n, plan.report_size), np.uint8) if out is None else out
    flat = out.reshape(-1)
    m, d = plan.sampled, plan.entries.size
    codes = float(np.maximum(plan.entries, 1).mean()) if plan.width > 1 else 1.0
    sampling = words_needed(d, m, 1024) / 1024 if m < d else 0
    rows = max(1, min(int(BLOCK / (m * (2 + 4 * codes) + 4 * sampling)), n))
    # The number of words that a block needs is random, because sampling rejects some words and because wide reports
    # use different numbers of words. The buffers hold the average of a block and, beyond that, one record of the
    # widest kind. A block whose words run out stops early, and the next block starts with the first record that is not
    # written.
    n_spare = words_needed(d, m, rows) if m < d else 0
    n_words = int(rows * m * codes) + (m * plan.width if plan.width > 1 else 0)
    block = wide_block if plan.width > 1 else column_block

    def work(first: int, last: int) -> None:
        stream, scratch = Keystream(), bitmap(d)
        buffer = np.empty(4 * (n_words + n_spare) + 2 * rows * m, np.uint8)
        both, halves = buffer[: -2 * rows * m].view(np.uint32), buffer[-2 * rows * m :].view(np.uint16)
        words, spare = both[:n_words], both[n_words:]
        while first < last:
            stream.fill(buffer)
            stop = min(first + rows, last)
            first = block(columns, plan, first, stop, halves, words, spare, scratch, flat)

    in_threads(work, n, threads)
    return out


def perturb_matrix(
    values: NDArray[np.floating], plan: Plan, *, threads: int = 1, out: NDArray[np.uint8] | None = None
) -> NDArray[np.uint8]:
    """The same as `perturb` for a C-ordered float matrix [n, d], d >= 16, where every dimension is numeric and sent."""
    n, d = values.shape
    out = np.empty((n, plan.report_size), np.uint8) if out is None else out
    flat = out.reshape(-1)
    rows = max(1, min(2 * BLOCK // (6 * d), n))
    ranges, dims = matrix_layout(plan)

    def work(first: int, last: int) -> None:
        stream = Keystream()
        buffer = np.empty(6 * rows * d, np.uint8)
        words, halves = buffer[: 4 * rows * d].view(np.uint32), buffer[4 * rows * d :].view(np.uint16)
        while first < last:
            stream.fill(buffer)
            stop = min(first + rows, last)
            part = flat[first * plan.report_size : stop * plan.report_size]
            encode_rows(values[first:stop], ranges, dims, words, halves, plan.table, plan.bits, part)
            first = stop

    in_threads(work, n, threads)
    return out


def matrix_layout(plan: Plan) -> tuple[NDArray[np.float64], NDArray[np.uint16]]:
    """`ranges` and `dims` as `encode_rows` requires them.

    `dims` [d + MATRIX_GROUP + WIDTH] starts again from 0 after d − 1, so that a group may run past the end of a row.
    `ranges` [5, as many] has low, scale, bottom, top and default in that order, the last three with half a unit added;
    it is [5, WIDTH] where all dimensions have the same five numbers.
    """
    d = plan.entries.size
    dims = np.arange(d + MATRIX_GROUP + WIDTH) % d
    ranges = plan.ranges[dims[:WIDTH] if plan.alike else dims, : DEFAULT + 1].T.copy()
    ranges[BOTTOM:] += 0.5
    return ranges, dims.astype(np.uint16)


def in_threads(work: Callable[[int, int], None], n: int, threads: int) -> None:
    """Run work(first, last) over equal ranges of n rows, one thread each; the kernels release the GIL."""
    if threads <= 1 or n < 2 * threads:
        work(0, n)
        return
    cuts = np.linspace(0, n, threads + 1).astype(int).tolist()
    share(lambda i, j: work(cuts[i], cuts[j]), 0, threads, threads)


# -- alias tables: one 32-bit word picks a cell with probability weight / 2^32 (Walker's method in exact integers) ---
#
# A row of weights summing to 2^32 is cut into 2^k columns of 2^(32-k) units; each column holds units of at most two
# cells. The word's low k bits choose the column, its high bits a unit. An entry packs the column's threshold (high 32-k
# bits) and the other cell (low k bits), so
#
#     cell = word mod 2^k  if  word < (entry with its low k bits cleared)  else  entry mod 2^k.
#
# Nothing is rounded: the units of all columns add up to the weights, which a test verifies.

BITS = 32


def columns_bits(n_cells: int) -> int:
    """The k of the smallest 2^k >= n_cells."""
    return (n_cells - 1).bit_length()


def alias_row(weights: list[int], bits: int) -> list[int]:
    """The 2^bits packed entries of one row of weights (Vose's construction on integers)."""
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
