"""Sorted ids against plain sets, with ids that are random, close together, and equal in their first half."""

from __future__ import annotations

import numpy as np
import pytest

from hdr4me.collector.stores.memory import IdSet
from hdr4me.kernels.exact.ids import mark_known, merge


def sorted_words(n: int, seed: int, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """n different ids whose halves have so many bits, sorted."""
    draw = np.random.default_rng(seed)
    pairs = {tuple(pair) for pair in draw.integers(0, 1 << bits, (n, 2), dtype=np.uint64).tolist()}
    found = np.array(sorted(pairs), np.uint64).reshape(-1, 2)
    return found[:, 0].copy(), found[:, 1].copy()


@pytest.mark.parametrize("bits", [2, 6, 63])
@pytest.mark.parametrize(("n", "m"), [(0, 0), (0, 5), (5, 0), (1, 1), (300, 7), (7, 300), (2000, 2000)])
def test_merging_and_searching(n: int, m: int, bits: int) -> None:
    a, b = sorted_words(n, 1, bits), sorted_words(m, 2, bits)
    both = np.zeros((2, len(a[0]) + len(b[0])), np.uint64)
    owner = np.zeros(both.shape[1], np.uint32)
    merge(*a, np.full(len(a[0]), 1, np.uint32), *b, np.full(len(b[0]), 2, np.uint32), *both, owner)
    for k, words in ((1, a), (2, b)):
        assert both[:, owner == k].tolist() == [part.tolist() for part in words]
    expected = sorted(
        [*zip(*map(np.ndarray.tolist, a), strict=True), *zip(*map(np.ndarray.tolist, b), strict=True)]
    )
    assert list(zip(*both.tolist(), strict=True)) == expected
    found = np.zeros(len(b[0]), bool)
    mark_known(*a, *b, found)
    there = set(zip(*map(np.ndarray.tolist, a), strict=True))
    assert found.tolist() == [pair in there for pair in zip(*map(np.ndarray.tolist, b), strict=True)]


@pytest.mark.parametrize("fill", [0, 8, 15], ids=["random", "equal first half", "one byte differs"])
def test_a_set_of_ids_is_a_set(fill: int) -> None:
    """Added in groups of any size, found in groups of any size, whatever the ids have in common."""
    draw = np.random.default_rng(3)
    plain: set[bytes] = set()
    ids = IdSet(recent=50)
    for n in (1, 40, 700, 3, 2000, 60, 600):
        raw = draw.integers(0, 256, (n, 16), dtype=np.uint8)
        raw[:, :fill] = 7
        asked = sorted({row.tobytes() for row in raw})
        known = ids.find(b"".join(asked))
        assert known.tolist() == [id in plain for id in asked]
        new = [id for id, old in zip(asked, known, strict=True) if not old]
        ids.add(b"".join(new))
        plain.update(new)
        assert ids.find(b"".join(asked)).all()
        assert len(ids) == len(plain)
