"""The k-subset response: one fraction proves the privacy of a family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

import mpmath
import pytest
from category_laws import grr

from hdr4me.channels import KSubset, channel_from_dict
from hdr4me.channels.k_subset import heaviest
from hdr4me.channels.proof import exp_lower
from hdr4me.channels.subset import Subset
from hdr4me.errors import FormatError, InvalidInput
from hdr4me.mechanisms.categorical import response, subset_selection

ONE = 1 << 32
SMALL = [(v, w) for v in range(2, 7) for w in range(1, v)]


def channel_of(v: int, w: int, epsilon: float = 1.0) -> KSubset:
    family = Subset(v, w)
    return KSubset("subset", epsilon, family, heaviest(epsilon, family))


@pytest.mark.parametrize(("v", "w"), SMALL)
def test_the_proof_by_enumeration(v: int, w: int, prove: Callable[..., None]) -> None:
    prove(channel_of(v, w))


@pytest.mark.no_cover
@pytest.mark.parametrize(("v", "w"), SMALL)
def test_the_sampler_is_exact(v: int, w: int, exact_law: Callable[..., Any]) -> None:
    """Every path of draws, of every input: Floyd's subset, the place that is given up, and the heavy word."""
    channel = channel_of(v, w)
    for x in range(v):
        law = exact_law(channel, x, [channel.weight])
        assert law == {output: channel.probability(x, output) for output in combinations(range(v), w)}


@pytest.mark.parametrize(("v", "w"), SMALL)
def test_shares_and_decoding_are_exact(v: int, w: int) -> None:
    """P(c in the report) by summing over every set; the decoded indicator has mean 1 or 0, its variance is right."""
    channel = channel_of(v, w)
    p, q = channel.family.shares(Fraction(channel.weight, ONE))
    for x in range(v):
        for c in range(v):
            share = sum(channel.probability(x, y) for y in combinations(range(v), w) if c in y)
            assert share == (p if c == x else q)
    assert channel.shares == (float(p), float(q))
    equal, other = (1 - q) / (p - q), -q / (p - q)
    assert channel.decode == (float(equal), float(other))
    for share, mean, variance in (
        (q, 0, channel.response.marginal().moments([0.0, 1.0]).variance([1.0])[0]),
        (p, 1, channel.response.marginal().moments([0.0, 1.0]).variance([1.0])[1]),
    ):
        assert share * equal + (1 - share) * other == mean
        assert variance == pytest.approx(float(share * equal**2 + (1 - share) * other**2 - mean), rel=1e-12)


@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1.0, 3.0, 10.0])
@pytest.mark.parametrize(("v", "w"), [(2, 1), (10, 3), (24, 3), (100, 27), (1000, 269), (5000, 1)])
def test_the_heaviest_weight_is_the_last_that_is_proven(v: int, w: int, epsilon: float) -> None:
    """One unit more and the loss exceeds the rational bound; e^epsilon itself, by mpmath, is never exceeded."""
    channel = channel_of(v, w, epsilon)
    with mpmath.workdps(60):
        assert mpmath.mpf(
            channel.likelihood_ratio.numerator
        ) / channel.likelihood_ratio.denominator <= mpmath.exp(epsilon)
    assert channel.likelihood_ratio <= exp_lower(epsilon)
    if channel.weight < ONE - 1:
        with pytest.raises(InvalidInput, match="leaks a factor of"):
            replace(channel, weight=channel.weight + 1)


def test_the_loss_is_one_fraction() -> None:
    channel = channel_of(10, 3)
    heavy, light = comb(9, 2), comb(9, 3)
    assert channel.likelihood_ratio == Fraction(channel.weight * light, (ONE - channel.weight) * heavy)


