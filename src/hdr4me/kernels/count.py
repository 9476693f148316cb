"""Report bytes to counts: every byte checked, every valid report added, threads merged exactly."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit
from numpy.typing import NDArray

from hdr4me.kernels.jit import kernel
from hdr4me.kernels.machine import word_at

__all__ = ["BAD_CODE", "BAD_DIMENSION", "BAD_PADDING", "NOT_INCREASING", "OK", "count_reports"]

OK, BAD_DIMENSION, NOT_INCREASING, BAD_CODE, BAD_PADDING = range(5)
"""Status of a report: added; or a dimension >= d; slots not strictly increasing; a code out of support; padding."""

_FULL = (1 << 16) - 1
"""Reports that counters of 16 bits can take: a valid one adds 1 to each at most, and one taken back leaves no trace."""


@kernel()
def _check(row, n_sampled, slot_size, entries, cells):  # type: ignore[no-untyped-def]
    """The status of one report, without adding anything."""
    d = entries.size
    previous = np.int64(-1)
    for s in range(n_sampled):
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
def _count_wide(reports, n_sampled, slot_size, entries, cells, offsets, counts, status):  # type: ignore[no-untyped-def]
    """Any layout: check the report whole, then add it."""
    for i in range(reports.shape[0]):
        row = reports[i]
        status[i] = _check(row, n_sampled, slot_size, entries, cells)
        if status[i] == OK:
            for s in range(n_sampled):
                at = s * slot_size
                j = np.int64(row[at]) | np.int64(row[at + 1]) << 8
                for e in range(entries[j]):
                    counts[offsets[j] + e * cells[j] + np.int64(row[at + 2 + e])] += 1


@njit(inline="always")
def _slot(address, places):  # type: ignore[no-untyped-def]
    """(dimension, sign set if the code is in its support, where it is counted) of the slot at an address."""
    word = word_at(address)
    j = np.int64(word & np.uint64(0xFFFF))
    code = (word >> np.uint64(16)) & np.uint64(0xFF)
    place = places[np.uint64(j)]
    return j, np.int64(code) - np.int64(place & np.uint64(0xFFFFFFFF)), (place >> np.uint64(32)) + code


@kernel()
def _count_many(reports, n_sampled, places, small, status):  # type: ignore[no-untyped-def]
    """One code per slot, many reports: add at once, check meanwhile, and mark the bad ones, to be taken back.

    `places` holds offset * 2^32 + cells for each of the 65,536 dimensions a slot can name: no cells, at offset 0,
    where there is no such dimension. A slot is read as one word, which reaches a byte beyond it: a byte must follow
    the last report. Counting is in 16 bits, which fit the nearest caches better; `small` has 256 more than
    the counts, so that no code leads out of it.
    """
    start, size = np.uint64(reports.ctypes.data), np.uint64(3 * n_sampled)
    pairs = n_sampled // 2 * 2
    for i in range(reports.shape[0]):
        row = start + np.uint64(i) * size
        good = np.int64(-1)  # its sign stays set while every difference below is negative
        previous = np.int64(-1)
        for s in range(
            0, pairs, 2
        ):  # two at a time, so that the second does not wait for the first to be stored
            j, inside, at = _slot(row + np.uint64(3 * s), places)
            k, inside_too, at_too = _slot(row + np.uint64(3 * s + 3), places)
            good &= (previous - j) & inside & (j - k) & inside_too
            previous = k
            small[at] += np.uint16(1)
            small[at_too] += np.uint16(1)
        if pairs < n_sampled:
            j, inside, at = _slot(row + np.uint64(3 * pairs), places)
            good &= (previous - j) & inside
            small[at] += np.uint16(1)
        status[i] = good >= 0


@kernel()
def _take_back(reports, n_sampled, places, entries, cells, small, status):  # type: ignore[no-untyped-def]
    """Undo the reports that `_count_many` marked, and say why."""
    start, size = np.uint64(reports.ctypes.data), np.uint64(3 * n_sampled)
    for i in range(reports.shape[0]):
        if status[i] != OK:
            row = start + np.uint64(i) * size
            for s in range(n_sampled):
                _, _, at = _slot(row + np.uint64(3 * s), places)
                small[at] -= np.uint16(1)
            status[i] = _check(reports[i], n_sampled, 3, entries, cells)


@kernel()
def _count_few(reports, n_sampled, places, entries, cells, counts, status, seen):  # type: ignore[no-untyped-def]
    """As `_count_many` for few reports or very many counts: a report is checked first and counted at once."""
    start, size = np.uint64(reports.ctypes.data), np.uint64(3 * n_sampled)
    for i in range(reports.shape[0]):
        row = start + np.uint64(i) * size
        good, previous = np.int64(-1), np.int64(-1)
        for s in range(n_sampled):
            j, inside, at = _slot(row + np.uint64(3 * s), places)
            good &= (previous - j) & inside
            previous = j
            seen[s] = at
        if good < 0:
            for s in range(n_sampled):
                counts[seen[s]] += 1
            status[i] = OK
        else:
            status[i] = _check(reports[i], n_sampled, 3, entries, cells)


@kernel()
def _empty(small, counts):  # type: ignore[no-untyped-def]
    """Move what was counted to the counts."""
    for i in range(counts.size):
        counts[i] += np.int64(small[i])
    small[:] = 0


def count_reports(
    reports: NDArray[np.uint8],
    n_sampled: int,
    slot_size: int,
    entries: NDArray[np.int64],
    cells: NDArray[np.int64],
    offsets: NDArray[np.int64],
    counts: NDArray[np.int64],
    *,
    threads: int = 1,
) -> NDArray[np.uint8]:
    """Add every valid report to counts, in place; the status of each row (`OK` or why it was left out).

    Dimension j's code c in entry e is counted at offsets[j] + e * cells[j] + c. Integers, so any split gives the
    same counts.

    >>> counts = np.zeros(4, np.int64)
    >>> reports = np.array([[1, 0, 1], [0, 0, 2], [7, 0, 0]], np.uint8)
    >>> shape = [np.array(x) for x in ([1, 1], [2, 2], [0, 2])]
    >>> count_reports(reports, 1, 3, *shape, counts).tolist(), counts.tolist()
    ([0, 3, 1], [0, 0, 0, 1])
    """
    n = len(reports)
    status = np.empty(n, np.uint8)
    narrow = slot_size == 3 and counts.size < 1 << 32
    reports = np.ascontiguousarray(reports)
    places = np.zeros(1 << 16, np.uint64)
    places[: offsets.size] = (offsets.astype(np.uint64) << np.uint64(32)) + cells.astype(np.uint64)

    def work(first: int, last: int, into: NDArray[np.int64]) -> None:
        part, marks = reports[first:last], status[first:last]
        # All but the last report, which no byte follows.
        quick = max(0, len(part) - 1) if narrow else 0
        if quick * n_sampled > 2 * counts.size:  # else clearing and emptying small counters would not pay
            small = np.zeros(counts.size + 256, np.uint16)
            for start in range(0, quick, _FULL):
                at = slice(start, min(start + _FULL, quick))
                _count_many(part[at], n_sampled, places, small, marks[at])
                if marks[at].any():
                    _take_back(part[at], n_sampled, places, entries, cells, small, marks[at])
                _empty(small, into)
        elif quick:
            seen = np.empty(n_sampled, np.uint64)
            _count_few(part[:quick], n_sampled, places, entries, cells, into, marks[:quick], seen)
        _count_wide(part[quick:], n_sampled, slot_size, entries, cells, offsets, into, marks[quick:])

    if threads <= 1 or n < 10_000:
        work(0, n, counts)
        return status
    cuts = np.linspace(0, n, threads + 1).astype(int).tolist()
    partial = [np.zeros_like(counts) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work, a, b, c) for a, b, c in zip(cuts, cuts[1:], partial, strict=False)]:
            done.result()
    for piece in partial:
        counts += piece
    return status
