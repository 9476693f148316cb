"""From report bytes to counts: every byte is checked, every valid report is added, threads are merged exactly.

Reports are checked and counted in groups, sixteen slots at a time; a group with an invalid report is checked report by
report.
"""

from __future__ import annotations

from math import gcd
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numpy.typing import NDArray

from hdr4me.kernels.machine.intrinsics import BYTES, I32, I64, WIDTH, WORDS, Emitter, emit_loop, emits
from hdr4me.kernels.machine.jit import kernel
from hdr4me.kernels.machine.threads import share

BEYOND = WIDTH  # the number of bytes after the last slot that are read and not used

_ALL = 0xFFFFFFFF


def within(n_slots: int, sampled: int) -> NDArray[np.uint32]:
    """A mask for each slot: all bits set for the first slot of a report, no bit for the others."""
    pattern = np.zeros(n_slots, np.uint32)
    pattern[::sampled] = _ALL
    return pattern


@emits(types.uint64(*[types.uint64] * 6))
def _locate(b: Any, slots: Any, n: Any, d: Any, stride: Any, inner: Any, at: Any) -> Any:
    """The loop over n slots, a multiple of sixteen; its value is 1 if all slots are valid, else 0.

    The difference of two numbers below 2^31 has its sign bit set exactly if the first number is the smaller. Each test
    is such a difference, and one vector holds the bitwise "and" of all of them: its sign bits are all set at the end
    exactly if every test of every slot was passed.
    """
    e = Emitter(b)
    dims, codes = e.splat(d), e.splat(stride)
    low, byte, shift = (ir.Constant(WORDS, [value] * WIDTH) for value in (0xFFFF, 0xFF, 16))
    spread = [3 * k + min(byte_, 2) for k in range(WIDTH) for byte_ in range(4)]

    def sixteen(index: Any, good: Any, previous: Any) -> tuple[Any, Any]:
        bytes_ = e.load(e.at(slots, index, 3), BYTES)
        word = b.bitcast(e.shuffle(bytes_, bytes_, spread), WORDS)
        dim, code = b.and_(word, low), b.and_(b.lshr(word, shift), byte)
        e.store(b.add(b.mul(dim, codes), code), e.at(at, index, 4))
        earlier = e.shuffle(previous, dim, list(range(WIDTH - 1, 2 * WIDTH - 1)))
        increasing = b.or_(b.sub(earlier, dim), e.load(e.at(inner, index, 4), WORDS))
        return b.and_(b.and_(good, increasing), b.and_(b.sub(dim, dims), b.sub(code, codes))), dim

    first = ir.Constant(WORDS, [_ALL] * WIDTH), ir.Constant(WORDS, [0] * WIDTH)
    good, _ = emit_loop(b, n, WIDTH, first, sixteen)
    for half in (8, 4, 2, 1):
        good = b.and_(good, e.shuffle(good, good, [(k + half) % WIDTH for k in range(WIDTH)]))
    sign = b.lshr(b.extract_element(good, ir.Constant(I32, 0)), ir.Constant(I32, 31))
    return b.zext(sign, I64)


@njit(inline="always")
def locate(reports, n_slots, d, stride, inner, at):  # type: ignore[no-untyped-def]
    """Write the counter's index of each slot, dimension * stride + code, to `at`; returns whether all slots are valid.

    A slot is valid if its dimension is below d and above that of the slot before in the same report, and its code is
    below `stride`. n_slots is a multiple of sixteen, and BEYOND bytes after the last slot must be readable.
    """
    slots, pattern, places = reports.ctypes.data, inner.ctypes.data, at.ctypes.data
    return _locate(slots, n_slots, d, stride, pattern, places) == np.uint64(1)


# Status of a report: added; or a dimension >= d; slots not strictly increasing; a code out of support; padding.
OK, BAD_DIMENSION, NOT_INCREASING, BAD_CODE, BAD_PADDING = range(5)

# How many reports 16-bit counters can count: a valid report adds at most 1 to a counter. A multiple of WIDTH.
_FULL = (1 << 16) - WIDTH

_GROUP = 1024  # about how many slots are located and then counted together


@kernel()
def _check(row, sampled, slot_size, entries, cells):  # type: ignore[no-untyped-def]
    """The status of one report, without adding anything."""
    d = entries.size
    previous = np.int64(-1)
    for s in range(sampled):
        at = s * slot_size
        j = np.int64(row[at]) | np.int64(row[at + 1]) << 8
        if j >= d:
            return BAD_DIMENSION
        if j <= previous:
            return NOT_INCREASING
        previous = j
        used = entries[j]
        for e in range(used):
            if row[at + 2 + e] >= cells[j]:
                return BAD_CODE
        for e in range(used, slot_size - 2):
            if row[at + 2 + e] != 0:
                return BAD_PADDING
    return OK


