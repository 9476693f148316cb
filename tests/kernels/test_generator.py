"""xoshiro256++ in lanes equals the published generator; chunks have streams of their own."""

from __future__ import annotations

import numpy as np
from scipy import stats

from hdr4me.kernels.simulate.generator import LANES, fill, seed_lanes

MASK = 2**64 - 1


def rotate(x: int, k: int) -> int:
    return ((x << k) | (x >> (64 - k))) & MASK


def xoshiro(s: list[int], n: int) -> list[int]:
    """The reference, in plain integers (Blackman and Vigna's C code)."""
    out = []
    for _ in range(n):
        out.append((rotate((s[0] + s[3]) & MASK, 23) + s[0]) & MASK)
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotate(s[3], 45)
    return out


def test_first_outputs_of_the_published_generator() -> None:
    state = np.tile(np.array([[1], [2], [3], [4]], np.uint64), (1, LANES))
    out = np.zeros(4 * LANES, np.uint64)
    fill(state, out)
    # From the state 1, 2, 3, 4: the values that other implementations publish as their test vector.
    assert out.reshape(4, LANES)[:, 0].tolist() == [41943041, 58720359, 3588806011781223, 3591011842654386]


def test_each_lane_is_a_generator_of_its_own() -> None:
    state = np.random.default_rng(1).integers(0, 2**64, (4, LANES), dtype=np.uint64)
    states = state.T.tolist()
    out = np.zeros((40, LANES), np.uint64)
    fill(state, out[:10].reshape(-1))
    fill(state, out[10:].reshape(-1))
    assert out.T.tolist() == [xoshiro(s, 40) for s in states]


def test_an_empty_buffer_moves_nothing() -> None:
    state = np.ones((4, LANES), np.uint64)
    fill(state, np.zeros(0, np.uint64))
    assert (state == 1).all()


def test_streams_differ_by_seed_and_chunk() -> None:
    seen = set()
    for seed in (0, 1, 2**63 - 1):
        for chunk in (0, 1, 2):
            state = np.zeros((4, LANES), np.uint64)
            seed_lanes(seed, chunk, state)
            seen.update(state.ravel().tolist())
    assert len(seen) == 9 * 4 * LANES


def test_bits_are_fair() -> None:
    # Chi-square of bytes over two chunks; seeded, threshold at 1e-6.
    out = np.zeros((2, 1 << 14), np.uint64)
    for chunk in (0, 1):
        state = np.zeros((4, LANES), np.uint64)
        seed_lanes(7, chunk, state)
        fill(state, out[chunk])
    assert stats.chisquare(np.bincount(out.view(np.uint8).ravel(), minlength=256)).pvalue > 1e-6
