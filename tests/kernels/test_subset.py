"""Subsets: uniform over all C(d, m), sorted, exact bounded integers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from hdr4me.kernels.exact.sets import SLACK, below, bitmap, subsets, unsorted_subsets, words_needed


def draw(d: int, m: int, words: np.ndarray) -> tuple[list[int], int]:
    out, loose = np.full(2 + m + SLACK + 2, 9999, np.uint16), np.zeros(1 + m + SLACK, np.uint16)
    scratch = bitmap(d)
    drawn = np.empty(len(words), np.uint16)
    drawn = drawn[: below(words, d, drawn)]
    done, cursor = subsets(d, m, drawn, 0, scratch, out, 2, 1)
    assert not scratch.any(), "the scratch is left clean for the next subset"
    assert (out[:2] == 9999).all()
    assert (out[-2:] == 9999).all()
    assert unsorted_subsets(d, m, drawn, 0, scratch, loose, 1, 1) == (done, cursor)
    assert not scratch.any()
    if done:
        assert sorted(loose[1 : 1 + m].tolist()) == out[2 : 2 + m].tolist()
    return out[2 : 2 + m].tolist(), cursor if done else -1


def specification(d: int, m: int, words: list[int]) -> tuple[list[int], int]:
    """In plain Python: draw below d by Lemire's method until enough are different; above d / 2 those left out."""
    drawn = (word * d >> 32 for word in words if word * d % 2**32 >= 2**32 % d)
    marked: set[int] = set()
    used = 0
    while len(marked) < (d - m if 2 * m > d else m):
        marked.add(next(drawn))
        used += 1
    return sorted(set(range(d)) - marked if 2 * m > d else marked), used


@pytest.mark.parametrize(
    ("d", "m"),
    [
        (1, 1),
        (2, 1),
        (3, 2),
        (10, 3),
        (64, 63),
        (65, 2),
        (65, 64),
        (200, 100),
        (200, 101),
        (5000, 4990),
        (65536, 7),
    ],
)
def test_equals_the_specification(d: int, m: int) -> None:
    rng = np.random.default_rng(d + m)
    for _ in range(20):
        words = rng.integers(0, 2**32, words_needed(d, m, 1) + 50, dtype=np.uint32)
        assert draw(d, m, words) == specification(d, m, words.tolist())


@pytest.mark.no_cover
@pytest.mark.parametrize(("d", "m"), [(10, 3), (200, 100), (200, 150), (5000, 50), (3, 2)])
def test_the_predicted_number_of_words_suffices(d: int, m: int) -> None:
    """40 subsets, 500 times, seeded: four standard deviations fail about once in 30,000."""
    rng = np.random.default_rng(d * m)
    used = [
        sum(
            specification(d, m, rng.integers(0, 2**32, min(4 * d, 800), dtype=np.uint32).tolist())[1]
            for _ in range(40)
        )
        for _ in range(500 if d < 5000 else 20)
    ]
    assert max(used) <= words_needed(d, m, 40)


def test_rejects_the_words_that_would_bias() -> None:
    # Bound 3: 2^32 = 1 (mod 3), so exactly the word 0 (low half 0 < 1) is rejected.
    words = np.array([0, 0, 2**32 - 1, 5], np.uint32)
    drawn = np.zeros(4, np.uint16)
    assert below(words, 3, drawn) == 2
    assert drawn[:2].tolist() == [2, 0]
    assert draw(3, 1, words) == ([2], 1)


@pytest.mark.parametrize("bound", [1, 3, 640, 5000, 40_000, 65_535, 65_536])
def test_every_integer_stands_for_as_many_words(bound: int) -> None:
    """An integer's words lie together; the first few of them may stand for none, and as many are left for each."""
    for k in sorted({0, 1 % bound, bound // 2, bound - 1}):
        first, after = -(-k * 2**32 // bound), -(-(k + 1) * 2**32 // bound)
        small_sample = np.arange(first, min(first + 4, after), dtype=np.uint64).astype(np.uint32)
        ends = np.array([first, after - 1], np.uint64).astype(np.uint32)
        drawn = np.zeros(4, np.uint16)
        kept = below(small_sample, bound, drawn)
        assert (drawn[:kept] == k % 2**16).all()
        assert after - first - (len(small_sample) - kept) == 2**32 // bound
        n = below(ends, bound, drawn)
        assert drawn[n - 1] == k % 2**16


def test_says_when_words_run_out() -> None:
    assert draw(10, 3, np.array([5, 6], np.uint32))[1] == -1
    assert draw(3, 1, np.zeros(4, np.uint32))[1] == -1


@pytest.mark.no_cover
@pytest.mark.parametrize("m", [3, 5, 7])
def test_subsets_are_uniform(m: int) -> None:
    # Chi-square over all subsets of m of 10; seeded, so no false alarm; the threshold is the 1e-6 one.
    index = {chosen: i for i, chosen in enumerate(combinations(range(10), m))}
    words = np.random.default_rng(1).integers(0, 2**32, words_needed(10, m, 30_000), dtype=np.uint32)
    drawn = np.empty(len(words), np.uint16)
    drawn = drawn[: below(words, 10, drawn)]
    out = np.zeros(30_000 * m + SLACK, np.uint16)
    assert subsets(10, m, drawn, 0, bitmap(10), out, 0, 30_000)[0] == 30_000
    counts = np.zeros(len(index), int)
    for chosen in out[: 30_000 * m].reshape(-1, m).tolist():
        counts[index[tuple(chosen)]] += 1
    assert stats.chisquare(counts).pvalue > 1e-6
    loose = np.zeros_like(out)
    assert unsorted_subsets(10, m, drawn, 0, bitmap(10), loose, 0, 30_000)[0] == 30_000
    assert (np.sort(loose[: 30_000 * m].reshape(-1, m)).ravel() == out[: 30_000 * m]).all()


@pytest.mark.parametrize("draw_many", [subsets, unsorted_subsets])
@pytest.mark.parametrize("m", [3, 7])
def test_says_how_many_there_are_before_the_integers_run_out(draw_many: Callable[..., Any], m: int) -> None:
    drawn = np.arange(8, dtype=np.uint16)  # two whole subsets of three drawn or left out, and two integers
    out, scratch = np.zeros(3 * m + SLACK, np.uint16), bitmap(10)
    assert draw_many(10, m, drawn, 0, scratch, out, 0, 3)[0] == 2
    assert not scratch.any()
