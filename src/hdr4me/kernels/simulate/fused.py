"""Simulated collections with continuous mechanisms: values are drawn, perturbed and summed without being stored.

Users are divided into chunks of fixed size. Each has its own generator and partial sums, added in the order of the
chunks: the result has the same bits on any number of threads. Columns are added in the order of their rows, so the bits
do not depend on the width of the registers either.

A family of laws has plain numbers as parameters (`hdr4me.simulation.laws`); u is a word as a double in [1, 2).

- INTERVALS: a mixture of uniform intervals: t* = a + b·u + c·t with (a, b, c) of the interval that u falls in.
- TWO_INTERVALS: the same with two intervals of fixed weight, the form of Piecewise and Square wave.
- LAPLACE: t* = t ± λE with E = −log(2 − u) exponential, the sign the word's lowest bit.
- STEPS: t* = t ± (top or step); one word gives sign and step, a second one chooses between top and step and the point.

The compiler may only fuse multiplications and additions (`contract`): reassociation made the Laplace variance wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numpy.typing import NDArray

from hdr4me.kernels.exact.blocks import PREFETCHED, prefetch_values
from hdr4me.kernels.exact.sets import SLACK, below, bitmap, unsorted_subsets, words_needed
from hdr4me.kernels.machine.intrinsics import I32, I64, emit_loop, emits
from hdr4me.kernels.machine.jit import kernel
from hdr4me.kernels.machine.threads import share
from hdr4me.kernels.simulate.generator import LANES, fill, seed_lanes, to_unit

TWO_INTERVALS, INTERVALS, LAPLACE, STEPS = range(4)


@emits(types.int64(types.float64))
def _bits(b: Any, value: Any) -> Any:
    return b.bitcast(value, I64)


@emits(types.float64(types.int64))
def _double(b: Any, bits: Any) -> Any:
    return b.bitcast(bits, ir.DoubleType())


_ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
_LN2 = float(np.log(2.0))


# With a check for division by 0 the loops would not vectorize.
@njit(inline="always", fastmath={"contract"}, error_model="numpy")
def _minus_log(v):  # type: ignore[no-untyped-def]
    """-log(v) for normal v > 0, to 2 units in the last place; only arithmetic, so loops of it vectorize.

    v = m·2^k with m in [sqrt(1/2), sqrt(2)); log m = 2·artanh((m-1)/(m+1)) by its series to s^17.
    """
    bits = _bits(v)
    k = (bits - _ROOT_HALF) >> 52
    m = _double(bits - (k << 52))
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 2.0 / 17.0
    p = p * z + 2.0 / 15.0
    p = p * z + 2.0 / 13.0
    p = p * z + 2.0 / 11.0
    p = p * z + 2.0 / 9.0
    p = p * z + 2.0 / 7.0
    p = p * z + 2.0 / 5.0
    p = p * z + 2.0 / 3.0
    return -(k * _LN2 + (2.0 * s + s * z * p))


@kernel(fastmath={"contract"})
def _two_intervals(t, words, law, x):  # type: ignore[no-untyped-def]
    a0, b0, c0 = law[0, 0], law[0, 1], law[0, 2]
    a1, b1, c1 = law[1, 0], law[1, 1], law[1, 2]
    end = law[0, 3]
    for i in range(x.size):
        u = to_unit(words[i])
        first = u < end
        x[i] = (a0 if first else a1) + (c0 if first else c1) * t[i] + (b0 if first else b1) * u


@kernel(fastmath={"contract"})
def _intervals(t, words, law, x):  # type: ignore[no-untyped-def]
    last = law.shape[0] - 1
    for i in range(x.size):
        x[i] = law[last, 0] + law[last, 2] * t[i] + law[last, 1] * to_unit(words[i])
    for k in range(last - 1, -1, -1):
        a, b, c, end, tilt = law[k, 0], law[k, 1], law[k, 2], law[k, 3], law[k, 4]
        for i in range(x.size):
            u = to_unit(words[i])
            x[i] = a + c * t[i] + b * u if u < end + tilt * t[i] else x[i]


@kernel(fastmath={"contract"})
def _laplace(t, words, law, x):  # type: ignore[no-untyped-def]
    scale = law[0, 0]
    for i in range(x.size):
        word = words[i]
        size = scale * _minus_log(2.0 - to_unit(word))
        x[i] = t[i] + (size if word & np.uint64(1) else -size)


@kernel(fastmath={"contract"})
def _steps(t, words, law, x):  # type: ignore[no-untyped-def]
    rate, end = law[0, 0], law[0, 1]
    a0, b0, a1, b1, step = law[1, 0], law[1, 1], law[1, 2], law[1, 3], law[1, 4]
    places = words[x.size : 2 * x.size]
    for i in range(x.size):
        x[i] = np.floor(_minus_log(2.0 - to_unit(words[i])) * rate)
    for i in range(x.size):
        u = to_unit(places[i])
        size = a0 + b0 * u if u < end else a1 + b1 * u + step * x[i]
        x[i] = t[i] + (size if words[i] & np.uint64(1) else -size)


@kernel()
def draw(family, t, words, law, x):  # type: ignore[no-untyped-def]
    """Overwrite x with a perturbed value for each t, from its words."""
    if family == TWO_INTERVALS:
        _two_intervals(t, words, law, x)
    elif family == INTERVALS:
        _intervals(t, words, law, x)
    elif family == LAPLACE:
        _laplace(t, words, law, x)
    else:
        _steps(t, words, law, x)


WIDTH = 8  # columns at once

_WORDS, _DOUBLES = ir.VectorType(I64, WIDTH), ir.VectorType(ir.DoubleType(), WIDTH)
_SINGLES = ir.VectorType(ir.FloatType(), WIDTH)


def _sum_rows(b: Any, rows: Any, at_sums: Any, at_squares: Any, starts: Any, steps: Any, value: Any) -> None:
    """Add value(addresses) of each row, and its square, to eight sums and eight squares that stay in registers."""

    def place(address: Any) -> Any:
        return b.inttoptr(address, _DOUBLES.as_pointer())

    def row(index: Any, total: Any, square: Any, *addresses: Any) -> list[Any]:
        x = value(*addresses)
        square = b.fadd(square, b.fmul(x, x, flags=("contract",)), flags=("contract",))
        return [b.fadd(total, x), square, *map(b.add, addresses, steps)]

    first = [b.load(place(at), align=8, typ=_DOUBLES) for at in (at_sums, at_squares)]
    total, square, *_ = emit_loop(b, rows, 1, [*first, *starts], row)
    b.store(total, place(at_sums), align=8)
    b.store(square, place(at_squares), align=8)


@emits(types.void(*[types.uint64] * 5))
def _add_eight(b: Any, x: Any, rows: Any, stride: Any, sums: Any, squares: Any) -> None:
    """Add eight columns of x (addresses; stride in bytes between rows, at least one row) to sums and squares."""

    def value(address: Any) -> Any:
        return b.load(b.inttoptr(address, _DOUBLES.as_pointer()), align=8, typ=_DOUBLES)

    _sum_rows(b, rows, sums, squares, [x], [stride], value)


@kernel(fastmath={"contract"})
def column_sums(
    x: NDArray[np.float64], d: int, sums: NDArray[np.float64], squares: NDArray[np.float64]
) -> None:
    """Add the columns of x, flat rows of d, and their squares."""
    rows = x.size // d
    whole = d // WIDTH * WIDTH
    if rows > 0:
        for j in range(0, whole, WIDTH):
            to_sums, to_squares = sums.ctypes.data + 8 * j, squares.ctypes.data + 8 * j
            _add_eight(x.ctypes.data + 8 * j, rows, 8 * d, to_sums, to_squares)
    for j in range(whole, d):
        total, square = sums[j], squares[j]
        for r in range(rows):
            value = x[r * d + j]
            total += value
            square += value * value
        sums[j], squares[j] = total, square


@kernel(fastmath={"contract"})
def scatter_sums(x: NDArray[np.float64], dims: NDArray[np.uint16], into: NDArray[np.float64]) -> None:
    """Add values to their dimensions' (sum, square, count), interleaved as [d, 4] to share a cache line."""
    for i in range(x.size):
        j = np.uint64(dims[i])
        value = x[i]
        into[j, 0] += value
        into[j, 1] += value * value
        into[j, 2] += 1.0


