"""Report bytes to counts: every byte checked, every valid report added, threads merged exactly."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from hdr4me.kernels.jit import kernel

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
def _count_narrow(reports, n_sampled, entries, cells, offsets, counts, status, seen):  # type: ignore[no-untyped-def]
    """One code per slot: indices are computed with the check folded in, then added if all were good."""
    d = np.uint32(entries.size)
    for i in range(reports.shape[0]):
        row = reports[i]
        good = True
        previous = np.int64(-1)
        for s in range(n_sampled):
            j = np.uint32(row[3 * s]) | np.uint32(row[3 * s + 1]) << np.uint32(8)
            inside = j < d
            j = j if inside else np.uint32(0)
            code = np.int64(row[3 * s + 2])
            good &= inside & (np.int64(j) > previous) & (code < cells[np.uint64(j)])
            previous = np.int64(j)
            seen[s] = offsets[np.uint64(j)] + code
        if good:
            for s in range(n_sampled):
                counts[np.uint64(seen[s])] += 1
            status[i] = OK
        else:
            status[i] = _check(row, n_sampled, 3, entries, cells)


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
    narrow = slot_size == 3

    def work(first: int, last: int, into: NDArray[np.int64]) -> None:
        part, marks = reports[first:last], status[first:last]
        if narrow:
            seen = np.empty(n_sampled, np.int64)
            _count_narrow(part, n_sampled, entries, cells, offsets, into, marks, seen)
        else:
            _count_wide(part, n_sampled, slot_size, entries, cells, offsets, into, marks)

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
