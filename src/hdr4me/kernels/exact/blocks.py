"""Blocks of records to report bytes, given the words to draw from: two loops around the same stages.

Every block takes its randomness as arrays, so a test can hold it to the plain specification word for word.
"""

from __future__ import annotations

import numpy as np

from hdr4me.kernels.exact.positions import BOTTOM, TOGETHER, ask, positions
from hdr4me.kernels.exact.stages import finish, point
from hdr4me.kernels.exact.subset import SLACK, below, subsets
from hdr4me.kernels.machine.jit import kernel

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
    """Sample the dimensions of records [start, stop) and ask for their values.

    Returns the first record not done, earlier than stop if the integers drawn ran out, and the cursor after them.
    """
    rows = max(1, TOGETHER // m)
    address, stride, step = columns.address, columns.stride, columns.step
    for first in range(start, stop, rows):
        wanted = min(rows, stop - first)
        at, done = (first - start) * m, wanted
        if m < d:
            done, cursor = subsets(d, m, drawn, cursor, scratch, dims, at, wanted)
        ask(address, stride, step, dims, at, m, first, first + done)
        if done < wanted:
            return first + done, cursor
    return stop, cursor


@kernel()
def column_block(columns, plan, start, stop, halves, words, spare, scratch, out):  # type: ignore[no-untyped-def]
    """Reports of one code per slot for records [start, stop): sample, read, and take the stages group by group.

    `spare` holds the words that sampling draws from; returns the first record not done when they run out.
    """
    d, m = plan.entries.size, plan.n_sampled
    rows = max(1, GROUP // m)
    dims = (np.arange(rows * m + SLACK) % m).astype(np.uint16)
    values, cells = np.empty(rows * m), np.empty(rows * m, np.uint32)
    drawn, cursor = _draw(spare, d), 0
    for first in range(start, stop, rows):
        wanted = min(first + rows, stop)
        last, cursor = _sample(columns, d, m, drawn, cursor, scratch, dims, first, wanted)
        positions(columns, plan, dims, first, last, values, cells)
        a, b = (first - start) * m, (last - start) * m
        part = cells[: b - a]
        point(part, words[a:b], halves[a:b], plan.bits)
        finish(part, dims[: b - a], words[a:b], plan.table, plan.bits, out[3 * first * m : 3 * last * m])
        if last < wanted:
            return last
    return stop


@kernel()
def wide_block(columns, plan, start, stop, halves, words, spare, scratch, out):  # type: ignore[no-untyped-def]
    """Reports with several codes per slot: an "entries" dimension sends one code for each of its categories.

    Such a dimension has two rows, absent and present; entry e is present when the category is e. Returns the first
    record not done when words run out.
    """
    d, m, width = plan.entries.size, plan.n_sampled, plan.width
    rows, size = max(1, GROUP // (m * width)), m * (2 + width)
    dims = (np.arange(rows * m + SLACK) % m).astype(np.uint16)
    values, cells = np.empty(rows * m), np.empty(rows * m, np.uint32)
    drawn, cursor, used = _draw(spare, d), 0, 0
    for first in range(start, stop, rows):
        wanted = min(first + rows, stop)
        last, cursor = _sample(columns, d, m, drawn, cursor, scratch, dims, first, wanted)
        # As many as there are words for if all were the widest: which dimensions a record sampled must not matter.
        last = min(last, first + (words.size - used) // (m * width))
        positions(columns, plan, dims, first, last, values, cells)
        a, b = (first - start) * m, (last - start) * m
        into = out[first * size : last * size]
        used = _widen(plan, dims[: b - a], cells, halves[a:b], words, used, into)
        if last < wanted:
            return last
    return stop


@kernel()
def _widen(plan, dims, cells, halves, words, used, out):  # type: ignore[no-untyped-def]
    """Slots of several codes from positions; the number of words used so far."""
    ranges, entries, entry_row, table = plan.ranges, plan.entries, plan.entry_row, plan.table
    mask, bits = np.uint32((1 << plan.bits) - 1), np.uint32(plan.bits)
    at = np.uint64(0)
    used = np.uint64(used)
    for s in range(dims.size):
        j = np.uint64(dims[s])
        out[at] = np.uint8(j)
        out[at + np.uint64(1)] = np.uint8(j >> np.uint64(8))
        row = (cells[s] + np.uint32(halves[s])) >> np.uint32(16)
        category = np.int64(row) - (np.int64(ranges[j, BOTTOM]) >> 16)
        n_codes = max(entries[j], 1)
        for e in range(plan.width):
            code = np.uint32(0)
            if e < n_codes:
                here = row if entries[j] == 0 else np.uint32(entry_row[j] + np.int64(category == e))
                word = words[used]
                used += np.uint64(1)
                entry = table[np.uint64((here << bits) | (word & mask))]
                code = (word if word < (entry & ~mask) else entry) & mask
            out[at + np.uint64(2 + e)] = np.uint8(code)
        at += np.uint64(2 + plan.width)
    return np.int64(used)
