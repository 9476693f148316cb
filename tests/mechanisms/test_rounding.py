from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdr4me.channels.proof import exp_lower
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.table import round_rows, unbiased_decode

TOTAL = 1 << 32


def private_rows(seed: int, n_levels: int, n_cells: int, epsilon: float) -> np.ndarray:
    """Rows between l and e^ε·l that sum to one, at random; some at both extremes."""
    rng = np.random.default_rng(seed)
    light = rng.dirichlet(np.full(n_cells, 0.5)) + 1e-12
    share = rng.random((n_levels, n_cells)) ** rng.choice([0.2, 1.0, 5.0])
    share[:, rng.integers(n_cells)] = 0.0
    rows = light * np.exp(share * epsilon * 0.999)
    # the excess over l is scaled alike in every row, so the ratio stays
    excess = (rows - light).sum(axis=1)
    rows = light + (rows - light) * (excess.min() / np.maximum(excess, 1e-300))[:, None]
    return rows / rows.sum(axis=1, keepdims=True)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_levels=st.integers(2, 12),
    n_cells=st.integers(2, 40),
    epsilon=st.floats(1e-6, 60.0),
    bits=st.sampled_from([12, 20, 32]),
)
@settings(max_examples=150, deadline=None)
def test_sums_and_ratios_are_kept_whatever_the_rows(seed, n_levels, n_cells, epsilon, bits):
    rows = private_rows(seed, n_levels, n_cells, epsilon)
    weights = round_rows(rows, epsilon, total=1 << bits)
    assert (weights.sum(axis=1) == 1 << bits).all()
    assert weights.min() >= 1
    limit = exp_lower(epsilon)
    for column in weights.T.tolist():
        assert Fraction(max(column), min(column)) <= limit


@given(seed=st.integers(0, 2**32 - 1), epsilon=st.floats(0.1, 10.0))
@settings(max_examples=50, deadline=None)
def test_integers_stay_near_the_rows(seed, epsilon):
    # a cell moves by its own rounding, its floor's (1 unit at least) and its part of at most 3N units dealt out
    rows = private_rows(seed, 7, 20, epsilon)
    weights = round_rows(rows, epsilon)
    assert np.abs(weights - rows * TOTAL).max() <= 3 * 20 + 2


def test_light_columns_are_lifted_to_one_unit():
    rows = np.array([[1 - 1e-15, 1e-15], [1e-15, 1 - 1e-15]])
    assert round_rows(rows, 100.0).tolist() == [[TOTAL - 1, 1], [1, TOTAL - 1]]


def test_equal_rows_keep_their_sum():
    rows = np.full((2, 3), 1 / 3)
    weights = round_rows(rows, 1e-9)
    assert (weights.sum(axis=1) == TOTAL).all()
    assert (weights[0] == weights[1]).all()


def test_refuses_rows_that_are_not_private():
    with pytest.raises(InvalidInput, match="not private at epsilon"):
        round_rows(np.array([[0.99, 0.01], [0.01, 0.99]]), 1.0)


def test_refuses_more_cells_than_units():
    with pytest.raises(InvalidInput, match="cells"):
        round_rows(np.full((2, 5), 0.2), 1.0, total=4)


def test_decode_becomes_exactly_unbiased_with_a_small_change():
    levels = np.linspace(-1, 1, 5)
    rows = private_rows(3, 5, 30, 2.0)
    weights = round_rows(rows, 2.0)
    exact = np.linalg.pinv(rows) @ levels
    decode = unbiased_decode(weights, exact, levels)
    # double precision of a product of 30 terms of this size
    assert np.ldexp(weights.astype(float), -32) @ decode == pytest.approx(
        levels, abs=1e-13 * np.abs(decode).max()
    )
    assert np.abs(decode - exact).max() < 1e-5 * np.abs(exact).max()
