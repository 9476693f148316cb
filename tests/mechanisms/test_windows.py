from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdr4me.channels.proof import exp_lower
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.duchi import Duchi
from hdr4me.mechanisms.table import binary, duchi_table, window, window_table

TOTAL = 1 << 32


@given(
    epsilon=st.floats(1e-2, 3000.0),
    n_cells=st.integers(2, 256),
    share=st.floats(0.0, 1.0),
    total=st.integers(10**8, TOTAL),
)
@settings(max_examples=100, deadline=None)
def test_windows_keep_sum_ratio_and_mean(epsilon, n_cells, share, total):
    width = min(max(1, round(share * n_cells)), n_cells - 1)
    levels, decode, weights = window(epsilon, n_cells, width, total)
    assert (weights.sum(axis=1) == total).all()
    assert Fraction(int(weights.max()), int(weights.min())) <= exp_lower(epsilon)
    means = (weights / total) @ decode
    assert means == pytest.approx(levels, abs=1e-12 * max(10.0, np.abs(decode).max()))


def test_light_weight_is_the_least_that_is_private():
    epsilon, n_cells, width = 1.0, 10, 3
    _, _, weights = window(epsilon, n_cells, width)
    light = int(weights.min()) - 1
    heavy = -(-(TOTAL - (n_cells - width) * light) // width)
    assert Fraction(heavy, light) > exp_lower(epsilon)


def test_duchi_is_the_window_of_one_in_two():
    table, law = duchi_table("duchi", 1.3), Duchi(1.3)
    assert table.decode == pytest.approx([-law.bound, law.bound], rel=1e-8)  # 32 bits
    assert float(table.variance(0.4)) == pytest.approx(float(law.variance(0.4)), rel=1e-8)


@pytest.mark.parametrize("width", [0, 4, 5])
def test_refuses_a_width_that_does_not_slide(width):
    with pytest.raises(InvalidInput, match="width"):
        window(1.0, 4, width)


def test_refuses_a_budget_below_the_bits():
    with pytest.raises(InvalidInput, match="32 bits cannot represent"):
        window_table("w", 1e-9, 256, 128)


@pytest.mark.parametrize("total", [TOTAL, TOTAL // 3 + 1, 12_345_679])
def test_two_cells_for_many_levels(total):
    decode, weights = binary(1.0, 17, total)
    assert (weights.sum(axis=1) == total).all()
    assert Fraction(int(weights.max()), int(weights.min())) <= exp_lower(1.0)
    assert (weights / total) @ decode == pytest.approx(np.linspace(-1, 1, 17), abs=1e-13)


def test_two_cells_refuse_too_small_a_share():
    with pytest.raises(InvalidInput, match="larger budget"):
        binary(1.0, 256, 100)
