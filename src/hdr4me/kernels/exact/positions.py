"""From the values of sampled dimensions, in columns of any type and place, to positions in 16.16 fixed point.

The values of a record are prefetched as soon as its dimensions are sampled, and read a group of records later. Two
common cases have faster loops: columns of one matrix, and dimensions that all have the same range.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.kernels.machine.intrinsics import load, prefetch
from hdr4me.kernels.machine.jit import kernel

LOW, SCALE, BOTTOM, TOP, DEFAULT = range(5)

TOGETHER = 128
"""How many values are prefetched together: memory fetches them while the next dimensions are sampled."""


def range_lines(*five: ArrayLike) -> NDArray[np.float64]:
    """Low, scale, bottom, top and default of each dimension as the rows of [d, 8].

    Each row is one cache line, because sampled dimensions come in random order and each costs one line.
    """
    numbers = np.stack(np.broadcast_arrays(*five), axis=1)
    room = np.zeros(8 * len(numbers) + 8)
    lines: NDArray[np.float64] = room[(-room.ctypes.data // 8) % 8 :][: 8 * len(numbers)].reshape(-1, 8)
    lines[:, : numbers.shape[1]] = numbers
    return lines


@kernel()
def ask(address, stride, step, dims, at, m, start, stop):  # type: ignore[no-untyped-def]
    """Prefetch the values of records [start, stop); the first record's dimensions are dims[at:at+m], and so on."""
    s = np.uint64(at)
    for r in range(start, stop):
        last = s + np.uint64(m)
        if step:
            row = address[0] + np.uint64(r * stride[0])
            while s < last:
                prefetch(row + np.uint64(dims[s]) * np.uint64(step))
                s += np.uint64(1)
        else:
            while s < last:
                j = np.uint64(dims[s])
                prefetch(address[j] + np.uint64(r * stride[j]))
                s += np.uint64(1)


@kernel()
def positions(columns, plan, dims, start, stop, values, out):  # type: ignore[no-untyped-def]
    """Write the positions of the sampled dimensions of records [start, stop) to `out`; `values` is a buffer.

    A missing value takes its dimension's default position. Arrays are taken out of their tuples before the loops:
    inside a loop each access through a tuple would count references, at ten times the cost of the work.
    """
    m = plan.n_sampled
    n = (stop - start) * m
    if columns.step:
        first = columns.address[0]
        _read_matrix(first, columns.stride[0], columns.step, columns.dtype[0], dims, m, start, stop, values)
    else:
        _read(columns, dims, m, start, stop, values)
    if plan.alike:
        _place_alike(plan.ranges[0], values[:n], out[:n])
    else:
        _place(plan.ranges, columns, dims, values[:n], out[:n])


@kernel()
def _read_matrix(address, stride, step, dtype, dims, m, start, stop, values):  # type: ignore[no-untyped-def]
    """Read values from columns of one type at equal distances (a matrix)."""
    s = 0
    for r in range(start, stop):
        row = address + np.uint64(r * stride)
        for _ in range(m):
            values[s] = load(row + np.uint64(dims[s]) * np.uint64(step), dtype)
            s += 1


@kernel()
def _read(columns, dims, m, start, stop, values):  # type: ignore[no-untyped-def]
    """Read values from columns of any types; a missing value becomes NaN."""
    address, stride, dtype = columns.address, columns.stride, columns.dtype
    valid, valid_offset = columns.valid, columns.valid_offset
    s = 0
    for r in range(start, stop):
        for _ in range(m):
            j = np.uint64(dims[s])
            value = load(address[j] + np.uint64(r * stride[j]), dtype[j])
            if valid[j]:
                bit = r + valid_offset[j]
                byte = np.int64(load(valid[j] + np.uint64(bit >> 3), 9))
                value = value if (byte >> (bit & 7)) & 1 else np.nan
            values[s] = value
            s += 1


@kernel()
def _place_alike(line, values, out):  # type: ignore[no-untyped-def]
    """Positions of numbers that all have the same range; the loop vectorises."""
    low, scale, bottom, top, default = line[LOW], line[SCALE], line[BOTTOM], line[TOP], line[DEFAULT]
    for s in range(values.size):
        value = values[s]
        x = (value - low) * scale + bottom
        x = x if x > bottom else bottom
        x = x if x < top else top
        x = x if value == value else default  # which may lie beyond the top: "no value" of an optional number
        out[s] = x + 0.5


@kernel()
def _place(ranges, columns, dims, values, out):  # type: ignore[no-untyped-def]
    """Positions of numbers of any ranges, and of categories."""
    lut, lut_start, lut_size = columns.lut, columns.lut_start, columns.lut_size
    for s in range(values.size):
        j = np.uint64(dims[s])
        value = values[s]
        bottom, top = ranges[j, BOTTOM], ranges[j, TOP]
        if lut_size[j] > 0:
            known = value >= 0.0 and value < lut_size[j]
            at = np.uint64(lut_start[j] + (np.int64(value) if known else 0))
            x = bottom + lut[at] * 65536.0
        else:
            x = (value - ranges[j, LOW]) * ranges[j, SCALE] + bottom
            known = value == value
        x = x if x > bottom else bottom
        x = x if x < top else top
        x = x if known else ranges[j, DEFAULT]
        out[s] = x + 0.5
