"""From a block of records to report bytes: `column_block` for one code per slot, `wide_block` for several.

Both are given their random words as arrays, so that a test can compare each report with the plain specification.

A value's *position* is its row of the stacked alias tables in 16.16 fixed point. Per value one 16-bit word rounds
the position to a row (adding it to the fraction carries with probability fraction / 2^16, exactly) and one 32-bit
word picks the cell from that row's alias entries. Both are always drawn, and choices are selections, not
branches, so neither the time nor the randomness used depends on the value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from hdr4me.kernels.exact.positions import BOTTOM, TOGETHER, ask, positions
from hdr4me.kernels.exact.subset import SLACK, below, subsets
from hdr4me.kernels.machine.intrinsics import BYTES, HALVES, I32, I64, WIDTH, WORDS, Emitter
from hdr4me.kernels.machine.jit import kernel


@kernel()
def point(
    cells: NDArray[np.uint32],
    words: NDArray[np.uint32],
    halves: NDArray[np.uint16],
    bits: int,
) -> None:
    """Turn positions, in place, into indices of alias entries: the rounded row, and the word's column in it."""
    mask = np.uint32((1 << bits) - 1)
    shift = np.uint32(16 - bits)
    for i in range(cells.size):
        cells[i] = ((cells[i] + np.uint32(halves[i])) >> shift) & ~mask | (words[i] & mask)


def _entries(e: Emitter, table: Any, cells: Any) -> Any:
    """Load the sixteen entries whose indices lie at `cells`, two indices per load: faster than a gather."""
    b, entries = e.b, ir.Constant(WORDS, ir.Undefined)
    start = b.inttoptr(table, I32.as_pointer())
    for k in range(WIDTH // 2):
        pair = e.load(cells, I64, 8 * k)
        both = b.and_(pair, ir.Constant(I64, 0xFFFFFFFF)), b.lshr(pair, ir.Constant(I64, 32))
        for half, index in enumerate(both):
            entry = b.load(b.gep(start, [index], source_etype=I32), typ=I32)
            entries = b.insert_element(entries, entry, ir.Constant(I32, 2 * k + half))
    return entries


def _finish(
    typingctx: Any, n: Any, cells: Any, dims: Any, words: Any, table: Any, bits: Any, out: Any
) -> Any:
    """Emit the loop over sixteen values at a time: load their entries, select the codes, and write slots of 3 bytes."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        n, cells, dims, words, table, bits, out = args
        b, e = builder, Emitter(builder)
        mask = e.low_bits(bits)
        rest, above = b.not_(mask), ir.Constant(WORDS, [16] * WIDTH)

        def step(index: Any) -> None:
            word, entry = e.load(e.at(words, index, 4), WORDS), _entries(e, table, e.at(cells, index, 4))
            code = b.and_(b.select(b.icmp_unsigned("<", word, b.and_(entry, rest)), word, entry), mask)
            dim = b.zext(e.load(e.at(dims, index, 2), HALVES), WORDS)
            slots = b.bitcast(b.or_(dim, b.shl(code, above)), BYTES)
            order = [4 * (k // 3) + k % 3 for k in range(3 * WIDTH)]
            packed = e.shuffle(slots, slots, [*order, *order[:WIDTH]])
            e.store(e.shuffle(packed, packed, list(range(3 * WIDTH))), e.at(out, index, 3))

        e.walk(n, step)
        return context.get_dummy_value()

    return types.void(*[types.uint64] * 7), codegen


finish_many: Any = intrinsic(_finish)


@kernel()
def finish(cells, dims, words, table, bits, out):  # type: ignore[no-untyped-def]
    """Write slots of three bytes (two of the dimension, one of the code) from indices of alias entries.

    The code is the entry's own column if the word is below the entry's threshold, else the entry's other cell.
    """
    n = cells.size
    if n >= WIDTH:
        finish_many(
            np.uint64(n),
            np.uint64(cells.ctypes.data),
            np.uint64(dims.ctypes.data),
            np.uint64(words.ctypes.data),
            np.uint64(table.ctypes.data),
            np.uint64(bits),
            np.uint64(out.ctypes.data),
        )
    else:
        mask = np.uint32((1 << bits) - 1)
        for i in range(n):
            word, entry = words[i], table[np.uint64(cells[i])]
            out[3 * i] = np.uint8(dims[i])
            out[3 * i + 1] = np.uint8(dims[i] >> np.uint16(8))
            out[3 * i + 2] = np.uint8((word if word < (entry & ~mask) else entry) & mask)


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
