"""From values in columns or in a matrix to report bytes.

A value's *position* is its row of the stacked alias tables in 16.16 fixed point. A 16-bit random word rounds it to a
row (adding it to the fraction carries with probability fraction / 2^16, exactly), and a 32-bit word picks the cell from
that row's alias entries. Both are always drawn, and choices are selections, not branches, so neither the time nor the
randomness used depends on the value. Random words are arguments, so that tests compare with the plain specification.

The values of a record are prefetched as soon as its dimensions are sampled, and read a group of records later.
`column_block` writes one code per slot, `wide_block` several; `encode_rows` takes a matrix whose columns are all
reported.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numpy.typing import ArrayLike, NDArray

from hdr4me.kernels.exact.sets import SLACK, below, subsets
from hdr4me.kernels.machine.intrinsics import (
    BYTES,
    HALVES,
    I32,
    I64,
    WIDTH,
    WORDS,
    Emitter,
    emit_prefetch,
    emits,
    load,
    prefetch,
)
from hdr4me.kernels.machine.jit import kernel

LOW, SCALE, BOTTOM, TOP, DEFAULT = range(5)

PREFETCHED = 128  # values prefetched together: memory fetches them while the next dimensions are sampled


def range_lines(*five: ArrayLike) -> NDArray[np.float64]:
    """Low, scale, bottom, top and default of each dimension as the rows of [d, 8].

    Each row is one cache line, because sampled dimensions come in random order and each costs one line.
    """
    numbers = np.stack(np.broadcast_arrays(*five), axis=1)
    buffer = np.zeros(8 * len(numbers) + 8)
    lines: NDArray[np.float64] = buffer[(-buffer.ctypes.data // 8) % 8 :][: 8 * len(numbers)].reshape(-1, 8)
    lines[:, : numbers.shape[1]] = numbers
    return lines


@kernel()
def count_outside(values, low, high):  # type: ignore[no-untyped-def]
    """The number of values outside [low, high], NaN included, in each column of a matrix in C order.

    `low` and `high` are repeated for several rows: a long loop without branches shows that all of them are inside.
    """
    flat, d = values.reshape(-1), values.shape[1]
    counts = np.zeros(d, np.int64)
    for start in range(0, len(flat), len(low)):
        part = flat[start : start + len(low)]
        if _inside(part, low, high) != len(part):
            for k in range(len(part)):
                counts[k % d] += not (part[k] >= low[k] and part[k] <= high[k])
    return counts


@kernel()
def _inside(values, low, high):  # type: ignore[no-untyped-def]
    """The number of values inside [low, high]."""
    n = np.int64(0)
    for k in range(len(values)):
        n += (values[k] >= low[k]) & (values[k] <= high[k])
    return n


@kernel()
def prefetch_values(address, stride, step, dims, at, m, start, stop):  # type: ignore[no-untyped-def]
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

    A missing value has its dimension's default position. Arrays are taken out of their tuples before the loops, because
    numba counts references at each access through a tuple, which costs ten times as much as the work itself.
    """
    m = plan.sampled
    n = (stop - start) * m
    if columns.step:
        first = columns.address[0]
        _read_matrix(first, columns.stride[0], columns.step, columns.dtype[0], dims, m, start, stop, values)
    else:
        _read(columns, dims, m, start, stop, values)
    if plan.alike:
        _positions_of_alike(plan.ranges[0], values[:n], out[:n])
    else:
        _positions_of_any(plan.ranges, columns, dims, values[:n], out[:n])


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
def _positions_of_alike(line, values, out):  # type: ignore[no-untyped-def]
    """Positions of numbers that all have the same range; the loop vectorizes."""
    low, scale, bottom, top, default = line[LOW], line[SCALE], line[BOTTOM], line[TOP], line[DEFAULT]
    for s in range(values.size):
        value = values[s]
        x = (value - low) * scale + bottom
        x = x if x > bottom else bottom
        x = x if x < top else top
        x = x if value == value else default  # which may lie beyond the top: "no value" of an optional number
        out[s] = x + 0.5


@kernel()
def _positions_of_any(ranges, columns, dims, values, out):  # type: ignore[no-untyped-def]
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


