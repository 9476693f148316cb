"""Subsets as outputs: which there are, which are heavy, what they count; and the draws behind them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb
from typing import Any

import pytest

from hdr4me.channels.channel import Field, SystemDraws, below
from hdr4me.channels.subset import Subset
from hdr4me.errors import FormatError, InvalidInput


@pytest.mark.parametrize(("v", "w"), [(2, 1), (5, 1), (5, 2), (6, 3), (7, 6)])
def test_counting_sets(v: int, w: int) -> None:
    family = Subset(v, w)
    outputs = list(combinations(range(v), w))
    assert family.n_outputs == len(outputs) == len(list(family.outputs()))
    for x in range(v):
        assert sum(family.is_heavy(x, output) for output in outputs) == family.n_heavy == comb(v - 1, w - 1)
    assert all(family.is_output(output) for output in outputs)
    assert all(list(family.counters(output)) == list(output) for output in outputs)


@pytest.mark.parametrize("output", [(1, 1), (2, 1), (0, 0), (3, 2)])
def test_a_set_is_sent_in_increasing_order(output: tuple[int, ...]) -> None:
    assert not Subset(4, 2).is_output(output)


@pytest.mark.parametrize(("v", "size"), [(2, 1), (256, 1), (257, 2), (65536, 2), (65537, 4), (1 << 20, 4)])
def test_bytes_of_a_field(v: int, size: int) -> None:
    assert [field.size for field in Subset(v, 1).fields] == [size]
    assert Field(v).size == size


@pytest.mark.parametrize(
    ("v", "w", "message"),
    [
        (1, 1, "size = 1 is not allowed"),
        ((1 << 20) + 1, 1, "size = 1048577"),
        (3.0, 1, r"size = 3\.0"),
        (True, 1, "size = True"),
        (3, 0, "chosen = 0 is not allowed: an integer from 1 to 2"),
        (3, 3, "chosen = 3"),
        (3, 1.0, r"chosen = 1\.0"),
    ],
)
def test_sizes_that_make_no_sense(v: Any, w: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Subset(v, w)


def test_documents() -> None:
    assert Subset.from_dict(Subset(5, 2).to_dict()) == Subset(5, 2)
    for document in ({}, {"size": 5}, {"size": 5, "chosen": "2"}, {"size": 5, "chosen": 2, "more": 0}):
        with pytest.raises(FormatError):
            Subset.from_dict(document)


class Words:
    """Draws from given words, which records how many bits were requested."""

    def __init__(self, words: list[int]) -> None:
        self.words: Iterator[int] = iter(words)
        self.asked: list[int] = []

    def bits(self, n: int) -> int:
        self.asked.append(n)
        return next(self.words)

    def below(self, n: int) -> int:
        return below(self, n)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 256, 1000, (1 << 32) - 1, 1 << 32])
def test_below_is_uniform(n: int) -> None:
    """A word at or above the largest multiple of n is drawn anew; every remainder has as many words below it."""
    limit = (1 << 32) // n * n
    assert Words([0]).below(n) == 0
    assert Words([limit - 1]).below(n) == n - 1
    if limit < 1 << 32:
        words = Words([limit, (1 << 32) - 1, 1])
        assert (words.below(n), words.asked) == (1 % n, [32, 32, 32])


def test_below_uses_longer_words_for_larger_numbers() -> None:
    """2^64 = (2^32 + 1)(2^32 − 1) + 1: only the last word of 64 bits is drawn anew."""
    words = Words([(1 << 64) - 1, 5])
    assert (words.below((1 << 32) + 1), words.asked) == (5, [64, 64])
    assert Words([(1 << 64) - 2]).below((1 << 32) + 1) == 1 << 32


def test_the_system_draws_stay_below() -> None:
    draws = SystemDraws()
    assert {draws.below(3) for _ in range(400)} == {0, 1, 2}  # one is missing once in 10^70 runs
    assert all(0 <= draws.bits(5) < 32 for _ in range(100))


def test_the_draws_do_not_depend_on_the_category() -> None:
    """Whatever x is and whether the output is heavy: as many draws, below the same bounds."""

    class Noting:
        def __init__(self) -> None:
            self.bounds: list[int] = []

        def bits(self, n: int) -> int:
            raise AssertionError("a family draws bounded numbers only")

        def below(self, n: int) -> int:
            self.bounds.append(n)
            return n - 1

    logs = set()
    for x in range(9):
        for heavy in (False, True):
            draws = Noting()
            output = Subset(9, 4).draw(x, heavy, draws)
            assert (x in output) == heavy
            assert Subset(9, 4).is_output(output)
            logs.add(tuple(draws.bounds))
    assert logs == {(5, 6, 7, 8, 4)}
