import math

import numpy as np
import pytest
from scipy.stats import gamma, norm

from hdr4me.framework.normal import berry_esseen_bound, berry_esseen_printed
from hdr4me.mechanisms import mechanism


def test_the_papers_example() -> None:
    """Laplace, r = 1000: 2.691215 % with ρ = 6λ³; 1.565780 % with the paper's ρ = 3λ³. Independent of λ."""
    for ε in (0.01, 1.0, 10.0):
        laplace = mechanism("laplace", epsilon=ε)
        ρ, v = float(laplace.abs_third_moment(0.0)), float(laplace.variance(0.0))
        assert float(berry_esseen_bound(ρ, v, 1000)) == pytest.approx(0.02691215, abs=5e-9)
        assert float(berry_esseen_bound(ρ / 2, v, 1000)) == pytest.approx(0.01565780, abs=5e-9)
        assert float(berry_esseen_printed(ρ / 2, math.sqrt(v) / 1000, 1000)) == pytest.approx(
            0.01565780, abs=5e-9
        )


def test_printed_formula_taken_literally_is_no_bound() -> None:
    """Duchi at t = ±C's center is a coin: its jump at 0 for r = 100 reports exceeds the literal printed bound."""
    r, C = 100, 2.0
    jump = math.comb(r, r // 2) / 2**r / 2  # half the mass at the center is a lower bound of the distance
    literal = float(berry_esseen_printed(C**3, C / math.sqrt(r), r))
    assert literal < jump < float(berry_esseen_bound(C**3, C**2, r))


def test_bound_holds_for_a_skewed_law() -> None:
    """Means of r exponential draws are Gamma: the true distance is below both bounds, and not absurdly so."""
    ρ = 12 / math.e - 2  # E|X − 1|³ for X ~ Exp(1)
    for r in (1, 10, 100):
        x = np.linspace(-6, 6, 4001)
        distance = np.max(np.abs(gamma(r).cdf(r + math.sqrt(r) * x) - norm.cdf(x)))
        assert distance < float(berry_esseen_bound(ρ, 1.0, r)) < 12 * distance


def test_no_noise_has_no_bound() -> None:
    assert not np.isfinite(berry_esseen_bound(0.0, 0.0, 10))