def _eight(single: bool) -> Any:
    """The intrinsic for true values in doubles, or in singles: addresses, rows, columns, seven parameters."""

    @emits(types.void(*[types.uint64] * 6, *[types.float64] * 7))
    def add(b: Any, t: Any, words: Any, rows: Any, d: Any, sums: Any, squares: Any, *law: Any) -> None:
        def splat(value: Any) -> Any:
            undefined = ir.Constant(_DOUBLES, ir.Undefined)
            first = b.insert_element(undefined, value, ir.Constant(I32, 0))
            return b.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(I32, WIDTH), [0] * WIDTH))

        def load(address: Any, kind: Any, align: int) -> Any:
            return b.load(b.inttoptr(address, kind.as_pointer()), align=align, typ=kind)

        a0, b0, c0, a1, b1, c1, end = map(splat, law)

        def value(at_t: Any, at_words: Any) -> Any:
            true = b.fpext(load(at_t, _SINGLES, 4), _DOUBLES) if single else load(at_t, _DOUBLES, 8)
            fraction = b.lshr(load(at_words, _WORDS, 8), ir.Constant(_WORDS, [12] * WIDTH))
            u = b.bitcast(b.or_(fraction, ir.Constant(_WORDS, [0x3FF << 52] * WIDTH)), _DOUBLES)
            first = b.fcmp_ordered("<", u, end)
            level = b.fmul(b.select(first, c0, c1), true, flags=("contract",))
            level = b.fadd(b.select(first, a0, a1), level, flags=("contract",))
            return b.fadd(level, b.fmul(b.select(first, b0, b1), u, flags=("contract",)), flags=("contract",))

        steps = [b.mul(d, ir.Constant(I64, size)) for size in (4 if single else 8, 8)]
        _sum_rows(b, rows, sums, squares, [t, words], steps, value)

    return add


