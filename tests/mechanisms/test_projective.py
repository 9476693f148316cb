"""Which space is chosen, and how near it comes to the best that there is."""

from __future__ import annotations

import pytest

from hdr4me.channels import KSubset
from hdr4me.channels.k_subset import heaviest
from hdr4me.channels.oracles import best_space, oracle, projective, space_oracle
from hdr4me.channels.projective import MAX_POINTS, Projective, n_points
from hdr4me.channels.projective.field import is_order
from hdr4me.channels.subset import Subset
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.categorical import (
    categorical_choice,
    categorical_reason,
    subset_selection,
)


def total(channel: KSubset, v: int) -> float:
    absent, present = channel.response.marginal().moments([0.0, 1.0]).variance([1.0])
    return (v - 1) * absent + present


@pytest.mark.parametrize(
    ("epsilon", "v", "error"), [(1.0, 10, 29.104), (2.0, 24, 15.013), (1.0, 100, 359.95)]
)
def test_the_best_sets(epsilon: float, v: int, error: float) -> None:
    """n·Σ Var of subset selection, to the digits of the published table."""
    digits = len(str(error).partition(".")[2])
    assert round(total(subset_selection(epsilon, v), v), digits) == error


@pytest.mark.parametrize("v", [257, 300, 1000, 4043, 10_000, 65_536])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 1.5, 1.75, 2.0])
def test_nearly_as_good_as_the_best_sets(epsilon: float, v: int) -> None:
    """At most 1.3 % above subset selection, from 257 categories on and for budgets up to 2."""
    assert total(projective(epsilon, v), v) <= 1.013 * total(subset_selection(epsilon, v), v)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0, 5.0])
@pytest.mark.parametrize("v", [5, 30, 200, 1000])
def test_no_space_is_much_better(epsilon: float, v: int) -> None:
    """Every field below 300: no space of up to 32·v points has an error more than 0.5 % smaller."""
    chosen = space_oracle(epsilon, v, *best_space(epsilon, v)).total
    for q in filter(is_order, range(2, 300)):
        for t in range(2, 12):
            if v <= n_points(q, t) <= 32 * v:
                assert chosen <= 1.005 * space_oracle(epsilon, v, q, t).total


def test_the_oracle_is_the_space() -> None:
    assert oracle("projective", 1.0, 4043).total == space_oracle(1.0, 4043, 4, 7).total


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 4.0, 8.0])
def test_the_choice(epsilon: float) -> None:
    """Short reports: least error. Long ones: one number, unless its error is more than 1.2 times as large."""
    for v in (2, 10, 50, 80, 100, 180, 257, 1000, 4043, 65_536):
        best = subset_selection(epsilon, v)
        name = categorical_choice(epsilon, v)
        if best.wire_size <= 64:
            assert name == ("grr" if best.per_report == 1 else "subset")
        else:
            near = total(projective(epsilon, v), v) <= 1.2 * total(best, v)
            assert name == ("projective" if near else "subset")


def test_a_projective_report_with_a_much_larger_error_is_not_used() -> None:
    """At ε = 6 the space for a million categories is too large: 1.225 times the error."""
    assert categorical_choice(6.0, 1_000_000) == "subset"
    assert categorical_choice(7.0, 1_000_000) == "projective"


def test_a_report_is_long_from_65_bytes_on() -> None:
    assert [subset_selection(0.5, v).wire_size for v in (166, 173)] == [63, 65]
    assert [categorical_choice(0.5, v) for v in (166, 173)] == ["subset", "projective"]


@pytest.mark.parametrize(("epsilon", "v", "smaller"), [(3.0, 257, (17, 3)), (3.5, 257, (27, 3))])
def test_the_smallest_space_within_three_tenths_of_a_per_cent_is_used(
    epsilon: float, v: int, smaller: tuple[int, int]
) -> None:
    """At ε = 3 a fifth fewer points cost between 0.2 and 0.3 %; at ε = 3.5 a seventh fewer between 0.3 and 0.45 %."""
    least = min(
        space_oracle(epsilon, v, *space).total
        for space in [(q, 3) for q in (16, 17, 19, 23, 25, 27, 29, 31, 32)]
    )
    error = space_oracle(epsilon, v, *smaller).total / least
    assert 1.002 < error < 1.0045
    assert (best_space(epsilon, v) == smaller) is (error < 1.003)


def test_the_reason() -> None:
    assert categorical_reason(1.0, 4) == "least expected error of all frequency oracles"
    assert (
        categorical_reason(1.0, 100) == "least expected error; a report is a set of 27 categories in 27 bytes"
    )
    assert (
        "2 bytes instead of the 69 numbers (138 bytes) of subset selection, with 1.005"
        in categorical_reason(1.0, 257)
    )


def test_two_categories_and_too_many() -> None:
    assert projective(1.0, 2).n_counters == 3
    for v in (1, MAX_POINTS):
        with pytest.raises(InvalidInput, match="category_count"):
            best_space(1.0, v)


def test_a_space_of_ones_own() -> None:
    """Any space may be used; a smaller loss than ε allows is the rounding of W alone."""
    family = Projective(100, 4, 5)
    channel = KSubset("projective", 1.0, family, heaviest(1.0, family))
    assert 0.999999 < float(channel.likelihood_ratio) / 2.718281828459045 <= 1
    assert Subset(100, 27).n_counters == 100
