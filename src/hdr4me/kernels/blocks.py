"""Blocks of records to report bytes, given the words to draw from: two loops around the same stages.

Every block takes its randomness as arrays, so a test can hold it to the plain specification word for word.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.kernels.jit import kernel
from hdr4me.kernels.machine import load, prefetch
from hdr4me.kernels.stages import choose, look_up, pack, point
from hdr4me.kernels.subset import SLACK, subset

__all__ = ["GROUP", "column_block", "fields_of", "positions", "wide_block"]

GROUP = 1024
"""Values carried through the stages together: their scratch stays in the first-level cache."""


ADDRESS, STRIDE, LOW, SCALE, BOTTOM, TOP, DEFAULT, FLAGS = range(8)
"""What is known of a dimension, in one cache line: sampled dimensions are met in no order that a cache could guess."""

_NULLS, _CATEGORIES = 256, 512  # flags above the number of the element's type


def fields_of(columns: Any, plan: Any) -> NDArray[np.float64]:
    """The [d, 8] table of `positions`: ranges are doubles; address, stride and flags whole numbers among them."""
    d = plan.bottom.size
    room = np.zeros(8 * d + 8)
    fields: NDArray[np.float64] = room[(-room.ctypes.data // 8) % 8 :][: 8 * d].reshape(d, 8)
    whole = fields.view(np.int64)
    whole[:, ADDRESS] = columns.address.view(np.int64)
    whole[:, STRIDE] = columns.stride
    whole[:, FLAGS] = columns.dtype + _NULLS * (columns.valid != 0) + _CATEGORIES * (columns.lut_size > 0)
    fields[:, LOW : DEFAULT + 1] = np.stack(
        [plan.low, plan.scale, plan.bottom, plan.top, plan.default], axis=1
    )
    return fields


@kernel()
def positions(fields, columns, dims, m, start, stop, out):  # type: ignore[no-untyped-def]
    """Positions of the sampled dimensions of records [start, stop), whatever their columns' types.

    Missing and NaN give the default. The arrays are taken out of their tuple first: inside the loop each access
    through a tuple would count references, at ten times the cost of the work.
    """
    valid, valid_offset = columns.valid, columns.valid_offset
    lut, lut_start, lut_size = columns.lut, columns.lut_start, columns.lut_size
    whole = fields.view(np.int64)
    for r in range(start, stop):
        for s in range((r - start) * m, (r - start + 1) * m):
            j = np.uint64(dims[s])
            prefetch(np.uint64(whole[j, ADDRESS] + r * whole[j, STRIDE]))
    for r in range(start, stop):
        for s in range((r - start) * m, (r - start + 1) * m):
            j = np.uint64(dims[s])
            flags = whole[j, FLAGS]
            value = load(np.uint64(whole[j, ADDRESS] + r * whole[j, STRIDE]), flags & 0xFF)
            if flags & _NULLS:
                bit = r + valid_offset[j]
                byte = np.int64(load(valid[j] + np.uint64(bit >> 3), 9))
                value = value if (byte >> (bit & 7)) & 1 else np.nan
            bottom, top = fields[j, BOTTOM], fields[j, TOP]
            if flags & _CATEGORIES:
                known = value >= 0.0 and value < lut_size[j]
                at = np.uint64(lut_start[j] + (np.int64(value) if known else 0))
                x = bottom + lut[at] * 65536.0
                x = x if known else fields[j, DEFAULT]
            else:
                x = (value - fields[j, LOW]) * fields[j, SCALE] + bottom
                x = x if value == value else fields[j, DEFAULT]
            x = x if x > bottom else bottom
            x = x if x < top else top
            out[s] = np.uint32(x + 0.5)


@kernel()
def column_block(fields, columns, plan, start, stop, halves, words, spare, scratch, out):  # type: ignore[no-untyped-def]
    """Reports of one code per slot for records [start, stop): sample, read, and take the stages group by group.

    `spare` holds the words that sampling draws from; returns the first record not done when they run out.
    """
    d = plan.bottom.size
    m = plan.n_sampled
    rows = max(1, GROUP // m)
    dims = np.zeros(rows * m + SLACK, np.uint16)
    low = np.empty(rows * m, np.uint8)
    high = np.empty(rows * m, np.uint8)
    cells = np.empty(rows * m, np.uint32)
    codes = np.empty(rows * m, np.uint8)
    for i in range(rows * m):
        dims[i] = i % m
    cursor = 0
    for first in range(start, stop, rows):
        last = min(first + rows, stop)
        n = (last - first) * m
        for r in range(last - first):
            if m < d:
                cursor = subset(d, m, spare, cursor, scratch, dims, r * m)
                if cursor < 0:
                    return first
        positions(fields, columns, dims, m, first, last, cells)
        a, b = (first - start) * m, (last - start) * m
        part = cells[:n]
        point(part, words[a:b], halves[a:b], plan.bits)
        look_up(part, plan.table)
        choose(part, words[a:b], plan.bits, codes[:n])
        for s in range(n):
            low[s] = np.uint8(dims[s])
        for s in range(n):
            high[s] = np.uint8(dims[s] >> np.uint16(8))
        pack(low[:n], high[:n], codes[:n], out[3 * first * m : 3 * last * m])
    return stop


@kernel()
def wide_block(fields, columns, plan, start, stop, halves, words, spare, scratch, out):  # type: ignore[no-untyped-def]
    """Reports with several codes per slot: an "entries" dimension sends one code for each of its categories.

    Such a dimension has two rows, absent and present; entry e is present when the category is e. Returns the first
    record not done when words run out.
    """
    d = plan.bottom.size
    m = plan.n_sampled
    slot = 2 + plan.width
    mask = np.uint32((1 << plan.bits) - 1)
    bits = np.uint32(plan.bits)
    dims = np.arange(m + SLACK).astype(np.uint16)
    cells = np.empty(m, np.uint32)
    bottom, entries, entry_row, table = plan.bottom, plan.entries, plan.entry_row, plan.table
    width = plan.width
    cursor = 0
    used = 0
    for r in range(start, stop):
        if m < d:
            cursor = subset(d, m, spare, cursor, scratch, dims, 0)
            if cursor < 0:
                return r
        if used + m * width > words.size:
            return r
        positions(fields, columns, dims, m, r, r + 1, cells)
        for s in range(m):
            j = dims[s]
            at = (r * m + s) * slot
            out[at] = np.uint8(j)
            out[at + 1] = np.uint8(j >> np.uint16(8))
            row = (cells[s] + np.uint32(halves[(r - start) * m + s])) >> np.uint32(16)
            category = np.int64(row) - (np.int64(bottom[j]) >> 16)
            for e in range(width):
                code = np.uint32(0)
                if e < max(entries[j], 1):
                    here = row if entries[j] == 0 else np.uint32(entry_row[j] + np.int64(category == e))
                    word = words[used]
                    used += 1
                    entry = table[np.uint64((here << bits) | (word & mask))]
                    code = (word if word < (entry & ~mask) else entry) & mask
                out[at + 2 + e] = np.uint8(code)
    return stop
