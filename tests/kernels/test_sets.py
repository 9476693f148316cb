"""Sets of subset selection: the kernels equal plain references, and all sets are equally likely, by enumeration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
import pytest

from hdr4me.kernels.exact.secure import SecureDraws
from hdr4me.kernels.exact.sets import (
    MOST,
    SETS_SLACK,
    coins,
    dense_sets,
    draws_expected,
    listed,
    listed_sets,
    members_of_bytes,
)


def category(half: int, d: int) -> int | None:
    """The category that 16 bits stand for; None if they would bias."""
    return half * d >> 16 if half * d % 2**16 >= 2**16 % d else None


def plain(
    planes: Sequence[int], c: int, halves: Sequence[int], width: int, v: int, x: int, heavy: bool
) -> tuple[list[int] | None, int]:
    """A set in plain Python from planes of d coins each, and how many numbers were used; None if they ran out."""
    d, mask = v - 1, 0
    for k, plane in enumerate(planes):
        mask = mask | plane if c >> k & 1 else mask & plane
    found = {k for k in range(d) if mask >> k & 1}
    used, last = 0, -1
    while len(found) != width or last < 0:
        if used == len(halves):
            return None, used
        drawn = category(halves[used], d)
        used += 1
        if drawn is None:
            continue
        if len(found) >= width:
            found.discard(drawn)
        else:
            last = drawn if drawn not in found and len(found) == width - 1 else -1
            found.add(drawn)
    if heavy:
        found.remove(last)
    others = [k if k != x else d for k in found]
    return sorted([*others, x] if heavy else others), used


def rows_of(planes: np.ndarray, v: int) -> list[int]:
    """The planes of one row as integers."""
    return [int.from_bytes(plane.tobytes(), "little") & ((1 << v - 1) - 1) for plane in planes]


@pytest.mark.parametrize(
    ("v", "w", "c", "b"),
    [
        (4, 2, 0, 0),
        (5, 2, 1, 1),
        (63, 17, 1, 2),
        (64, 17, 1, 2),
        (65, 17, 3, 3),
        (100, 27, 1, 2),
        (100, 27, 5, 4),
        (129, 40, 7, 5),
        (256, 97, 3, 3),
        (257, 60, 1, 2),
        (300, 81, 1, 2),
        (1000, 2, 0, 0),
        (4000, 1076, 1, 2),
        (MOST, 1700, 1, 5),
    ],
)
def test_the_kernel_is_the_plain_way(v: int, w: int, c: int, b: int) -> None:
    """Word for word, in rows from the seventh on, until the numbers run out; the rest is left as it was."""
    rng = np.random.default_rng(v + w + b)
    n, first, size = (60, 7, 1 if v <= 256 else 2) if v < 5000 else (9, 7, 2)
    inputs, heavy = rng.integers(0, v, n), rng.random(n) < 0.5
    inputs[first : first + 2] = v - 1, 0
    words = (v + 63) // 64
    planes = rng.integers(0, 2**64, (n - first, b, words), np.uint64)
    mean = draws_expected(v - 1, w, c, b)[0]
    halves = rng.integers(0, 2**16, int((n - first) * mean * 0.9) + 8, dtype=np.uint16)
    blank = 256**size - 1
    out = np.full(n * w + SETS_SLACK, blank, f"u{size}")
    done = dense_sets(planes, c, b, halves, w, v, inputs, heavy, members_of_bytes(size), out, first)
    at = 0
    for row in range(first, done):
        members, used = plain(
            rows_of(planes[row - first], v), c, halves[at:].tolist(), w, v, inputs[row], heavy[row]
        )
        at += used
        assert out[row * w : (row + 1) * w].tolist() == members
    assert done > first
    if done < n:
        ran_out = plain(
            rows_of(planes[done - first], v), c, halves[at:].tolist(), w, v, inputs[done], heavy[done]
        )
        assert ran_out == (None, halves.size - at)
    assert (out[: first * w] == blank).all()
    assert (out[done * w + SETS_SLACK :] == blank).all()


@pytest.mark.parametrize("d", [2, 3, 4, 99, 640, 3999, 40_000, 65_535])
def test_every_category_stands_for_as_many_numbers(d: int) -> None:
    """All 65,536 of them: no modulo bias."""
    numbers = np.arange(2**16, dtype=np.uint64) * np.uint64(d)
    kept = numbers[numbers % 2**16 >= 2**16 % d] >> np.uint64(16)
    assert (np.bincount(kept.astype(np.int64), minlength=d) == 2**16 // d).all()


@pytest.mark.parametrize(("v", "w", "c", "b", "length"), [(4, 2, 0, 0, 6), (5, 2, 1, 1, 5), (5, 3, 1, 2, 4)])
@pytest.mark.parametrize("heavy", [False, True])
def test_every_set_is_as_likely_by_enumeration(
    v: int, w: int, c: int, b: int, length: int, heavy: bool
) -> None:
    """All coins with all sequences of draws: each set is made as often, for each number of draws that it takes."""
    d = v - 1
    number = {k: next(h for h in range(2**16) if category(h, d) == k) for k in range(d)}
    flag, members = np.array([heavy]), members_of_bytes(1)
    allowed = [s for s in combinations(range(v), w) if (1 in s) == heavy]
    found: Counter[tuple[int, tuple[int, ...]]] = Counter()
    out = np.zeros(w + SETS_SLACK, np.uint8)
    for tossed in product(range(2**d), repeat=b):
        planes = np.array(tossed, np.uint64).reshape(1, b, 1)
        for drawn in product(range(d), repeat=length):
            halves = np.array([number[k] for k in drawn], np.uint16)
            x = np.array([1])
            if dense_sets(planes, c, b, halves, w, v, x, flag, members, out, 0):
                used = next(
                    k
                    for k in range(length + 1)
                    if plain(tossed, c, halves[:k].tolist(), w, v, 1, heavy)[0] is not None
                )
                found[used, tuple(out[:w].tolist())] += 1
    assert {s for _, s in found} == set(allowed)
    for used in {used for used, _ in found}:
        assert len({found[used, s] for s in allowed}) == 1, used


@pytest.mark.parametrize(("v", "w"), [(4, 2), (5, 2), (10, 3), (10, 4), (20, 2), (31, 3)])
def test_listed_sets_are_as_likely_by_enumeration(v: int, w: int) -> None:
    """Every entry of the list once: sets with the input equally often, others equally often, for every input."""
    entries = listed(v - 1, w)
    assert entries is not None
    words = np.array([-(-(k << 32) // entries.size) + 1 for k in range(entries.size)], np.uint32)
    for x in (0, v // 2, v - 1):
        for heavy in (False, True):
            out = np.zeros(words.size * w + SETS_SLACK, np.uint8)
            inputs, flags = np.full(words.size, x), np.full(words.size, heavy)
            assert listed_sets(words, entries, w, v, inputs, flags, members_of_bytes(1), out, 0) == words.size
            found = Counter(map(tuple, out[: words.size * w].reshape(-1, w).tolist()))
            assert set(found) == {s for s in combinations(range(v), w) if (x in s) == heavy}
            assert len(set(found.values())) == 1


def test_listed_sets_reject_the_words_that_would_bias_and_say_when_words_run_out() -> None:
    entries = listed(3, 2)
    assert entries is not None
    assert entries.size == 6  # 2^32 = 4 (mod 6): the words whose product has a low half below 4 are rejected
    words = np.array([0, 1, 2**31, 2**32 - 1], np.uint32)
    kept = [word for word in words.tolist() if word * 6 % 2**32 >= 4]
    inputs, flags = np.zeros(5, np.int64), np.zeros(5, np.bool_)
    out = np.zeros(5 * 2 + SETS_SLACK, np.uint8)
    done = listed_sets(words, entries, 2, 4, inputs, flags, members_of_bytes(1), out, 0)
    assert done == len(kept) == 2
    assert listed(40, 3) is None
    assert listed(19, 9) is None


@pytest.mark.parametrize(("v", "w"), [(10, 3), (100, 27), (300, 81)])
def test_inputs_do_not_decide_what_is_drawn(v: int, w: int) -> None:
    """The same words end with the same row, whatever the inputs and whether outputs are heavy."""
    rng = np.random.default_rng(v)
    n, size = 200, 1 if v <= 256 else 2
    c, b, mean, _ = coins(v - 1, w)
    planes = rng.integers(0, 2**64, (n, b, (v + 63) // 64), np.uint64)
    halves = rng.integers(0, 2**16, int(n * mean / 2), dtype=np.uint16)
    done = set()
    for x in (0, v // 3, v - 1):
        for heavy in (False, True):
            out = np.zeros(n * w + SETS_SLACK, f"u{size}")
            inputs, flags = np.full(n, x), np.full(n, heavy)
            done.add(dense_sets(planes, c, b, halves, w, v, inputs, flags, members_of_bytes(size), out, 0))
    assert len(done) == 1


@pytest.mark.parametrize("many", [(50, 13), (100, 38), (4000, 1076), (4000, 200)])
def test_the_predicted_number_of_draws_is_near_the_actual_one(many: tuple[int, int]) -> None:
    """Seeded; the mean of 300 sets within 15 % and one of the predicted number."""
    v, w = many
    c, b, mean, _ = coins(v - 1, w)
    rng = np.random.default_rng(w)
    used = []
    for _ in range(300 if v < 1000 else 20):
        planes = rng.integers(0, 2**64, (b, (v + 63) // 64), np.uint64)
        halves = rng.integers(0, 2**16, int(20 * mean) + 100).tolist()
        used.append(plain(rows_of(planes, v), c, halves, w, v, 0, False)[1])
    assert abs(np.mean(used) - mean) < 0.15 * mean + 1


@pytest.mark.parametrize(("v", "w"), [(10, 3), (40, 11), (300, 81)])
def test_many_sets_are_sorted_and_have_their_own_where_heavy(v: int, w: int) -> None:
    n = 20_000
    inputs, heavy = np.arange(n) % v, np.arange(n) % 3 == 0
    found = SecureDraws().sets(v, w, inputs, heavy).astype(np.int64)
    assert found.shape == (n, w)
    assert (np.diff(found, axis=1) > 0).all()
    assert found.min() >= 0
    assert found.max() < v
    assert ((found == inputs[:, None]).any(axis=1) == heavy).all()