@emits(types.void(*[types.uint64] * 7))
def finish_many(b: Any, n: Any, cells: Any, dims: Any, words: Any, table: Any, bits: Any, out: Any) -> None:
    """The loop over sixteen values at a time: load their entries, select the codes, and write slots of 3 bytes."""
    e = Emitter(b)
    mask = e.low_bits(bits)
    rest, above = b.not_(mask), ir.Constant(WORDS, [16] * WIDTH)
    order = [4 * (k // 3) + k % 3 for k in range(3 * WIDTH)]

    def step(index: Any) -> None:
        word, entry = e.load(e.at(words, index, 4), WORDS), _entries(e, table, e.at(cells, index, 4))
        code = b.and_(b.select(b.icmp_unsigned("<", word, b.and_(entry, rest)), word, entry), mask)
        dim = b.zext(e.load(e.at(dims, index, 2), HALVES), WORDS)
        slots = b.bitcast(b.or_(dim, b.shl(code, above)), BYTES)
        packed = e.shuffle(slots, slots, [*order, *order[:WIDTH]])
        e.store(e.shuffle(packed, packed, list(range(3 * WIDTH))), e.at(out, index, 3))

    e.walk(n, step)


@kernel()
def finish(cells, dims, words, table, bits, out):  # type: ignore[no-untyped-def]
    """Write slots of three bytes (two of the dimension, one of the code) from indices of alias entries.

    The code is the entry's own column if the word is below the entry's threshold, else the entry's other cell.
    """
    n = cells.size
    if n >= WIDTH:
        at_cells, at_dims, at_words = cells.ctypes.data, dims.ctypes.data, words.ctypes.data
        finish_many(n, at_cells, at_dims, at_words, table.ctypes.data, bits, out.ctypes.data)
    else:
        mask = np.uint32((1 << bits) - 1)
        for i in range(n):
            word, entry = words[i], table[np.uint64(cells[i])]
            out[3 * i] = np.uint8(dims[i])
            out[3 * i + 1] = np.uint8(dims[i] >> np.uint16(8))
            out[3 * i + 2] = np.uint8((word if word < (entry & ~mask) else entry) & mask)


GROUP = 1024  # values that pass through the stages together: their buffers fit into the first-level cache


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
    rows = max(1, PREFETCHED // m)
    address, stride, step = columns.address, columns.stride, columns.step
    for first in range(start, stop, rows):
        wanted = min(rows, stop - first)
        at, done = (first - start) * m, wanted
        if m < d:
            done, cursor = subsets(d, m, drawn, cursor, scratch, dims, at, wanted)
        prefetch_values(address, stride, step, dims, at, m, first, first + done)
        if done < wanted:
            return first + done, cursor
    return stop, cursor


@kernel()
def column_block(columns, plan, start, stop, halves, words, spare, scratch, out):  # type: ignore[no-untyped-def]
    """Write the reports of records [start, stop), one code per slot: sample dimensions, read values, draw codes.

    `halves` and `words` hold the random words for rounding and for the codes, `spare` those for sampling. Returns the
    first record that was not written: `stop`, or an earlier one if the words in `spare` ran out.
    """
    d, m = plan.entries.size, plan.sampled
    rows = max(1, GROUP // m)
    dims = (np.arange(rows * m + SLACK) % m).astype(np.uint16)
    values, cells = np.empty(rows * m), np.empty(rows * m, np.uint32)
    drawn, cursor = _draw(spare, d), 0
    for first in range(start, stop, rows):
        target = min(first + rows, stop)
        last, cursor = _sample(columns, d, m, drawn, cursor, scratch, dims, first, target)
        positions(columns, plan, dims, first, last, values, cells)
        a, b = (first - start) * m, (last - start) * m
        part = cells[: b - a]
        point(part, words[a:b], halves[a:b], plan.bits)
        finish(part, dims[: b - a], words[a:b], plan.table, plan.bits, out[3 * first * m : 3 * last * m])
        if last < target:
            return last
    return stop


@kernel()
def wide_block(columns, plan, start, stop, halves, words, spare, scratch, out):  # type: ignore[no-untyped-def]
    """Write the reports of records [start, stop) with several codes per slot.

    An "entries" dimension sends one code for each of its categories. Such a dimension has two rows of alias entries,
    one for an absent and one for a present entry; entry e is present where the record's category is e. Returns the
    first record that was not written: `stop`, or an earlier one if random words ran out.
    """
    d, m, width = plan.entries.size, plan.sampled, plan.width
    rows, size = max(1, GROUP // (m * width)), m * (2 + width)
    dims = (np.arange(rows * m + SLACK) % m).astype(np.uint16)
    values, cells = np.empty(rows * m), np.empty(rows * m, np.uint32)
    drawn, cursor, used = _draw(spare, d), 0, 0
    for first in range(start, stop, rows):
        wanted = min(first + rows, stop)
        last, cursor = _sample(columns, d, m, drawn, cursor, scratch, dims, first, wanted)
        # Continue only while the words suffice for records of the widest dimensions, because the end of a block must
        # not depend on which dimensions its records sampled.
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


MATRIX_GROUP = 256  # values in a group; with larger groups, all prefetches of a pass would coincide

# How many values ahead memory is prefetched; while the cipher fills the random words, memory would be idle.
_AHEAD = 512

_DOUBLES, _SINGLES = ir.VectorType(ir.DoubleType(), 8), ir.VectorType(ir.FloatType(), 8)


def _position(b: Any, value: Any, low: Any, scale: Any, bottom: Any, top: Any, default: Any) -> Any:
    """Emit eight positions. Bottom, top and default already contain half a unit, so that truncation rounds."""
    x = b.fmul(b.fsub(value, low), scale, flags=("contract",))
    x = b.fadd(x, bottom, flags=("contract",))
    x = b.select(b.fcmp_ordered(">", x, bottom), x, bottom)
    x = b.select(b.fcmp_ordered("<", x, top), x, top)
    x = b.select(b.fcmp_ordered("ord", value, value), x, default)
    return b.fptoui(x, ir.VectorType(I32, 8))


def _pointer(single: bool, alike: bool) -> Any:
    """The intrinsic of the first pass, for values in double or single precision.

    With `alike` all dimensions have the same range, and its five numbers are loaded once and kept in registers.
    """
    item = 4 if single else 8

    @emits(types.void(*[types.uint64] * 9))
    def point(
        b: Any,
        values: Any,
        n: Any,
        ranges: Any,
        stride: Any,
        words: Any,
        halves: Any,
        bits: Any,
        out: Any,
        cells: Any,
    ) -> None:
        e = Emitter(b)
        mask = e.low_bits(bits)
        rest, shift = b.not_(mask), e.splat(b.sub(ir.Constant(I64, 16), bits))
        places = [b.add(ranges, b.mul(stride, ir.Constant(I64, 8 * k))) for k in range(5)]
        held = [e.load(place, _DOUBLES) for place in places] if alike else []

        def step(index: Any) -> None:
            at_value, at_out = e.at(values, index, item), e.at(out, index, 3)
            for line in range(WIDTH * item // 64):
                emit_prefetch(b, b.add(at_value, ir.Constant(I64, item * _AHEAD + 64 * line)), write=0)
            emit_prefetch(b, b.add(at_out, ir.Constant(I64, 3 * _AHEAD)), write=1)
            positions = []
            for half in range(2):
                if single:
                    value = b.fpext(e.load(at_value, _SINGLES, 32 * half), _DOUBLES)
                else:
                    value = e.load(at_value, _DOUBLES, 64 * half)
                five = held or [e.load(e.at(place, index, 8), _DOUBLES, 64 * half) for place in places]
                positions.append(_position(b, value, *five))
            position = e.shuffle(positions[0], positions[1], list(range(WIDTH)))
            word = e.load(e.at(words, index, 4), WORDS)
            half_word = b.zext(e.load(e.at(halves, index, 2), HALVES), WORDS)
            row = b.and_(b.lshr(b.add(position, half_word), shift), rest)
            e.store(b.or_(row, b.and_(word, mask)), e.at(cells, index, 4))

        e.walk(n, step)

    return point


_point_doubles, _point_singles = _pointer(single=False, alike=False), _pointer(single=True, alike=False)
_point_alike_doubles, _point_alike_singles = (
    _pointer(single=False, alike=True),
    _pointer(single=True, alike=True),
)


@kernel()
def encode_rows(values, ranges, dims, words, halves, table, bits, out):  # type: ignore[no-untyped-def]
    """Write the reports of a C-ordered matrix `values` [n, d], d >= WIDTH, to the flat bytes `out`.

    `words` and `halves` hold n·d random words of 32 and of 16 bits. `dims` and `ranges` are those of `matrix_layout`.
    The last vector of sixteen values may overlap the vector before it: the overlapping values are computed twice from
    the same words, with the same result.
    """
    n, d = values.shape
    total = n * d
    alike = ranges.shape[1] == WIDTH
    cells = np.empty(MATRIX_GROUP + WIDTH, np.uint32)
    item = values.itemsize
    start = 0
    while start < total:
        # The last group takes up to WIDTH values more than MATRIX_GROUP, so that no group is shorter than one vector.
        size = MATRIX_GROUP if total - start >= MATRIX_GROUP + WIDTH else total - start
        column = start % d
        at_values, at_words = values.ctypes.data + item * start, words.ctypes.data + 4 * start
        at_halves, at_out = halves.ctypes.data + 2 * start, out.ctypes.data + 3 * start
        at_ranges, at_cells = ranges.ctypes.data + (0 if alike else 8 * column), cells.ctypes.data
        place = at_values, size, at_ranges, ranges.shape[1], at_words, at_halves, bits, at_out, at_cells
        if alike and item == 4:
            _point_alike_singles(*place)
        elif alike:
            _point_alike_doubles(*place)
        elif item == 4:
            _point_singles(*place)
        else:
            _point_doubles(*place)
        finish_many(size, at_cells, dims.ctypes.data + 2 * column, at_words, table.ctypes.data, bits, at_out)
        start += size
    cells[0] = 0  # keeps the array alive until here, because the loop above uses only its address
