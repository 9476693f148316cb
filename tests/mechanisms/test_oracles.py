"""Oracles: the closed forms are the deployed tables', and one rule chooses."""

from __future__ import annotations

import numpy as np
import pytest

from hdr4me.channels.oracles import oracle, subset_size
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.categorical import categorical_channel, categorical_choice


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 9.0])
def test_variances_are_the_tables(epsilon: float) -> None:
    """To 1e-5: the tables' probabilities are whole multiples of 2^-32."""
    for name in ("grr", "oue"):
        marginal = categorical_channel(name, epsilon, 7).response.marginal()
        absent, present = marginal.moments([0.0, 1.0]).variance([1.0])
        found = oracle(name, epsilon, 7)
        assert (found.absent, found.present) == pytest.approx((absent, present), rel=1e-5)


@pytest.mark.parametrize("v", [2, 5, 40])
def test_subset_selection_by_enumeration(v: int) -> None:
    """p and q from the definition: each subset that holds the own category is e^ε times as likely."""
    epsilon = 1.3
    w = subset_size(epsilon, v)
    heavy, light = np.exp(epsilon) * w / v, (v - w) / v  # shares of subsets with and without it, weighted
    p = heavy / (heavy + light)
    q = p * (w - 1) / (v - 1) + (1 - p) * w / (v - 1)
    found = oracle("subset", epsilon, v)
    assert (found.p, found.q) == pytest.approx((p, q), rel=1e-12)
    assert oracle("subset", epsilon, v).total <= oracle("grr", epsilon, v).total * (1 + 1e-12)


def test_the_choice_is_the_least_total_error_or_nearly() -> None:
    for epsilon in (0.5, 1.0, 3.0):
        for v in (2, 4, 10, 60, 256):
            least = min(oracle(name, epsilon, v).total for name in ("grr", "oue", "subset"))
            chosen = oracle(categorical_choice(epsilon, v), epsilon, v).total
            assert chosen <= 1.2 * least * (1 + 1e-12)
    assert categorical_choice(8.0, 257) == "grr"


def test_what_is_no_oracle() -> None:
    with pytest.raises(InvalidInput, match="categorical"):
        oracle("rappor", 1.0, 5)
    with pytest.raises(InvalidInput, match="category_count"):
        oracle("grr", 1.0, 1)
