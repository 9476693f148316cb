"""Shares of the budget are exact; see test_survey.py for what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from hdr4me.survey.budget import split_budget


@given(st.floats(1e-9, 5000.0), st.integers(1, 65536))
def test_the_budget_is_never_overspent(epsilon: float, m: int) -> None:
    share = split_budget(epsilon, m)
    assert m * Fraction(share) <= Fraction(epsilon)
    assert m * Fraction(math.nextafter(share, math.inf)) > Fraction(epsilon)
