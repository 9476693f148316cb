"""Blocks of records to report bytes, given the words to draw from: two loops around the same stages.

Every block takes its randomness as arrays, so a test can hold it to the plain specification word for word.
"""

from __future__ import annotations

import numpy as np

from hdr4me.kernels.jit import kernel
from hdr4me.kernels.positions import BOTTOM, TOGETHER, ask, positions
from hdr4me.kernels.stages import finish, point
from hdr4me.kernels.subset import SLACK, below, subsets

__all__ = ["GROUP", "column_block", "wide_block"]

GROUP = 1024
"""Values carried through the stages together: their scratch stays in the first-level cache."""


@kernel()
def _draw(spare, d):  # type: ignore[no-untyped-def]
    """Integers below d from spare words."""
    drawn = np.empty(spare.size, np.uint16)
    return drawn[: below(spare, d, drawn)]


@kernel()
def _sample(columns, d, m, drawn, cursor, scratch, dims, start, stop):  # type: ignore[no-untyped-def]
    """Sample the dimensions of records [start, stop) and ask for their values; the cursor, or -1 if words ran out."""
    rows = max(1, TOGETHER // m)
    address, stride, step = columns.address, columns.stride, columns.step
    for first in range(start, stop, rows):
        last, at = min(first + rows, stop), (first - start) * m
        if m < d:
            done, cursor = subsets(d, m, drawn, cursor, scratch, dims, at, last - first)
            if done < last - first:
                return -1
        ask(address, stride, step, dims, at, m, first, last)
    return cursor


@kernel()
def column_block(columns, plan, start, stop, halves, words, spare, scratch, out):  # type: ignore[no-untyped-def]
    """Reports of one code per slot for records [start, stop): sample, read, and take the stages group by group.

    `spare` holds the words that sampling draws from; returns the first record not done when they run out.
    """
    d = plan.entries.size
    m = plan.n_sampled
    rows = max(1, GROUP // m)
    dims = np.zeros(rows * m + SLACK, np.uint16)
    values, cells = np.empty(rows * m), np.empty(rows * m, np.uint32)
    for i in range(rows * m):
        dims[i] = i % m
    drawn, cursor = _draw(spare, d), 0
    for first in range(start, stop, rows):
        last = min(first + rows, stop)
        n = (last - first) * m
        cursor = _sample(columns, d, m, drawn, cursor, scratch, dims, first, last)
        if cursor < 0:
            return first
        positions(columns, plan, dims, first, last, values, cells)
        a, b = (first - start) * m, (last - start) * m
        part = cells[:n]
        point(part, words[a:b], halves[a:b], plan.bits)
        finish(part, dims[:n], words[a:b], plan.table, plan.bits, out[3 * first * m : 3 * last * m])
    return stop


@kernel()
def wide_block(columns, plan, start, stop, halves, words, spare, scratch, out):  # type: ignore[no-untyped-def]
    """Reports with several codes per slot: an "entries" dimension sends one code for each of its categories.

    Such a dimension has two rows, absent and present; entry e is present when the category is e. Returns the first
    record not done when words run out.
    """
    d = plan.entries.size
    m = plan.n_sampled
    slot = 2 + plan.width
    mask = np.uint32((1 << plan.bits) - 1)
    bits = np.uint32(plan.bits)
    dims = np.arange(m + SLACK).astype(np.uint16)
    values, cells = np.empty(m), np.empty(m, np.uint32)
    ranges, entries, entry_row, table = plan.ranges, plan.entries, plan.entry_row, plan.table
    width = plan.width
    drawn, cursor = _draw(spare, d), 0
    used = 0
    for r in range(start, stop):
        if m < d:
            done, cursor = subsets(d, m, drawn, cursor, scratch, dims, 0, 1)
            if done == 0:
                return r
        if used + m * width > words.size:
            return r
        positions(columns, plan, dims, r, r + 1, values, cells)
        for s in range(m):
            j = dims[s]
            at = (r * m + s) * slot
            out[at] = np.uint8(j)
            out[at + 1] = np.uint8(j >> np.uint16(8))
            row = (cells[s] + np.uint32(halves[(r - start) * m + s])) >> np.uint32(16)
            category = np.int64(row) - (np.int64(ranges[j, BOTTOM]) >> 16)
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