@pytest.mark.parametrize(
    ("epsilon", "v", "expected"), [(1.0, 10, 29.104), (2.0, 24, 15.013), (1.0, 100, 359.95)]
)
def test_the_error_of_subset_selection(epsilon: float, v: int, expected: float) -> None:
    """n·E‖f̂ − f‖², from the channel's own shares, and from its variances for any true frequencies."""
    channel = subset_selection(epsilon, v)
    p, q = channel.shares
    total = ((v - 1) * q * (1 - q) + p * (1 - p)) / (p - q) ** 2
    assert total == pytest.approx(expected, rel=2e-5)
    absent, present = channel.response.marginal().moments([0.0, 1.0]).variance([1.0])
    assert (v - 1) * absent + present == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("v", [2, 3, 4, 7, 256])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_sets_of_one_are_the_table_of_randomised_response(v: int, epsilon: float) -> None:
    """The same integers as the table that is designed for it, so compiled kernels serve it."""
    channel, table = response(epsilon, v), grr(epsilon, v)
    assert channel.rows == tuple(map(tuple, table.weights.tolist()))
    assert table.channel() == channel
    assert channel.likelihood_ratio == table.likelihood_ratio
    assert channel.decode == pytest.approx(tuple(table.decode))
    for x in range(min(v, 3)):
        for y in range(min(v, 3)):
            assert channel.probability(x, (y,)) == Fraction(int(table.weights[x, y]), ONE)


def test_more_categories_than_a_byte_holds() -> None:
    channel = response(6.0, 1000)
    assert channel.rows is None
    assert (channel.wire_size, channel.n_counters, channel.per_report) == (2, 1000, 1)
    assert channel.probability(3, (3,)) > 400 * channel.probability(3, (4,))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": 0}, "weight = 0 is not allowed"),
        ({"weight": ONE}, "weight = 4294967296 is not allowed"),
        ({"weight": -1}, "weight = -1"),
        ({"weight": 3.0}, "weight = 3.0"),
        ({"weight": True}, "weight = True"),
        ({"weight": ONE // 2}, "leaks a factor of 2.33"),
        ({"weight": 3 * ONE // 10}, "not more likely than the others"),
        ({"weight": 1}, "not more likely than the others"),
        ({"epsilon": 0.5}, "leaks a factor of"),
        ({"epsilon": 0.0}, "positive and finite"),
        ({"mechanism": ""}, "printable"),
    ],
)
def test_broken_promises(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        replace(channel_of(10, 3, 0.8), **change)


@pytest.mark.parametrize(("v", "w"), [(2, 1), (10, 3), (1000, 269)])
def test_through_a_document(v: int, w: int) -> None:
    channel = channel_of(v, w)
    again = channel_from_dict(channel.to_dict())
    assert again == channel
    assert again.to_dict() == channel.to_dict()
    assert again.likelihood_ratio == channel.likelihood_ratio


@pytest.mark.parametrize(
    "change",
    [
        {"more": 1},
        {"weight": 2.5},
        {"weight": "3"},
        {"family": "subset"},
        {"family": {}},
        {"family": {"name": 3}},
        {"family": {"name": "cube"}},
        {"family": {"name": "subset", "size": 10}},
        {"family": {"name": "subset", "size": 10, "chosen": 3, "more": 1}},
        {"family": {"name": "subset", "size": 10.0, "chosen": 3}},
        {"mechanism": None},
        {"epsilon": [1]},
    ],
)
def test_documents_of_the_wrong_types(change: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        channel_from_dict({**channel_of(10, 3).to_dict(), **change})


def test_a_tampered_weight_is_refused() -> None:
    document = channel_of(10, 3).to_dict()
    with pytest.raises(InvalidInput, match="leaks"):
        channel_from_dict({**document, "weight": document["weight"] + 1})
    with pytest.raises(InvalidInput, match="leaks"):  # the same weight on smaller sets is a larger loss
        channel_from_dict({**document, "family": {"name": "subset", "size": 10, "chosen": 2}})


def test_a_budget_that_32_bits_cannot_express_is_refused() -> None:
    """If W is at most that of a uniform draw, reports have no information, or decoding divides by zero."""
    with pytest.raises(InvalidInput, match=r"not more likely|cannot express"):
        subset_selection(1e-12, 10)
    with pytest.raises(InvalidInput, match="cannot express"):
        response(1e-12, 10)
