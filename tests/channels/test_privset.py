"""Sets as inputs: the law by enumeration, exact draws, published numbers."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np
import pytest

from hdr4me.channels import KSubset, channel_from_dict
from hdr4me.channels.channel import below
from hdr4me.channels.k_subset import heaviest
from hdr4me.channels.k_subset_response import below_steps
from hdr4me.channels.privset import PrivSet, rank, unrank
from hdr4me.channels.privset.channel import selection_channel, total_error
from hdr4me.checks import check_channel
from hdr4me.errors import InvalidInput
from hdr4me.kernels.exact.secure import SecureDraws

SHAPES = [(4, 2, 2), (5, 1, 2), (5, 2, 1), (6, 3, 2), (4, 4, 3), (3, 1, 3)]


def channel(epsilon: float, family: PrivSet) -> KSubset:
    return KSubset("privset", epsilon, family, heaviest(epsilon, family))


@pytest.mark.parametrize(("n", "s"), [(4, 1), (6, 2), (7, 3), (8, 8)])
def test_ranks_number_the_sets(n: int, s: int) -> None:
    every = list(combinations(range(n), s))
    assert sorted(map(rank, every)) == list(range(comb(n, s)))
    assert all(unrank(rank(members), s, n) == members for members in every)


@pytest.mark.parametrize(("v", "s", "w"), SHAPES)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_law_by_enumeration(v: int, s: int, w: int, epsilon: float) -> None:
    check_channel(channel(epsilon, PrivSet(v, s, w)))


@pytest.mark.parametrize(("v", "s", "w"), SHAPES)
def test_the_shares_by_enumeration(v: int, s: int, w: int) -> None:
    """P(an item is in the output), and P(two items are), whether the user has them or not: exactly."""
    family = PrivSet(v, s, w)
    made = channel(1.0, family)
    p = Fraction(made.weight, 1 << 32)
    own, other = family.shares(p)
    some, none = family.pair_shares(p)
    law = {z: made.probability(0, z) for z in family.outputs()}
    has = set(family.members(0))
    for i in range(family.n_items):
        assert sum(share for z, share in law.items() if i in z) == (own if i in has else other)
    for i, j in combinations(range(family.n_items), 2):
        expected = some if {i, j} & has else none
        assert sum(share for z, share in law.items() if {i, j} <= set(z)) == expected


class Every:
    """Draws that go through all answers, one after the other."""

    def __init__(self, answers: tuple[int, ...]) -> None:
        self.answers = iter(answers)
        self.bounds: list[int] = []

    def bits(self, n: int) -> int:
        raise AssertionError("a family draws bounded numbers only")

    def below(self, n: int) -> int:
        self.bounds.append(n)
        return next(self.answers)


@pytest.mark.parametrize(("v", "s", "w"), [(4, 2, 2), (3, 2, 1), (3, 1, 2)])
def test_each_output_comes_from_as_many_draws(v: int, s: int, w: int) -> None:
    """All combinations of draws are tried: the heavy (light) outputs come out equally often, and no other."""
    family = PrivSet(v, s, w)
    bounds = [family.n_heavy, *(s - i for i in range(min(s, w))), *(v - i for i in range(w))]
    for x, heavy in product((0, 3), (True, False)):
        found: Counter[tuple[int, ...]] = Counter()
        for answers in product(*map(range, bounds)):
            draws = Every(answers)
            found[family.draw(x, heavy, draws)] += 1
            assert draws.bounds == bounds
        assert set(found) == {z for z in family.outputs() if family.is_heavy(x, z) == heavy}
        assert len(set(found.values())) == 1


def test_publishedword_values() -> None:
    """n·Σ Var = 1906.02 at ε = 1 for 5 of 100 items with outputs of 5, the best size."""
    assert round(total_error(1.0, PrivSet(95, 5, 5)), 2) == 1906.02
    family = selection_channel(1.0, 95, 5).family
    assert isinstance(family, PrivSet)
    assert family.chosen == 5


def test_many_users_at_once() -> None:
    """Every output as often as the exact law says: 7 sigma, false alarm 3e-12 for each of 84."""
    family = PrivSet(6, 3, 3)
    made = channel(1.0, family)
    n = 40_000
    for x in (0, rank((1, 4, 7)), rank((6, 7, 8))):
        outputs = made.response.sample(np.full(n, x), SecureDraws())
        found = Counter(map(tuple, outputs.tolist()))
        for z in family.outputs():
            share = float(made.probability(x, z))
            assert abs(found[z] - n * share) < 7 * (n * share * (1 - share)) ** 0.5


class Words:
    """Given words for many users, then bits for those that are not decided."""

    def __init__(self, words: list[int], bits: list[int]) -> None:
        self.given, self.more = words, iter(bits)

    def words(self, n: int) -> Any:
        return np.array(self.given, np.uint32)

    def bits(self, n: int) -> int:
        return next(self.more)


def test_numbers_below_any_bound_are_exact() -> None:
    """One in three: 2^32/3 = 1431655765.33…: the word of the end is decided by the next 32 bits."""
    cut = (1 << 32) // 3
    draws = Words([0, cut - 1, cut, cut, cut + 1], [cut - 1, cut + 1])
    assert below_steps((1, 3), draws, 5).tolist() == [0, 0, 0, 1, 1]  # type: ignore[arg-type]
    assert below_steps((7,), Words([5], []), 1).tolist() == [0]  # type: ignore[arg-type]


def test_long_words_for_large_bounds() -> None:
    """Above 2^64 an integer needs 128 bits."""
    asked = []

    class Source:
        def bits(self, n: int) -> int:
            asked.append(n)
            return (1 << 100) + 5

        def below(self, n: int) -> int:
            return below(self, n)

    assert Source().below(1 << 80) == 5
    assert asked == [128]


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (5, 6, 1), (5, 0, 1), (5, 2, 0), (5, 2, 6), (1000, 9, 5), ("5", 2, 2), (5, 2.0, 2)]
)
def test_what_is_no_shape(shape: tuple[Any, Any, Any]) -> None:
    with pytest.raises(InvalidInput, match="is not allowed"):
        PrivSet(*shape)


def test_a_tampered_document_is_refused() -> None:
    document = channel(1.0, PrivSet(4, 2, 2)).to_dict()
    assert channel_from_dict(document).to_dict() == document
    with pytest.raises(InvalidInput):
        channel_from_dict({**document, "weight": document["weight"] + 1})
