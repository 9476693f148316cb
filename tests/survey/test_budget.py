"""Shares of the budget are exact; see test_survey.py for what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hdr4me.channels import Table
from hdr4me.errors import InvalidInput
from hdr4me.survey import Numeric, Question, Schema, Survey
from hdr4me.survey.question import split_budget


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
    schema = Schema([Numeric(f"x{j}", 0, 1) for j in range(261)])
    tables = [Table(f"line {j}", 1.1, {"value": (-2.0, 2.0)}, exact) for j in range(261)]
    questions = [Question((j,), table) for j, table in enumerate(tables)]
    with pytest.raises(InvalidInput, match="66555 rows in all: at most 65536"):
        Survey.from_questions(schema, epsilon=1.1, sampled=1, questions=questions)
    shared = [Question((j,), tables[0]) for j in range(261)]
    assert Survey.from_questions(schema, epsilon=1.1, sampled=1, questions=shared)
