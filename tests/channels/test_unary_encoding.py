"""One small table for each entry of a one-hot vector: proof, sampler and decoding by enumeration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from category_laws import histogram, oue

from hdr4me.channels import Input, UnaryEncoding, channel_from_dict
from hdr4me.errors import FormatError, InvalidInput

ONE = 1 << 32
HALF = ONE // 2
ROWS = ((3 * ONE // 4, ONE // 4), (HALF, HALF))
THREE_CELLS = ((ONE // 2, ONE // 4, ONE // 4), (ONE // 4, ONE // 4, ONE // 2))


def bits(size: int = 3) -> UnaryEncoding:
    return UnaryEncoding("bits", 1.1, size, (-1.0, 3.0), ROWS)


def trits(size: int = 3) -> UnaryEncoding:
    """Three cells: the mean of 0 and of 1 through -1, 1/2, 2; a cell in the middle says nothing."""
    return UnaryEncoding("trits", 1.4, size, (-1.5, 0.5, 2.5), THREE_CELLS)


@pytest.fixture(params=[bits, trits], ids=["bits", "trits"])
def channel(request: pytest.FixtureRequest) -> UnaryEncoding:
    return request.param()  # type: ignore[no-any-return]


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("make", [bits, trits])
def test_the_proof_by_enumeration(
    make: Callable[[int], UnaryEncoding], size: int, prove: Callable[..., None]
) -> None:
    """All outputs of all inputs: the loss is a product of two ratios, and no larger one exists."""
    prove(make(size))


def test_the_sampler_follows_the_rows(channel: UnaryEncoding, exact_law: Callable[..., Any]) -> None:
    small = replace(channel, size=2)
    cuts = [ONE // 4, HALF, 3 * ONE // 4]
    for x in range(2):
        assert exact_law(small, x, cuts) == {y: small.probability(x, y) for y in small.outputs()}


def test_each_category_is_unbiased(channel: UnaryEncoding) -> None:
    """The mean of what entry k decodes to is 1 for k's own users and 0 for all others, in fractions."""
    for x in range(channel.size):
        for k in range(channel.size):
            mean = sum(
                channel.probability(x, output) * Fraction(channel.decode[output[k]])
                for output in channel.outputs()
            )
            assert mean == (x == k)


def test_variances_of_one_category(channel: UnaryEncoding) -> None:
    for present, found in enumerate(channel.response.marginal().moments([0.0, 1.0]).variance([1.0])):
        law = [Fraction(w, ONE) for w in channel.weights[present]]
        second = sum(p * Fraction(y) ** 2 for p, y in zip(law, channel.decode, strict=True))
        assert Fraction(found) == second - present


def test_counters_and_fields(channel: UnaryEncoding) -> None:
    cells = channel.n_cells
    assert channel.inputs == (Input("category", 3),)
    assert [field.bound for field in channel.fields] == [cells] * 3
    assert list(channel.counters((1, 0, 1))) == [1, cells, 2 * cells + 1]
    assert channel.wire_size == 3


def test_counts_of_different_numbers_of_reports_are_refused() -> None:
    assert bits().n_answers([3, 4, 5, 2, 0, 7]) == 7
    assert bits().n_answers([3, 4, 5, 2, 0, 8]) is None
    assert bits().n_answers([8, -1, 5, 2, 0, 7]) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 1.09}, "leaks a factor of 3, more than"),
        ({"size": 1}, "size = 1 must be 2 to 65536"),
        ({"size": 65537}, "size = 65537"),
        ({"size": 3.0}, "size = 3.0"),
        ({"size": True}, "size = True"),
        ({"decode": (-1.0,)}, "needs 2 finite values"),
        ({"decode": (0.0, 1.0)}, "is biased"),
        ({"weights": (ROWS[0],)}, "1 rows"),
        ({"weights": (*ROWS, ROWS[0])}, "3 rows"),
        ({"weights": ((ONE, 0), (HALF, HALF))}, "column 1 has smallest weight 0"),
        ({"weights": ((3 * ONE // 4 + 1, ONE // 4), (HALF, HALF))}, "sum to 2"),
        ({"mechanism": "\x1b"}, "printable"),
    ],
)
def test_broken_promises(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        replace(bits(), **change)


def test_an_entry_that_is_never_reported_decodes_to_nothing() -> None:
    rows = ((3 * ONE // 4, 0, ONE // 4), (HALF, 0, HALF))
    assert UnaryEncoding("gap", 1.1, 3, (-1.0, 0.0, 3.0), rows).likelihood_ratio == 3
    with pytest.raises(InvalidInput, match="an unused cell"):
        UnaryEncoding("gap", 1.1, 3, (-1.0, 1e9, 3.0), rows)


def test_through_a_document(channel: UnaryEncoding) -> None:
    again = channel_from_dict(channel.to_dict())
    assert again == channel
    assert again.to_dict() == channel.to_dict()


@pytest.mark.parametrize(
    "change",
    [{"more": 1}, {"size": "3"}, {"size": 3.0}, {"decode": 3}, {"weights": [[0.5]]}, {"epsilon": None}],
)
def test_documents_of_the_wrong_types(change: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        channel_from_dict({**bits().to_dict(), **change})


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_designed_unary_encodings_become_channels(epsilon: float) -> None:
    for table in (oue(epsilon), histogram(epsilon, "duchi")):
        channel = table.channel(5)
        assert isinstance(channel, UnaryEncoding)
        assert (channel.size, channel.likelihood_ratio) == (5, table.likelihood_ratio)
        assert channel.response.marginal().moments([0.0, 1.0]).variance([1.0]) == pytest.approx(
            tuple(table.variance([0.0, 1.0]))
        )
