"""Shares of the budget are exact; see test_survey.py for what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdr4me.errors import InvalidInput
from hdr4me.survey import Numeric, Randomizer, Schema, Survey
from hdr4me.survey.budget import split_budget


@given(st.floats(1e-9, 5000.0), st.integers(1, 65536))
def test_the_budget_is_never_overspent(epsilon: float, m: int) -> None:
    share = split_budget(epsilon, m)
    assert m * Fraction(share) <= Fraction(epsilon)
    assert m * Fraction(math.nextafter(share, math.inf)) > Fraction(epsilon)


def test_the_rows_of_all_tables_are_bounded() -> None:
    """A client may lay the tables end to end and address a row with 16 bits: more would wrap into another table."""
    half = 1 << 31
    levels = [2 * i / 254 - 1 for i in range(255)]
    exact = tuple((half - round(level * half / 2), half + round(level * half / 2)) for level in levels)
    table = Randomizer("line", 1.1, "value", (-2.0, 2.0), exact)
    schema = Schema([Numeric("x", 0, 1)])
    with pytest.raises(InvalidInput, match="66555 rows in all: at most 65536"):
        Survey.from_tables(schema, epsilon=1.1, n_sampled=1, randomizers=(table,) * 261, assignment=(0,))
