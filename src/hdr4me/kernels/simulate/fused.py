"""Simulated collections with continuous mechanisms: values are drawn, perturbed and summed without being stored.

The users are divided into chunks of fixed size. Each chunk has its own generator and its own partial sums, and the
partial sums are added in the order of the chunks: the result has the same bits on any number of threads. Inside a
chunk, groups of values pass through the stages while they are in the first-level cache.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdr4me.kernels.exact.positions import TOGETHER, ask
from hdr4me.kernels.exact.subset import SLACK, below, bitmap, unsorted_subsets, words_needed
from hdr4me.kernels.machine.jit import kernel
from hdr4me.kernels.machine.threads import share
from hdr4me.kernels.simulate.accumulate import WIDTH, column_sums, scatter_sums, sum_two_intervals, unfold
from hdr4me.kernels.simulate.draws import STEPS, TWO_INTERVALS, draw
from hdr4me.kernels.simulate.generator import LANES, fill, seed_lanes

Floats = NDArray[np.float64]

_GROUP = 2048
_CHUNK = 1 << 18
"""Values in a chunk: enough of them that seeding costs little, few enough to divide the work among threads."""


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
    few = max(1, TOGETHER // m)
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
                ask(address, stride, values.itemsize, dims, at, m, r, r + done)
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
    n_sampled: int,
    seed: int,
    threads: int = 1,
) -> tuple[Floats, Floats, Floats]:
    """Sums, sums of squares and numbers of reports per dimension of a simulated collection."""
    n, d = values.shape
    values = np.ascontiguousarray(values)
    rows = max(1, _CHUNK // n_sampled)
    dense = n_sampled == d
    total = np.zeros((2, d) if dense else (d, 4))

    def work(first: int, last: int, partial: Floats) -> None:
        if dense:
            _dense(values, family, law, seed, rows, first, last, partial)
        else:
            _sampled(values, n_sampled, family, law, seed, rows, first, last, partial)

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
