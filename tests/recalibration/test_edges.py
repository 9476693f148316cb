"""Means at an end of the domain: the spike, the normal between, and what quadrature says of both."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from hdr4me.recalibration import recalibrate
from hdr4me.recalibration.auto.posterior import SPIKE, Belief, edged


@pytest.mark.parametrize(("m", "sd"), [(0.2, 0.1), (-1.05, 0.1), (-0.8, 0.15), (1.4, 0.1), (0.0, 3.0)])
def test_the_posterior_against_quadrature(m: float, sd: float) -> None:
    """Tolerance 1e-7: that of the quadrature."""
    found = edged(np.array([m]), np.array([sd**2]), -1.0, 1.0)
    density = (1 - 2 * SPIKE) / 2
    near = sorted({-1.0, 1.0, *np.clip([m - 5 * sd, m, m + 5 * sd], -1, 1).tolist()})

    def between(power: int, top: float) -> float:
        ends = [e for e in near if e < top] + [top]
        parts = itertools.pairwise(ends)
        return density * sum(quad(lambda t: t**power * norm.pdf(t, m, sd), a, b)[0] for a, b in parts)

    low, high = (SPIKE * norm.pdf(end, m, sd) for end in (-1.0, 1.0))
    total = low + high + between(0, 1.0)
    assert found.mean[0] == pytest.approx((high - low + between(1, 1.0)) / total, abs=1e-7)
    for θ in (-0.9, 0.1, 0.7):
        assert found.below(np.array([θ]))[0, 0] == pytest.approx((low + between(0, θ)) / total, abs=1e-7)
    assert found.below(np.array([1.0]))[0, 0] == pytest.approx(1)
    assert found.below(np.array([-1.0]))[0, 0] == pytest.approx(low / total, abs=1e-9)


def test_far_outside_and_exactly_known() -> None:
    """No underflow: 1,000 standard errors outside is at the end; no variance is the point itself."""
    found = edged(np.array([5.0, -4.0, 0.3]), np.array([1e-5, 1e-5, 0.0]), -1.0, 1.0)
    np.testing.assert_allclose(found.mean, [1.0, -1.0, 0.3], atol=1e-3)
    some = Belief(np.arange(3), found, 1.0, 1.0).part(slice(1, 3))
    assert some.curve.mean == pytest.approx(found.mean[1:])


def test_average_intervals_hold_means_at_the_very_ends() -> None:
    """An interval that lies beyond the end is moved to the estimate before it is cut: 1,000 intervals, seeded."""
    rng = np.random.default_rng(21)
    theta = np.where(np.arange(100) % 2 == 0, 1.0, -1.0)
    held = 0.0
    for _ in range(10):
        low, high = recalibrate(theta + 0.15 * rng.normal(size=100), 0.15).interval(0.95, "average")
        held += float(np.mean((low <= theta) & (theta <= high))) / 10
    assert held >= 0.95