_add_doubles, _add_singles = _eight(single=False), _eight(single=True)


@kernel()
def sum_two_intervals(t, words, law, d, sums, squares):  # type: ignore[no-untyped-def]
    """Add the reports on flat rows t of d >= WIDTH columns to sums and squares, block by block of WIDTH columns.

    Both have space for complete blocks. The last block ends with the last column, so it may hold columns of the block
    before a second time: `unfold` leaves them out.
    """
    rows = t.size // d
    if rows == 0:
        return
    item = t.itemsize
    for block in range((d + WIDTH - 1) // WIDTH):
        j = min(block * WIDTH, d - WIDTH)
        at_t, at_words = t.ctypes.data + item * j, words.ctypes.data + 8 * j
        at_sums, at_squares = sums.ctypes.data + 8 * WIDTH * block, squares.ctypes.data + 8 * WIDTH * block
        a, b = law[0], law[1]
        place = at_t, at_words, rows, d, at_sums, at_squares, a[0], a[1], a[2], b[0], b[1], b[2], a[3]
        if item == 4:
            _add_singles(*place)
        else:
            _add_doubles(*place)


@kernel()
def unfold(blocks, out):  # type: ignore[no-untyped-def]
    """Copy d columns out of their blocks."""
    d = out.size
    for j in range(d):
        last = j >= (d - 1) // WIDTH * WIDTH
        out[j] = blocks[blocks.size - d + j if last else j]


Floats = NDArray[np.float64]

_GROUP = 2048
# Values in a chunk: enough of them that seeding costs little, few enough to divide the work among threads.
_CHUNK = 1 << 18


@kernel()
def _dense(values, family, law, seed, rows_per_chunk, first, last, partial):  # type: ignore[no-untyped-def]
    """Partial (sums, squares) of chunks [first, last), every dimension reported."""
    n, d = values.shape
    flat = values.reshape(n * d)
    rows = max(1, _GROUP // d)
    state = np.empty((4, LANES), np.uint64)
    n_words = rows * d * (2 if family == STEPS else 1)
    words = np.empty((n_words + LANES - 1) // LANES * LANES, np.uint64)
    x = np.empty(rows * d)
    data = np.uint64(values.ctypes.data)
    hot = family == TWO_INTERVALS and d >= WIDTH
    blocks = np.zeros((2, (d + WIDTH - 1) // WIDTH * WIDTH))
    for chunk in range(first, last):
        seed_lanes(seed, chunk, state)
        sums, squares = partial[chunk - first, 0], partial[chunk - first, 1]
        blocks[:] = 0.0
        stop = min((chunk + 1) * rows_per_chunk, n)
        for start in range(chunk * rows_per_chunk, stop, rows):
            end = min(start + rows, stop)
            fill(state, words, data + np.uint64(end * d * values.itemsize))
            if hot:
                sum_two_intervals(flat[start * d : end * d], words, law, d, blocks[0], blocks[1])
            else:
                part = x[: (end - start) * d]
                draw(family, flat[start * d : end * d], words, law, part)
                column_sums(part, d, sums, squares)
        if hot:
            unfold(blocks[0], sums)
            unfold(blocks[1], squares)


@kernel()
def _sampled(values, m, family, law, seed, rows_per_chunk, first, last, partial):  # type: ignore[no-untyped-def]
    """Partial [d, (sum, square, count, -)] of chunks [first, last), m of d dimensions sampled by each user."""
    n, d = values.shape
    rows = max(1, _GROUP // m)
    state = np.empty((4, LANES), np.uint64)
    n_words = rows * m * (2 if family == STEPS else 1)
    words = np.empty((n_words + LANES - 1) // LANES * LANES, np.uint64)
    # Two 32-bit words to one of 64.
    spare = np.empty((words_needed(d, m, rows) // 2 + LANES) // LANES * LANES, np.uint64)
    halves = spare.view(np.uint32)
    drawn = np.empty(halves.size, np.uint16)
    scratch = bitmap(d)
    dims = np.empty(rows * m + SLACK, np.uint16)
    t = np.empty(rows * m)
    x = np.empty(rows * m)
    address, stride = np.empty(1, np.uint64), np.empty(1, np.int64)
    address[0], stride[0] = values.ctypes.data, d * values.itemsize
    few = max(1, PREFETCHED // m)
    for chunk in range(first, last):
        seed_lanes(seed, chunk, state)
        into = partial[chunk - first]
        stop = min((chunk + 1) * rows_per_chunk, n)
        n_drawn = cursor = 0
        for start in range(chunk * rows_per_chunk, stop, rows):
            end = min(start + rows, stop)
            size = (end - start) * m
            fill(state, words)
            r = start
            while r < end:
                wanted, at = min(few, end - r), (r - start) * m
                done, cursor = unsorted_subsets(d, m, drawn[:n_drawn], cursor, scratch, dims, at, wanted)
                prefetch_values(address, stride, values.itemsize, dims, at, m, r, r + done)
                r += done
                if done < wanted:
                    fill(state, spare)
                    n_drawn, cursor = below(halves, d, drawn), 0
            for r in range(end - start):
                for s in range(r * m, (r + 1) * m):
                    t[s] = values[start + r, np.uint64(dims[s])]
            draw(family, t[:size], words, law, x[:size])
            scatter_sums(x[:size], dims[:size], into)


def accumulate(
    values: NDArray[np.floating],
    family: int,
    law: Floats,
    *,
    sampled: int,
    seed: int,
    threads: int = 1,
) -> tuple[Floats, Floats, Floats]:
    """Sums, sums of squares and numbers of reports per dimension of a simulated collection."""
    n, d = values.shape
    values = np.ascontiguousarray(values)
    rows = max(1, _CHUNK // sampled)
    dense = sampled == d
    total = np.zeros((2, d) if dense else (d, 4))

    def work(first: int, last: int, partial: Floats) -> None:
        if dense:
            _dense(values, family, law, seed, rows, first, last, partial)
        else:
            _sampled(values, sampled, family, law, seed, rows, first, last, partial)

    n_chunks = -(-n // rows)
    wave = 32 * threads  # bounds the partial sums held at once
    for first in range(0, n_chunks, wave):
        last = min(first + wave, n_chunks)
        partial = np.zeros((last - first, *total.shape))
        share(lambda a, b, p=partial, f=first: work(a, b, p[a - f : b - f]), first, last, threads)  # type: ignore[misc]
        for piece in partial:  # in the order of the chunks: the order of additions decides the last bits
            total += piece
    if dense:
        return total[0], total[1], np.full(d, float(n))
    return total[:, 0].copy(), total[:, 1].copy(), total[:, 2].copy()
