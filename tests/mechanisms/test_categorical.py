from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from category_laws import grr, histogram, oue

from hdr4me.channels.proof import exp_lower
from hdr4me.errors import InvalidInput


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("v", [2, 3, 50, 256])
def test_grr_has_the_textbook_probabilities(epsilon, v):
    table = grr(epsilon, v)
    p = np.exp(epsilon) / (np.exp(epsilon) + v - 1)
    # B is rounded up by less than a unit, A makes up for v of them: 256 of 0.0043·2^32 at worst
    assert table.probabilities[0, 0] == pytest.approx(p, rel=2e-5)
    assert table.probabilities[0, 1] == pytest.approx(p * np.exp(-epsilon), rel=1e-6)
    assert (table.weights == table.weights.T).all()


def test_grr_wastes_no_unit():
    # one unit less off the diagonal would break the ratio
    table = grr(1.0, 7)
    other = int(table.weights[0, 1]) - 1
    assert Fraction(2**32 - 6 * other, other) > exp_lower(1.0)


def test_oue_has_the_textbook_variance():
    # Wang et al. 2017: 4e^ε/(e^ε − 1)² for an absent entry
    for epsilon in (0.5, 1.0, 4.0):
        e = np.exp(epsilon)
        assert oue(epsilon).variance(0.0) == pytest.approx(4 * e / (e - 1) ** 2, rel=1e-6)


@pytest.mark.parametrize("base", ["duchi", "piecewise", "laplace", "optimal"])
def test_histogram_spends_half_on_each_entry(base, tmp_path, monkeypatch):
    monkeypatch.setenv("HDR4ME_CACHE_DIR", str(tmp_path))
    table = histogram(1.0, base)
    assert table.name == f"histogram-{base}"
    assert table.epsilon == 1.0
    ratios = table.weights[1] / table.weights[0]
    assert ratios.max() <= np.exp(0.5)
    assert ratios.min() >= np.exp(-0.5)


def test_histogram_by_piecewise_on_plus_and_minus_one():
    # a quarter of Piecewise's variance at |t| = 1 under ε/2: entries are mapped to ±1
    s = np.exp(0.25)
    expected = (1 / (s - 1) + (s + 3) / (3 * (s - 1) ** 2)) / 4
    assert histogram(1.0, "piecewise").variance([0.0, 1.0]) == pytest.approx([expected] * 2, rel=1e-3)


@pytest.mark.parametrize("v", [1, 1 << 21])
def test_grr_refuses_too_few_or_too_many(v):
    with pytest.raises(InvalidInput, match="size"):
        grr(9.0, v)


@pytest.mark.parametrize("make", [lambda e: grr(e, 2), oue, lambda e: grr(e, 256), histogram])
@pytest.mark.parametrize("epsilon", [1e-12, 0.0, float("nan")])
def test_refuses_budgets_that_cannot_be_expressed(make, epsilon):
    with pytest.raises(InvalidInput, match="epsilon"):
        make(epsilon)
