"""Blocks of signs: the law by enumeration, exact draws, published numbers."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest

from hdr4me.channels import KSubset, channel_from_dict
from hdr4me.channels.agreement import Agreement
from hdr4me.channels.agreement.design import agreement_channel, block_sizes
from hdr4me.channels.k_subset import heaviest
from hdr4me.channels.proof import ONE
from hdr4me.checks import check_channel
from hdr4me.errors import FormatError, InvalidInput

SHAPES = [(2, 2), (3, 2), (3, 3), (4, 3), (5, 3), (5, 5)]


def channel(epsilon: float, family: Agreement) -> KSubset:
    return KSubset("agreement", epsilon, family, heaviest(epsilon, family))


@pytest.mark.parametrize(("b", "agreeing"), SHAPES)
@pytest.mark.parametrize("epsilon", [0.5, 6.0])
def test_every_promise_by_enumeration(prove, b: int, agreeing: int, epsilon: float) -> None:
    made = channel(epsilon, Agreement(b, agreeing))
    prove(made)
    check_channel(made)


@pytest.mark.parametrize(("b", "agreeing"), [(2, 2), (3, 2), (4, 3)])
def test_the_sampler_has_the_law(exact_law, b: int, agreeing: int) -> None:
    """Every branch of every draw: the law of `sample` is `probability`, fraction by fraction, for every input."""
    made = channel(2.0, Agreement(b, agreeing))
    for x in range(made.n_inputs):
        law = exact_law(made, x, [made.weight])
        assert law == {y: made.probability(x, y) for y in made.outputs()}


@pytest.mark.parametrize(("b", "agreeing"), [*SHAPES, (10, 7)])
def test_numbers_are_outputs_by_distance(b: int, agreeing: int) -> None:
    """Every number is one output, and the heavy outputs are the first k: a bounded draw is uniform inside."""
    family = Agreement(b, agreeing)
    places = [family.differing(number) for number in range(family.n_outputs)]
    assert sorted(places) == list(range(1 << b))
    assert [found.bit_count() for found in places] == sorted(found.bit_count() for found in places)
    assert all(family.is_heavy(0, (places[number],)) for number in range(family.n_heavy))
    assert not any(family.is_heavy(0, (found,)) for found in places[family.n_heavy :])


@pytest.mark.parametrize(("b", "agreeing"), SHAPES)
def test_the_contrast_by_enumeration(b: int, agreeing: int) -> None:
    """E[agree − disagree]/b over all outputs, and P(a reported sign is +1), for every input and place: exactly."""
    made = channel(3.0, Agreement(b, agreeing))
    family = made.family
    assert isinstance(family, Agreement)
    p = Fraction(made.weight, ONE)
    own, other = family.shares(p)
    for x in range(made.n_inputs):
        law = {y[0]: made.probability(x, y) for y in made.outputs()}
        agree = sum(share * (b - 2 * (x ^ y).bit_count()) for y, share in law.items()) / b
        assert agree == contrast(family, p)
        for place in range(b):
            plus = sum(share for y, share in law.items() if y >> place & 1)
            assert plus == (own if x >> place & 1 else other)


@pytest.mark.parametrize(
    ("epsilon", "b", "agreeing", "c"),
    [
        (2.0, 2, 2, 0.614979459),
        (4.0, 4, 4, 0.770108832),
        (8.0, 8, 8, 0.920888960),
        (8.0, 100, 64, 0.273179039),
    ],
)
def test_contrasts_to_nine_digits(epsilon: float, b: int, agreeing: int, c: float) -> None:
    made = agreement_channel(epsilon, b)
    assert made.family == Agreement(b, agreeing)
    assert round(made.response.contrast_c, 9) == c  # type: ignore[attr-defined]


def test_errors_of_a_hundred_numbers() -> None:
    """n·MSE = (d/b)/c² − E t² at the best b; 1/3 is the mean square of evenly spread numbers."""
    for epsilon, ones, even in ((4.0, 41.2, 41.8), (8.0, 12.4, 13.1)):
        best = min(
            100 / b * agreement_channel(epsilon, b).response.contrast_c ** -2  # type: ignore[attr-defined]
            for b in [*range(2, 65), 100]
        )
        assert round(best - 1, 1) == ones
        assert round(best - 1 / 3, 1) == even


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 5.0, 8.0, 16.0])
@pytest.mark.parametrize("b", [2, 3, 7, 16, 33, 64])
def test_the_best_number_of_agreeing_places(epsilon: float, b: int) -> None:
    """What the search finds is the best of all."""
    every = [channel_contrast(epsilon, Agreement(b, agreeing)) for agreeing in range(b // 2 + 1, b + 1)]
    found = agreement_channel(epsilon, b)
    assert found.response.contrast_c == float(max(every))  # type: ignore[attr-defined]


def contrast(family: Agreement, p: Fraction) -> Fraction:
    agree, differ = family.shares(p)
    return agree - differ


def channel_contrast(epsilon: float, family: Agreement) -> Fraction:
    return contrast(family, Fraction(heaviest(epsilon, family), ONE))


def test_formula_of_the_contrast_written_another_way() -> None:
    """c = p·h + (1 − p)·l with the mean agreement of heavy and of light outputs, for 64 signs at epsilon = 8."""
    made = agreement_channel(8.0, 64)
    family, p = made.family, Fraction(made.weight, ONE)
    assert isinstance(family, Agreement)
    ways = [comb(64, j) for j in range(65)]

    def mean(js: range) -> Fraction:
        return Fraction(sum(ways[j] * (2 * j - 64) for j in js), 64 * sum(ways[j] for j in js))

    c = p * mean(range(family.agreeing, 65)) + (1 - p) * mean(range(family.agreeing))
    assert contrast(family, p) == c


@pytest.mark.parametrize("b", [63, 64, 65, 100, 128, 300])
def test_fields_of_long_blocks(b: int) -> None:
    made = agreement_channel(8.0, b)
    family = made.family
    assert isinstance(family, Agreement)
    assert [field.bound for field in made.fields] == [1 << w for w in family.widths]
    assert sum(family.widths) == b
    assert len(made.fields) == -(-b // 64)
    block = int("10110" * b, 2) >> (4 * b)
    assert family.joined(family.split(block)) == block
    counters = list(family.counters(family.split(block)))
    assert counters == [2 * j + int(bit) for j, bit in enumerate(f"{block:0{b}b}")]
    check_channel(made)


def test_counts_that_no_reports_give() -> None:
    made = agreement_channel(4.0, 3)
    assert made.n_answers([1, 2, 0, 3, 3, 0]) == 3
    assert made.n_answers([1, 1, 0, 3, 3, 1]) is None
    assert made.n_answers([1, 2, 0, 3, 2, 0]) is None


def test_a_tampered_document_is_refused() -> None:
    document = agreement_channel(4.0, 8).to_dict()
    assert channel_from_dict(document).to_dict() == document
    with pytest.raises(InvalidInput, match="leaks a factor"):
        channel_from_dict({**document, "weight": document["weight"] + 1})
    with pytest.raises(InvalidInput, match="agreeing"):
        channel_from_dict({**document, "family": {"name": "agreement", "size": 8, "agreeing": 4}})
    with pytest.raises(InvalidInput, match="size"):
        channel_from_dict({**document, "family": {"name": "agreement", "size": 1025, "agreeing": 1000}})
    with pytest.raises(FormatError, match="agreement"):
        channel_from_dict({**document, "family": {"name": "agreement", "size": 8}})
    with pytest.raises(FormatError, match="must be an integer"):
        channel_from_dict({**document, "family": {"name": "agreement", "size": 8.0, "agreeing": 8}})


def test_sizes_are_even() -> None:
    for n in range(2, 300):
        for size in (2, 5, 64):
            found = block_sizes(n, size)
            assert sum(found) == n
            assert max(found) <= size
            assert max(found) - min(found) <= 1
    with pytest.raises(InvalidInput, match="size"):
        agreement_channel(1.0, 1)
