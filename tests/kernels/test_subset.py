"""Subsets: uniform over all C(d, m), sorted, exact bounded integers."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from hdr4me.kernels.subset import SLACK, bitmap, subset, unsorted_subset


def draw(d: int, m: int, words: np.ndarray) -> tuple[list[int], int]:
    out, loose = np.full(2 + m + SLACK + 2, 9999, np.uint16), np.zeros(m + 1, np.uint16)
    scratch = bitmap(d)
    cursor = subset(d, m, words, 0, scratch, out, 2)
    assert not scratch.any(), "the scratch is left clean for the next subset"
    assert (out[:2] == 9999).all()
    assert (out[-2:] == 9999).all()
    assert unsorted_subset(d, m, words, 0, scratch, loose, 1) == cursor
    assert not scratch.any()
    if cursor >= 0:
        assert sorted(loose[1:].tolist()) == out[2 : 2 + m].tolist()
    return out[2 : 2 + m].tolist(), cursor


def floyd(d: int, m: int, words: list[int]) -> tuple[list[int], int]:
    """The specification: Floyd's algorithm on integers drawn by Lemire's method, in plain Python."""
    chosen: set[int] = set()
    used = 0
    for top in range(d - m, d):
        bound = top + 1
        while True:
            product = words[used] * bound
            used += 1
            if product % 2**32 >= 2**32 % bound:
                break
        pick = product >> 32
        chosen.add(top if pick in chosen else pick)
    return sorted(chosen), used


@pytest.mark.parametrize(("d", "m"), [(1, 1), (2, 1), (10, 3), (64, 63), (65, 2), (5000, 50), (65536, 7)])
def test_equals_the_specification(d: int, m: int) -> None:
    rng = np.random.default_rng(d + m)
    for _ in range(20):
        words = rng.integers(0, 2**32, m + 9, dtype=np.uint32)
        assert draw(d, m, words) == floyd(d, m, words.tolist())


def test_rejects_the_words_that_would_bias() -> None:
    # Bound 3: 2^32 = 1 (mod 3), so exactly the word 0 (low half 0 < 1) is rejected.
    words = np.array([0, 0, 2**32 - 1, 5], np.uint32)
    assert draw(3, 1, words) == ([2], 3)


def test_says_when_words_run_out() -> None:
    assert draw(10, 3, np.array([5, 6], np.uint32))[1] == -1
    assert draw(3, 1, np.zeros(4, np.uint32))[1] == -1


def test_subsets_are_uniform() -> None:
    # Chi-square over the 120 subsets of 3 of 10; seeded, so no false alarm; the threshold is the 1e-6 one.
    index = {chosen: i for i, chosen in enumerate(combinations(range(10), 3))}
    words = np.random.default_rng(1).integers(0, 2**32, 100_000, dtype=np.uint32)
    counts = np.zeros(len(index), int)
    out, scratch, cursor = np.zeros(3 + SLACK, np.uint16), bitmap(10), 0
    for _ in range(30_000):
        cursor = subset(10, 3, words, cursor, scratch, out, 0)
        counts[index[tuple(out[:3].tolist())]] += 1
    assert stats.chisquare(counts).pvalue > 1e-6
