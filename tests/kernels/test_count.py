"""Counting: equal to a plain loop, bad reports left out whole with the reason, threads exact."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from hdr4me.kernels.exact.count import (
    BAD_CODE,
    BAD_DIMENSION,
    BAD_PADDING,
    NOT_INCREASING,
    OK,
    count_reports,
)

from .memory import at_the_end_of_memory

# Three dimensions: 4 cells; 2 cells; 3 entries of 2 cells each.
ENTRIES, CELLS = np.array([1, 1, 3]), np.array([4, 2, 2])
OFFSETS = np.array([0, 4, 6])
SIZE = 12


def count(reports: list[list[int]], sampled: int, slot: int) -> tuple[list[int], list[int]]:
    counts = np.zeros(SIZE, np.int64)
    status = count_reports(np.array(reports, np.uint8), sampled, slot, ENTRIES, CELLS, OFFSETS, counts)
    return status.tolist(), counts.tolist()


def test_adds_values_and_entries_where_they_belong() -> None:
    status, counts = count([[0, 0, 3, 0, 0, 2, 0, 1, 0, 1]], 2, 5)
    assert status == [OK]
    assert counts == [0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        ([3, 0, 0, 0, 0], BAD_DIMENSION),
        ([0, 1, 0, 0, 0], BAD_DIMENSION),
        ([0, 0, 4, 0, 0], BAD_CODE),
        ([2, 0, 0, 0, 2], BAD_CODE),
        ([0, 0, 3, 0, 1], BAD_PADDING),
    ],
)
def test_a_bad_report_is_left_out_with_its_reason(report: list[int], reason: int) -> None:
    status, counts = count([report, [1, 0, 1, 0, 0]], 1, 5)
    assert status == [reason, OK]
    assert sum(counts) == 1


@pytest.mark.parametrize("slots", [(1, 0), (0, 0), (1, 1)])
def test_dimensions_must_increase(slots: tuple[int, int]) -> None:
    a, b = slots
    for width in (1, 3):
        padding = [0] * (width - 1)
        status, counts = count([[a, 0, 0, *padding, b, 0, 0, *padding]], 2, 2 + width)
        assert status == [NOT_INCREASING]
        assert not any(counts)


def test_narrow_reports_report_the_same_reasons() -> None:
    cells = np.array([4, 2])
    one = np.array([1, 1])
    reports = np.array([[0, 0, 3], [0, 0, 4], [1, 0, 2], [2, 0, 0], [9, 9, 9], [1, 0, 1]], np.uint8)
    counts = np.zeros(6, np.int64)
    status = count_reports(reports, 1, 3, one, cells, np.array([0, 4]), counts)
    assert status.tolist() == [OK, BAD_CODE, BAD_CODE, BAD_DIMENSION, BAD_DIMENSION, OK]
    assert counts.tolist() == [0, 0, 0, 1, 0, 1]


@pytest.mark.parametrize("width", [1, 2])
def test_random_bytes_equal_the_plain_loop_on_any_number_of_threads(width: int) -> None:
    """Fuzz: random reports, most of them bad, against a plain loop; nothing is written out of bounds."""
    rng = np.random.default_rng(5)
    d, m, slot = 6, 2, 2 + width
    entries = np.array([1, width, 1, width, 1, 1])
    cells = rng.integers(1, 200, d)
    offsets = np.concatenate([[0], np.cumsum(entries * cells)[:-1]])
    reports = np.zeros((20_000, m * slot), np.uint8)
    for s in range(m):
        reports[:, s * slot] = rng.integers(0, d + 1, len(reports))
        for e in range(width):
            reports[:, s * slot + 2 + e] = rng.integers(0, 256, len(reports)) * (
                rng.random(len(reports)) < 0.6
            )
    size = int((entries * cells).sum())
    expected, valid = np.zeros(size, np.int64), []
    for row in reports.tolist():
        slots = [
            (row[s * slot] + 256 * row[s * slot + 1], row[s * slot + 2 : (s + 1) * slot]) for s in range(m)
        ]
        good = slots[0][0] < slots[1][0] < d and all(
            max(codes[: entries[j]]) < cells[j] and not any(codes[entries[j] :]) for j, codes in slots
        )
        valid.append(good)
        if good:
            for j, codes in slots:
                for e, code in enumerate(codes[: entries[j]]):
                    expected[offsets[j] + e * cells[j] + code] += 1
    assert 100 < sum(valid) < 19_900
    for threads in (1, 3):
        guarded = np.zeros(size + 64, np.int64)
        status = count_reports(reports, m, slot, entries, cells, offsets, guarded[32:-32], threads=threads)
        assert ((status == OK) == valid).all()
        assert (guarded[32:-32] == expected).all()
        assert not guarded[:32].any()
        assert not guarded[-32:].any()


@pytest.mark.parametrize("m", [1, 2, 3])
def test_a_count_beyond_sixteen_bits_and_bad_reports_among_many_leave_no_trace(m: int) -> None:
    """The counters that reports pass through hold 16 bits: the same report 150,000 times, every third one bad."""
    d, n = 4, 150_000
    cells, offsets, one = np.full(d, 3), 3 * np.arange(d), np.ones(d, np.int64)
    row = np.array([[s, 0, 2] for s in range(m)], np.uint8).reshape(-1)
    reports = np.tile(row, (n, 1))
    reports[::9, -1] = 255  # no such code
    reports[3::9, -3:] = (255, 255, 255)  # no such dimension
    reports[6::9, -3:] = (0, 0, 3) if m == 1 else (0, 0, 2)  # no such code; or a dimension twice
    counts = np.zeros(3 * d, np.int64)
    status = count_reports(reports, m, 3, one, cells, offsets, counts)
    assert np.flatnonzero(status != OK).tolist() == list(range(0, n, 3))
    assert status[:9:3].tolist() == [BAD_CODE, BAD_DIMENSION, BAD_CODE if m == 1 else NOT_INCREASING]
    assert counts.reshape(d, 3).tolist() == [[0, 0, 100_000 if j < m else 0] for j in range(d)]


@pytest.mark.parametrize("m", [1, 3])
def test_more_good_reports_than_sixteen_bits_can_count(m: int) -> None:
    n, d = 70_000, 4
    reports = np.tile(np.array([[s, 0, 2] for s in range(m)], np.uint8).reshape(-1), (n, 1))
    counts = np.zeros(3 * d, np.int64)
    count_reports(reports, m, 3, np.ones(d, np.int64), np.full(d, 3), 3 * np.arange(d), counts)
    assert counts.reshape(d, 3).tolist() == [[0, 0, n if j < m else 0] for j in range(d)]


@pytest.mark.parametrize("m", [1, 3, 5, 16, 40])
@pytest.mark.parametrize("cells", [np.full(50, 7), np.arange(50) % 6 + 2], ids=["alike", "unlike"])
def test_one_bad_report_among_good_ones_is_found_at_any_position(m: int, cells: NDArray[np.int64]) -> None:
    """Whole vectors of slots are checked at once: every kind of fault in every slot, at every place in a vector."""
    rng = np.random.default_rng(m)
    d, n = 50, 400
    dims = np.sort(rng.permuted(np.tile(np.arange(1, d), (n, 1)), axis=1)[:, :m], axis=1)
    slots = np.zeros((n, m, 3), np.uint8)
    slots[:, :, 0], slots[:, :, 2] = dims, rng.integers(0, cells[dims])
    one, offsets = np.ones(d, np.int64), np.cumsum(cells) - cells
    where = offsets[dims] + slots[:, :, 2]
    total = np.bincount(where.reshape(-1), minlength=int(cells.sum()))
    for bad in range(200, 216):
        faults = [(m - 1, 0, d, BAD_DIMENSION), (m - 1, 1, 128, BAD_DIMENSION)]
        for slot in range(m):
            faults.append((slot, 2, int(cells[dims[bad, slot]]), BAD_CODE))
            if slot:
                before = int(dims[bad, slot - 1])
                faults += [(slot, 0, wrong, NOT_INCREASING) for wrong in (0, before - 1, before)]
        for slot, byte, value, reason in faults:
            changed = slots.copy()
            changed[bad, slot, byte] = value
            counts = np.zeros_like(total)
            status = count_reports(changed.reshape(n, 3 * m), m, 3, one, cells, offsets, counts)
            assert np.flatnonzero(status).tolist() == [bad]
            assert status[bad] == reason
            assert (counts == total - np.bincount(where[bad], minlength=total.size)).all()


@pytest.mark.parametrize("m", [1, 2, 5, 16])
def test_nothing_is_read_beyond_the_reports(m: int) -> None:
    """Reports that end where memory ends: reading on would be the end of this process."""
    d = 20
    for n in (1, 15, 16, 17, 33, 1000):
        row = np.array([[s, 0, 1] for s in range(m)], np.uint8).reshape(-1)
        reports = at_the_end_of_memory(np.tile(row, (n, 1)))
        counts = np.zeros(2 * d, np.int64)
        count_reports(reports, m, 3, np.ones(d, np.int64), np.full(d, 2), 2 * np.arange(d), counts)
        assert counts.sum() == n * m
