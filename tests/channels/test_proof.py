from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdr4me.channels.proof import column_ratio, entries_ratio, exp_lower, log_upper
from hdr4me.errors import InvalidInput

EPSILONS = [0.0, 1e-300, 1e-9, 1e-3, 0.1, 0.5, 1.0, 2.0, 7.5, 30.0, 709.0, 710.0, 5000.0]


def _exp(epsilon: float | Fraction) -> mpmath.mpf:
    """e^ε with 400 digits, as the independent oracle."""
    exact = Fraction(epsilon)
    with mpmath.workdps(400):
        return mpmath.exp(mpmath.mpf(exact.numerator) / exact.denominator)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_bound_is_below_the_exponential_and_near_it(epsilon):
    with mpmath.workdps(400):
        true = _exp(epsilon)
        lower = exp_lower(epsilon)
        lower_mp = mpmath.mpf(lower.numerator) / lower.denominator
        assert lower_mp <= true
        assert true / lower_mp - 1 < mpmath.mpf(2) ** -100


@given(st.fractions(min_value=0, max_value=5000, max_denominator=10**9))
@settings(max_examples=60, deadline=None)
def test_any_fraction_is_bounded(epsilon):
    with mpmath.workdps(400):
        true = _exp(epsilon)
        lower = exp_lower(epsilon)
        found = mpmath.mpf(lower.numerator) / lower.denominator
        assert found <= true <= found * (1 + mpmath.mpf(2) ** -100)


def test_bounds_do_not_grow_without_limit():
    assert exp_lower(5000).numerator.bit_length() < 7300
    assert exp_lower(1e-300).denominator.bit_length() <= 161


@pytest.mark.parametrize("epsilon", [-1e-9, float("nan"), float("inf"), 1e9])
def test_refuses_what_is_no_budget(epsilon):
    with pytest.raises(InvalidInput, match="epsilon"):
        exp_lower(epsilon)


def test_column_loss_is_the_worst_column():
    assert column_ratio([[4, 1, 1], [2, 3, 1]]) == 3
    assert column_ratio([[4, 0], [4, 0]]) == 1


@pytest.mark.parametrize("rows", [[[1, 3], [0, 4]], [[-1, 5], [2, 2]]])
def test_column_loss_refuses_a_revealing_column(rows):
    with pytest.raises(InvalidInput, match="column 0"):
        column_ratio(rows)


def test_entries_loss_is_the_product_of_both_directions():
    # Entry a: absent -> present, entry b: present -> absent, enumerated over all pairs of reports.
    rows = [[5, 2, 1], [2, 2, 4]]
    brute = max(
        Fraction(rows[1][y] * rows[0][z], rows[0][y] * rows[1][z]) for y in range(3) for z in range(3)
    )
    assert entries_ratio(rows) == brute


def test_entries_loss_needs_two_rows():
    with pytest.raises(InvalidInput, match="2"):
        entries_ratio([[1, 1]])


@pytest.mark.parametrize(
    "ratio", [Fraction(1), 1 + Fraction(1, 10**12), Fraction(3), Fraction(10**9, 7), Fraction(10**2000)]
)
def test_log_upper_is_an_upper_bound_and_tight(ratio):
    x = log_upper(ratio)
    assert exp_lower(x) >= ratio
    with mpmath.workdps(50):
        true = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        assert x - true <= 1e-14 * max(x, 1e-300)


def test_log_upper_refuses_less_than_one():
    with pytest.raises(InvalidInput, match="ratio"):
        log_upper(Fraction(1, 2))


def test_imports_nothing_but_the_standard_library():
    code = (
        "import sys; sys.modules['numpy']=None; sys.modules['scipy']=None;"
        "import hdr4me.channels.proof as e; print(e.column_ratio([[1,2],[2,1]]))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "2"
