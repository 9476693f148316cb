"""Points of a projective space: the law by enumeration, exact draws, and what makes no space."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import pytest

from hdr4me.channels import KSubset, channel_from_dict
from hdr4me.channels.k_subset import heaviest
from hdr4me.channels.projective import MAX_POINTS, Projective, n_points
from hdr4me.channels.projective.field import MODULI, inverse, is_order, minus, tables, times
from hdr4me.checks import check_channel
from hdr4me.errors import FormatError, InvalidInput

SPACES = [(2, 2), (2, 3), (2, 5), (3, 2), (3, 3), (3, 4), (4, 2), (4, 3), (5, 3), (7, 2), (7, 3), (13, 2)]
SPACES += [(8, 2), (8, 3), (9, 2), (9, 3), (16, 2), (25, 2)]


def space(q: int, t: int) -> Projective:
    return Projective(n_points(q, t), q, t)


def channel(epsilon: float, family: Projective) -> KSubset:
    return KSubset("projective", epsilon, family, heaviest(epsilon, family))


class Given:
    """Draws with given answers to `below`, which notes the bounds."""

    def __init__(self, *answers: int) -> None:
        self.answers = iter(answers)
        self.bounds: list[int] = []

    def bits(self, n: int) -> int:
        raise AssertionError("a family draws bounded numbers only")

    def below(self, n: int) -> int:
        self.bounds.append(n)
        return next(self.answers)


@pytest.mark.parametrize("q", [2, 3, 4, 5, 7, 8, 9, 11, 16, 25, 27, 32])
def test_a_field_is_a_field(q: int) -> None:
    """All triples: products and differences obey the laws, and every number but 0 has an inverse."""
    numbers = range(q)
    for a, b, c in product(numbers, repeat=3):
        assert times(a, b, q) == times(b, a, q)
        assert times(a, times(b, c, q), q) == times(times(a, b, q), c, q)
        assert times(a, minus(b, c, q), q) == minus(times(a, b, q), times(a, c, q), q)
    assert all(times(a, inverse(a, q), q) == 1 for a in numbers if a)
    assert all({minus(a, b, q) for b in numbers} == set(numbers) for a in numbers)


def test_orders_of_fields() -> None:
    powers = [4, 8, 9, 16, 25, 27, 32, 49, 64, 81, 121, 125, 128, 169, 243, 256]
    primes = [q for q in range(2, 300) if all(q % k for k in range(2, q))]
    assert [q for q in range(300) if is_order(q)] == sorted(powers + primes)
    assert is_order(65537)
    assert not any(map(is_order, (0, 1, 6, 12, 289, 65536, 4093 * 4093)))


@pytest.mark.parametrize("q", [49, 64, 81, 121, 125, 128, 169, 243, 256])
def test_a_larger_field_is_a_field(q: int) -> None:
    """Every number but 0 is a power of one number, and products distribute over differences (2,000 seeded triples)."""
    products, differences, inverses = tables(q)
    assert any(len(_powers(g, q)) == q - 1 for g in range(1, q))
    assert all(products[a * q + inverses[a]] == 1 for a in range(1, q))
    rng = Random(q)
    for a, b, c in ([rng.randrange(q) for _ in range(3)] for _ in range(2000)):
        assert times(a, differences[b * q + c], q) == minus(times(a, b, q), times(a, c, q), q)
        assert times(a, times(b, c, q), q) == times(times(a, b, q), c, q)


def _powers(g: int, q: int) -> set[int]:
    found, x = {1}, g
    while x not in found:
        found.add(x)
        x = times(x, g, q)
    return found


def test_the_polynomials_are_the_smallest_irreducible_ones() -> None:
    """x² + x + 1, x³ + x + 1, x² + 1 over three numbers, and the polynomial of AES."""
    assert [MODULI[q] for q in (4, 8, 9)] == [(1, 1), (1, 1, 0), (1, 0)]
    assert MODULI[256] == (1, 1, 0, 1, 1, 0, 0, 0)
    assert times(0x53, 0xCA, 256) == 1  # FIPS 197


@pytest.mark.parametrize(("q", "t"), SPACES)
def test_points_and_vectors_are_the_same(q: int, t: int) -> None:
    """Each index is one point, all vectors are different, and no vector is a multiple of another."""
    family = space(q, t)
    vectors = [family.vector(i) for i in range(family.n_outputs)]
    assert len(set(vectors)) == family.n_outputs == (q**t - 1) // (q - 1)
    assert [family.index(vector) for vector in vectors] == list(range(family.n_outputs))
    assert all(next(filter(None, vector)) == 1 for vector in vectors)


@pytest.mark.parametrize(("q", "t"), SPACES)
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_the_law_by_enumeration(q: int, t: int, epsilon: float) -> None:
    """Probabilities that sum to 1, a proven loss, and draws independent of the input: for all inputs and outputs."""
    check_channel(channel(epsilon, space(q, t)))


@pytest.mark.parametrize(("q", "t"), SPACES)
def test_the_shares_by_enumeration(q: int, t: int) -> None:
    """P(the report is heavy for c) with category c and with every other one: the two fractions, exactly."""
    family = space(q, t)
    made = channel(1.0, family)
    own, other = family.shares(Fraction(made.weight, 1 << 32))
    inputs = range(min(family.size, 12))
    for x, c in product(inputs, repeat=2):
        found = sum(
            (made.probability(x, y) for y in made.outputs() if family.is_heavy(c, y)), start=Fraction(0)
        )
        assert found == (own if x == c else other)


@pytest.mark.parametrize(("q", "t"), [(2, 4), (3, 3), (4, 3), (5, 2), (5, 3), (7, 2), (8, 3), (9, 2)])
def test_each_point_comes_from_as_many_draws(q: int, t: int) -> None:
    """Every pair of draws, tried: each heavy (light) point of x comes out equally often, and no other."""
    family = space(q, t)
    for x in range(0, family.size, 3):
        heavy = {(y,) for y in range(family.n_outputs) if family.is_heavy(x, (y,))}
        assert len(heavy) == family.n_heavy
        from_heavy = [family.draw(x, True, Given(i, 0)) for i in range(family.n_heavy)]
        assert sorted(from_heavy) == sorted(heavy)
        from_light = [family.draw(x, False, Given(0, i)) for i in range(q ** (t - 1))]
        assert sorted(from_light) == sorted(set(family_outputs(family)) - heavy)


def family_outputs(family: Projective) -> list[tuple[int, ...]]:
    return [(y,) for y in range(family.n_outputs)]


def test_the_draws_do_not_depend_on_the_category() -> None:
    family = space(5, 3)
    logs = set()
    for x, heavy in product(range(family.size), (False, True)):
        draws = Given(3, 17)
        assert family.is_heavy(x, family.draw(x, heavy, draws)) == heavy
        logs.add(tuple(draws.bounds))
    assert logs == {(6, 25)}


def test_one_number_travels() -> None:
    """4,043 categories in two bytes; a million in four."""
    assert Projective(4043, 4, 7).fields[0].size == 2
    assert Projective(1_000_000, 4, 11).fields[0].size == 4
    assert len(Projective(1_000_000, 4, 11).fields) == 1


@pytest.mark.parametrize(
    ("size", "order", "length"),
    [
        (10, 6, 3),
        (10, 12, 3),
        (10, 289, 2),
        (10, 1, 3),
        (10, "3", 3),
        (10, MAX_POINTS + 1, 2),
        (10, 3, 1),
        (10, 2, 25),
        (10, 3.0, 3),
        (14, 3, 3),
        (1, 3, 3),
        (True, 3, 3),
    ],
)
def test_what_is_no_space(size: Any, order: Any, length: Any) -> None:
    with pytest.raises(InvalidInput, match="is not allowed"):
        Projective(size, order, length)


def test_a_tampered_document_is_refused() -> None:
    """One more in W than ε allows, a field that is none, a number as text, a field too many."""
    document = channel(1.0, space(3, 3)).to_dict()
    assert channel_from_dict(document).to_dict() == document
    for change in ({"weight": document["weight"] + 1}, {"family": {**document["family"], "order": 6}}):
        with pytest.raises(InvalidInput):
            channel_from_dict({**document, **change})
    for family in ({"order": "3"}, {"extra": 1}):
        with pytest.raises(FormatError):
            channel_from_dict({**document, "family": {**document["family"], **family}})


@pytest.mark.parametrize("q", [8, 9, 16, 27])
def test_a_document_carries_the_field_s_polynomial(q: int) -> None:
    """A client in another language needs nothing else; another polynomial, or none, is refused."""
    document = channel(1.0, Projective(q, q, 2)).to_dict()
    family = document["family"]
    assert family["modulus"] == list(MODULI[q])
    assert channel_from_dict(document).to_dict() == document
    other = [*family["modulus"][:-1], (family["modulus"][-1] + 1) % 2]
    without = {key: value for key, value in family.items() if key != "modulus"}
    for bad in ({**family, "modulus": other}, {**family, "modulus": "x"}, without):
        with pytest.raises(FormatError):
            channel_from_dict({**document, "family": bad})


@pytest.mark.parametrize("q", [3, 4, 13])
def test_documents_of_primes_and_of_four_are_as_before(q: int) -> None:
    document = channel(1.0, Projective(q, q, 2)).to_dict()
    assert set(document["family"]) == {"name", "size", "order", "length"}
    with pytest.raises(FormatError):
        channel_from_dict({**document, "family": {**document["family"], "modulus": [1, 1]}})
