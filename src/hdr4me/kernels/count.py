"""Report bytes to counts: every byte checked, every valid report added, threads merged exactly."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from hdr4me.kernels.jit import kernel
from hdr4me.kernels.machine import word_at

__all__ = ["BAD_CODE", "BAD_DIMENSION", "BAD_PADDING", "NOT_INCREASING", "OK", "count_reports"]

OK, BAD_DIMENSION, NOT_INCREASING, BAD_CODE, BAD_PADDING = range(5)
"""Status of a report: added; or a dimension >= d; slots not strictly increasing; a code out of support; padding."""


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


@kernel()
def _count_narrow(reports, n_sampled, places, entries, cells, counts, small, status, seen):  # type: ignore[no-untyped-def]
    """One code per slot: a slot is read as one word, the check is folded into the index, then all are added or none.

    `places` holds offset * 2^32 + cells for each of the 65,536 dimensions a slot can name: no cells where there is
    no such dimension. A word reaches a byte beyond its slot, so the last report is given in a buffer of its own, one
    byte longer. Counting is in bytes first, which fit the nearest cache eight times better; a byte that comes
    round to 0 carries 256 to the counts. Without `small` they are counted at once.
    """
    start, size = np.uint64(reports.ctypes.data), np.uint64(3 * n_sampled)
    for i in range(reports.shape[0]):
        row = start + np.uint64(i) * size
        good = np.int64(-1)  # its sign stays set while every difference below is negative
        previous = np.int64(-1)
        for s in range(n_sampled):
            word = word_at(row + np.uint64(3 * s))
            j = np.int64(word & np.uint64(0xFFFF))
            code = (word >> np.uint64(16)) & np.uint64(0xFF)
            place = places[np.uint64(j)]
            good &= (previous - j) & (np.int64(code) - np.int64(place & np.uint64(0xFFFFFFFF)))
            previous = j
            seen[s] = (place >> np.uint64(32)) + code
        if good < 0:
            if small.size:
                for s in range(n_sampled):
                    count = small[seen[s]] + np.uint8(1)
                    small[seen[s]] = count
                    if np.uint8(count) == 0:
                        counts[seen[s]] += 256
            else:
                for s in range(n_sampled):
                    counts[seen[s]] += 1
            status[i] = OK
        else:
            status[i] = _check(reports[i], n_sampled, 3, entries, cells)


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
        if not narrow:
            _count_wide(part, n_sampled, slot_size, entries, cells, offsets, into, marks)
        elif first < last:
            padded = np.zeros(part.shape[1] + 1, np.uint8)
            padded[:-1] = part[-1]
            seen = np.empty(n_sampled, np.uint64)
            small = np.zeros(counts.size if part.size > 8 * counts.size else 0, np.uint8)
            for rows, at in ((part[:-1], slice(0, -1)), (padded[None, :-1], slice(-1, None))):
                _count_narrow(rows, n_sampled, places, entries, cells, into, small, marks[at], seen)
            if small.size:
                into += small

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