@kernel()
def _count_carefully(reports, sampled, slot_size, entries, cells, offsets, counts, status):  # type: ignore[no-untyped-def]
    """For any layout and any bytes: check each complete report, then add it."""
    for i in range(reports.shape[0]):
        row = reports[i]
        status[i] = _check(row, sampled, slot_size, entries, cells)
        if status[i] == OK:
            for s in range(sampled):
                at = s * slot_size
                j = np.int64(row[at]) | np.int64(row[at + 1]) << 8
                for e in range(entries[j]):
                    counts[offsets[j] + e * cells[j] + np.int64(row[at + 2 + e])] += 1


@kernel()
def _count_quickly(reports, sampled, stride, entries, cells, inner, at, small, status):  # type: ignore[no-untyped-def]
    """Count reports of one code per slot in groups, in the counters `small` at dimension * stride + code.

    The counters have 16 bits, so that more of them fit into the first caches. A group with an invalid report is counted
    report by report. A code may be too large for its dimension as long as it is below the stride: `_move` finds it.
    """
    rows = at.size // sampled
    for first in range(0, reports.shape[0], rows):
        last = min(first + rows, reports.shape[0])
        if locate(reports[first:], (last - first) * sampled, cells.size, stride, inner, at):
            for i in range((last - first) * sampled):
                small[np.uint64(at[i])] += np.uint16(1)
        else:
            for r in range(first, last):
                status[r] = _check(reports[r], sampled, 3, entries, cells)
                if status[r] == OK:
                    for i in range((r - first) * sampled, (r - first + 1) * sampled):
                        small[np.uint64(at[i])] += np.uint16(1)


@kernel()
def _move(small, stride, cells, offsets, counts):  # type: ignore[no-untyped-def]
    """Add the counters `small` to `counts` and return True; False, and nothing added, if a code is out of range."""
    for j in range(cells.size):
        for c in range(cells[j], stride):
            if small[j * stride + c]:
                return False
    for j in range(cells.size):
        row, into = small[j * stride :][: cells[j]], counts[offsets[j] :][: cells[j]]
        for c in range(cells[j]):
            into[c] += np.int64(row[c])
    return True


def count_reports(
    reports: NDArray[np.uint8],
    sampled: int,
    slot_size: int,
    entries: NDArray[np.int64],
    cells: NDArray[np.int64],
    offsets: NDArray[np.int64],
    counts: NDArray[np.int64],
    *,
    threads: int = 1,
) -> NDArray[np.uint8]:
    """Add every valid report to counts, in place; the status of each row (`OK` or why it was left out).

    Dimension j's code c in entry e is counted at offsets[j] + e * cells[j] + c. Counts are integers, so that any
    division among threads gives the same counts.
    """
    n, d = len(reports), cells.size
    status = np.zeros(n, np.uint8)
    reports = np.ascontiguousarray(reports)
    stride = int(cells.max())
    unit = WIDTH // gcd(sampled, WIDTH)  # this many reports fill an integer number of vectors
    # This many reports at the end cannot be read sixteen slots at a time.
    beyond = -(-BEYOND // reports.shape[1])

    def work(first: int, last: int, into: NDArray[np.int64]) -> None:
        part, marks = reports[first:last], status[first:last]
        quick = max(0, len(part) - beyond) // unit * unit if slot_size == 3 else 0
        if 8 * quick * sampled < d * stride:
            quick = 0  # clearing and moving the small counters would cost more than they save
        group = max(_GROUP // (unit * sampled), 1) * unit * sampled if quick else 0
        inner, at = within(group, sampled), np.empty(group, np.uint32)
        small = np.zeros(d * stride if quick else 0, np.uint16)
        for start in range(0, quick, _FULL):
            block = slice(start, min(start + _FULL, quick))
            _count_quickly(part[block], sampled, stride, entries, cells, inner, at, small, marks[block])
            if not _move(small, stride, cells, offsets, into):
                _count_carefully(part[block], sampled, 3, entries, cells, offsets, into, marks[block])
            small[:] = 0
        _count_carefully(part[quick:], sampled, slot_size, entries, cells, offsets, into, marks[quick:])

    if threads <= 1 or n < 10_000:
        work(0, n, counts)
        return status
    cuts = np.linspace(0, n, threads + 1).astype(int).tolist()
    partial = np.zeros((threads, counts.size), np.int64)
    share(lambda i, j: work(cuts[i], cuts[j], partial[i]), 0, threads, threads)
    for piece in partial:
        counts += piece
    return status
