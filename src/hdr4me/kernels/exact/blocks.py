"""From a block of records to report bytes: `column_block` for one code per slot, `wide_block` for several.

Both are given their random words as arrays, so that a test can compare each report with the plain specification.
"""

from __future__ import annotations

import numpy as np

from hdr4me.kernels.exact.positions import BOTTOM, TOGETHER, ask, positions
from hdr4me.kernels.exact.stages import finish, point
from hdr4me.kernels.exact.subset import SLACK, below, subsets
from hdr4me.kernels.machine.jit import kernel

__all__ = ["GROUP", "column_block", "wide_block"]

GROUP = 1024
"""Values that pass through the stages together: their buffers fit into the first-level cache."""


@kernel()
def _draw(spare, d):  # type: ignore[no-untyped-def]
    """Uniform integers below d, made from the random words `spare`."""
    drawn = np.empty(spare.size, np.uint16)
    return drawn[: below(spare, d, drawn)]


@kernel()
def _sample(columns, d, m, drawn, cursor, scratch, dims, start, stop):  # type: ignore[no-untyped-def]
    """Sample the dimensions of records [start, stop) into `dims` and prefetch their values.

    Returns the first record that was not sampled (`stop`, or an earlier one if the integers in `drawn` ran out) and the
    index of the first unused integer.
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
    """Write the reports of records [start, stop), one code per slot: sample dimensions, read values, draw codes.

    `halves` and `words` hold the random words for rounding and for the codes, `spare` those for sampling. Returns the
    first record that was not written: `stop`, or an earlier one if the words in `spare` ran out.
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
    """Write the reports of records [start, stop) with several codes per slot.

    An "entries" dimension sends one code for each of its categories. Such a dimension has two rows of alias entries,
    one for an absent and one for a present entry; entry e is present where the record's category is e. Returns the
    first record that was not written: `stop`, or an earlier one if random words ran out.
    """
    d, m, width = plan.entries.size, plan.n_sampled, plan.width
    rows, size = max(1, GROUP // (m * width)), m * (2 + width)
    dims = (np.arange(rows * m + SLACK) % m).astype(np.uint16)
    values, cells = np.empty(rows * m), np.empty(rows * m, np.uint32)
    drawn, cursor, used = _draw(spare, d), 0, 0
    for first in range(start, stop, rows):
        wanted = min(first + rows, stop)
        last, cursor = _sample(columns, d, m, drawn, cursor, scratch, dims, first, wanted)
        # Go on only while the words would suffice for records of the widest dimensions: where a block ends must not
        # depend on which dimensions its records sampled.
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
    """Write slots of several codes from positions; returns the number of words used so far."""
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
