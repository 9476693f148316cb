"""One contract for every continuous mechanism: whatever the law, these must hold."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from hdr4me.mechanisms import mechanism
from hdr4me.mechanisms.law import Mechanism

CASES = [
    ("laplace", {}),
    ("scdf", {}),
    ("staircase", {}),
    ("staircase", {"variant": "variance"}),
    ("duchi", {}),
    ("piecewise", {}),
    ("hybrid", {}),
    ("square_wave", {}),
    ("square_wave", {"domain": (-1, 1)}),
    ("pm_sub", {}),
    ("three_outputs", {}),
]
EPSILONS = [0.1, 0.5, 1.0, 3.0]


@pytest.fixture(params=CASES, ids=lambda case: "-".join([case[0], *map(str, case[1].values())]))
def case(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=EPSILONS)
def law(case: tuple[str, dict[str, Any]], request: pytest.FixtureRequest) -> Mechanism:
    return mechanism(case[0], epsilon=request.param, **case[1])


def inputs(law: Mechanism) -> np.ndarray:
    return np.linspace(*law.domain, 7)


def reach(law: Mechanism) -> tuple[float, float]:
    """The support, or an interval outside which a mass below 1e-12 lies."""
    if law.bounded:
        return law.support
    far = 60 * 2 / law.epsilon + 40
    return (-far, far)


def breaks(law: Mechanism, t: float) -> list[float]:
    """Where the density jumps, found from the parts or the steps."""
    low, high = reach(law)
    if law.bounded:
        _, offset, half = law.parts(np.asarray(t))  # type: ignore[attr-defined]
        ends = np.concatenate([offset - half, offset + half]) + law.mean(t)
        return sorted({low, high, *np.clip(ends, low, high).tolist()})
    if law.name == "laplace":
        return [low, t, high]
    steps = law.top + 2 * np.arange(int(high / 2) + 2)  # type: ignore[attr-defined]
    ends = np.concatenate([t - steps, t + steps])
    return sorted({low, high, *ends[(ends > low) & (ends < high)].tolist()})


def expectation(law: Mechanism, t: float, function: Any) -> float:
    points, masses = law.atoms(t)
    total = float((masses * function(points)).sum())
    nodes = breaks(law, t)
    for a, b in pairwise(nodes):
        if b - a > 1e-12:
            inner = (a + 1e-13 * (b - a), b - 1e-13 * (b - a))
            value, _ = integrate.fixed_quad(
                lambda x: law.density(x, t) * function(x), *inner, n=60 if law.name == "laplace" else 5
            )
            total += value
    return total


def test_mass_is_one(law: Mechanism) -> None:
    for t in inputs(law):
        assert expectation(law, t, np.ones_like) == pytest.approx(1.0, abs=1e-6)


def test_moments_are_those_of_the_density(law: Mechanism) -> None:
    """Quadrature in doubles: 1e-5 covers its error; the formulas themselves are held to 1e-9 elsewhere."""
    for t in inputs(law):
        mean = float(law.mean(t))
        assert expectation(law, t, lambda x: x) == pytest.approx(mean, abs=1e-5 * (1 + 1 / law.epsilon))
        assert expectation(law, t, lambda x, m=mean: (x - m) ** 2) == pytest.approx(
            float(law.variance(t)), rel=1e-5
        )
        if law.name != "laplace":  # its kink at the mean is not a node of the third moment's rule
            assert expectation(law, t, lambda x, m=mean: abs(x - m) ** 3) == pytest.approx(
                float(law.abs_third_moment(t)), rel=2e-2
            )


def test_the_mean_is_affine_and_calibration_undoes_it(law: Mechanism) -> None:
    t = inputs(law)
    np.testing.assert_allclose(law.mean(t), law.calibration.slope * t + law.calibration.intercept, rtol=1e-12)
    np.testing.assert_allclose(law.bias(t), law.mean(t) - t, atol=1e-12)
    np.testing.assert_allclose(law.calibration(law.mean(t)), t, atol=1e-12)


def test_the_density_ratio_is_within_e_to_the_epsilon(law: Mechanism) -> None:
    """Over a fine grid of outputs and every pair of inputs; atoms by their masses. Slack 1e-9: doubles."""
    t = inputs(law)
    low, high = law.support if law.bounded else (-8.0, 8.0)
    x = np.linspace(low, high, 2001)[1:-1, None]
    density = law.density(x, t[None, :])
    assert density.max() > 0 or law.name in ("duchi", "hybrid", "three_outputs")
    assert np.all(density.max(axis=1) <= math.exp(law.epsilon) * density.min(axis=1) * (1 + 1e-9))
    points, masses = law.atoms(t)
    if len(points):
        np.testing.assert_allclose(points, points[:, :1] * np.ones_like(t), rtol=1e-12)
        assert np.all(masses.max(axis=1) <= math.exp(law.epsilon) * masses.min(axis=1) * (1 + 1e-9))


def test_the_cdf_is_the_integral_of_the_density(law: Mechanism) -> None:
    t = float(inputs(law)[4])
    low, high = law.support if law.bounded else (-9.0, 9.0)
    x = np.linspace(low, high, 20_001)
    middle = (x[1:] + x[:-1]) / 2
    steps = law.density(middle, t) * np.diff(x)
    points, masses = law.atoms(t)
    atoms = sum((m * ((x[:-1] < p) & (p <= x[1:])) for p, m in zip(points, masses, strict=True)), np.zeros(1))
    # One cell in 20,000 may be cut by a jump: its whole mass is the error allowed.
    allowed = 3 * float(np.max(steps)) + 1e-9
    np.testing.assert_allclose(np.cumsum(steps + atoms), law.cdf(x[1:], t) - law.cdf(x[0], t), atol=allowed)


def test_samples_follow_the_law(law: Mechanism) -> None:
    """Kolmogorov–Smirnov on 20,000 draws where there are no atoms, chi-square on atoms; and z-tests of two moments.

    False-alarm rate 1e-5 a test, 36 laws × 3 tests: about one seed in a thousand would fail.
    """
    rng = np.random.default_rng(20220501)
    t, n = float(inputs(law)[5]), 20_000
    draws = law.sample(np.full(n, t), rng)
    points, masses = law.atoms(t)
    if masses.sum() > 1 - 1e-12:
        seen = np.array([(draws == p).sum() for p in points])
        assert seen.sum() == n
        assert stats.chisquare(seen, n * masses).pvalue > 1e-5
    else:
        at_atom = np.isin(draws, points)
        if len(points):
            assert stats.binomtest(int(at_atom.sum()), n, float(masses.sum())).pvalue > 1e-5
        # Atoms are spread over their own jump of the cdf, which makes the transform uniform again.
        jump = np.where(at_atom, law.cdf(draws, t) - law.cdf(np.nextafter(draws, -np.inf), t), 0.0)
        uniform = law.cdf(draws, t) - jump * rng.random(n)
        assert stats.kstest(uniform, "uniform").pvalue > 1e-5
    z = (draws.mean() - float(law.mean(t))) / math.sqrt(float(law.variance(t)) / n)
    assert abs(z) < stats.norm.isf(0.5e-5)


def test_shapes_broadcast(law: Mechanism) -> None:
    t = inputs(law).reshape(7, 1)
    assert law.variance(t).shape == (7, 1)
    assert law.density(np.zeros(3), t).shape == (7, 3)
    assert law.cdf(np.zeros(3), t).shape == (7, 3)
    assert law.sample(t, np.random.default_rng(1)).shape == (7, 1)
    assert law.variance(0.5).shape == ()
