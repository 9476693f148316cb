"""Moments of the continuous mechanisms against high-precision integration of the literal densities.

The reference is written from the mechanisms' own papers in mpmath, with as many digits as the largest power of e
needs, so that no rearrangement of ours is on both sides. Stated accuracy: relative error ≤ 1e-9 for ε from 1e-9 to
5000 of one value (a result below 1e-300 counts as 0: a double cannot represent it).
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from hdr4me.errors import InvalidInput
from hdr4me.mechanisms import mechanism
from hdr4me.mechanisms.piecewise import EPSILON_STAR

EPSILONS = [1e-9, 1e-6, 1e-3, 0.05, 0.49, 0.51, 1.0, 4.0, 20.0, 40.0, 300.0, 1000.0, 5000.0]
DIGITS_LOST = "1e-60"  # the reference mean is a difference of large terms: 0 is computed as about 1e-80
Pieces = list[tuple[Any, Any, Any]]  # (low, high, height)


def close(ours: Any, reference: Any, floor: str = "1e-300") -> bool:
    return bool(abs(mp.mpf(float(ours)) - reference) <= max(1e-9 * abs(reference), mp.mpf(floor)))


def integrate(pieces: Pieces, power: int, center: Any, absolute: bool = False) -> Any:
    """∫ (x − center)^power f(x) dx over a step density, by the antiderivative."""

    def antiderivative(x: Any) -> Any:
        y = x - center
        return (mp.sign(y) if absolute else 1) * y ** (power + 1) / (power + 1)

    return mp.fsum(h * (antiderivative(b) - antiderivative(a)) for a, b, h in pieces)


def piecewise_density(epsilon: Any, t: Any) -> Pieces:
    e, s = mp.e**epsilon, mp.e ** (epsilon / 2)
    q = (e + s) / (e - s)
    left = (q + 1) / 2 * t - (q - 1) / 2
    right = left + q - 1
    high, low = (e - s) / (2 * s + 2), (1 - 1 / s) / (2 * s + 2)
    return [(-q, left, low), (left, right, high), (right, q, low)]


def square_density(epsilon: Any, t: Any) -> Pieces:
    e = mp.e**epsilon
    b = (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon))
    low = 1 / (2 * b * e + 1)
    return [(-b, t - b, low), (t - b, t + b, low * e), (t + b, 1 + b, low)]


def digits(epsilon: float) -> int:
    return 80 + int(epsilon)


def moments(pieces: Pieces) -> tuple[Any, Any, Any]:
    mean = integrate(pieces, 1, 0)
    return mean, integrate(pieces, 2, mean), integrate(pieces, 3, mean, absolute=True)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("t", [-1.0, -0.3, 0.0, 0.5, 1.0])
def test_piecewise(epsilon: float, t: float) -> None:
    ours = mechanism("piecewise", epsilon=epsilon)
    with mp.workdps(digits(epsilon)):
        mean, variance, rho = moments(piecewise_density(mp.mpf(epsilon), mp.mpf(t)))
        assert close(ours.mean(t), mean, DIGITS_LOST)
        assert close(ours.variance(t), variance)
        assert close(ours.abs_third_moment(t), rho)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("t", [0.0, 0.2, 0.5, 0.75, 1.0])
def test_square_wave(epsilon: float, t: float) -> None:
    ours = mechanism("square_wave", epsilon=epsilon)
    wide = mechanism("square_wave", epsilon=epsilon, domain=(-1, 1))
    with mp.workdps(digits(epsilon)):
        mean, variance, rho = moments(square_density(mp.mpf(epsilon), mp.mpf(t)))
        assert close(ours.mean(t), mean, DIGITS_LOST)
        assert close(ours.bias(t), mean - t, DIGITS_LOST)
        assert close(ours.variance(t), variance)
        assert close(ours.abs_third_moment(t), rho)
        assert close(wide.bias(2 * t - 1), 2 * (mean - t), DIGITS_LOST)
        assert close(wide.variance(2 * t - 1), 4 * variance)
        assert close(wide.abs_third_moment(2 * t - 1), 8 * rho)


def duchi_moments(epsilon: Any, t: Any) -> tuple[Any, Any]:
    c = (mp.e**epsilon + 1) / (mp.e**epsilon - 1)
    up = (1 + t / c) / 2
    return tuple(up * abs(c - t) ** k + (1 - up) * abs(c + t) ** k for k in (2, 3))  # type: ignore[return-value]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("t", [-1.0, 0.0, 0.5, 1.0])
def test_duchi_and_hybrid(epsilon: float, t: float) -> None:
    duchi, hybrid = mechanism("duchi", epsilon=epsilon), mechanism("hybrid", epsilon=epsilon)
    with mp.workdps(digits(epsilon)):
        e, x = mp.mpf(epsilon), mp.mpf(t)
        variance, rho = duchi_moments(e, x)
        assert close(duchi.variance(t), variance)
        assert close(duchi.abs_third_moment(t), rho)
        _, other_variance, other_rho = moments(piecewise_density(e, x))
        alpha = 1 - mp.e ** (-e / 2) if epsilon > 0.61 else mp.mpf(0)
        assert close(hybrid.variance(t), alpha * other_variance + (1 - alpha) * variance)
        assert close(hybrid.abs_third_moment(t), alpha * other_rho + (1 - alpha) * rho)


def step_moments(epsilon: Any, w: Any) -> tuple[Any, Any]:
    """Second and third absolute moments of the family; the sums over steps are polylogarithms."""
    q = mp.e ** (-epsilon)
    height = (1 - q) / (2 * w * (1 - q) + 4 * q)

    def moment(p: int) -> Any:
        # ∫ x^p over step i ≥ 1, [w + 2(i−1), w + 2i], is a polynomial in i; Σ q^i i^k = Li_{−k}(q).
        total = w ** (p + 1) / (p + 1)
        for k in range(p + 1):
            coefficient = mp.binomial(p + 1, k) * 2**k * (w ** (p + 1 - k) - (w - 2) ** (p + 1 - k)) / (p + 1)
            series = q / (1 - q) if k == 0 else mp.polylog(-k, q)
            total += coefficient * series
        return 2 * height * total

    return moment(2), moment(3)


def scdf_top(e: Any) -> Any:
    q = mp.e ** (-e)
    return 2 * (1 - q - e * q) / (e * (1 - q))


def l1_top(e: Any) -> Any:
    return 2 / (1 + mp.e ** (e / 2))


def variance_top(e: Any) -> Any:
    q = mp.e ** (-e)
    return 2 * (mp.cbrt(q * (1 + q) / 2) - q) / (1 - q)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(
    ("name", "options", "top"),
    [
        ("scdf", {}, scdf_top),
        ("staircase", {}, l1_top),
        ("staircase", {"variant": "variance"}, variance_top),
    ],
)
def test_staircase_family(
    epsilon: float, name: str, options: dict[str, str], top: Callable[[Any], Any]
) -> None:
    ours = mechanism(name, epsilon=epsilon, **options)
    with mp.workdps(digits(epsilon)):
        w = top(mp.mpf(epsilon))
        variance, rho = step_moments(mp.mpf(epsilon), w)
        assert abs(mp.mpf(ours.log_top) - mp.log(w)) <= 1e-9 * max(1, abs(mp.log(w)))  # type: ignore[attr-defined]
        assert close(ours.variance(0.3), variance)
        assert close(ours.abs_third_moment(0.3), rho)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_laplace(epsilon: float) -> None:
    ours = mechanism("laplace", epsilon=epsilon)
    scale = 2 / mp.mpf(epsilon)
    for power, value in ((2, ours.variance(0.1)), (3, ours.abs_third_moment(0.1))):
        assert close(
            value, mp.quad(lambda x, k=power: x**k * mp.e ** (-x), [0, 5, 20, mp.inf]) * scale**power
        )


def test_the_hybrids_threshold() -> None:
    assert EPSILON_STAR == pytest.approx(0.6093524930, abs=1e-10)


def test_published_values() -> None:
    """A file of moments computed elsewhere to high precision; its hybrid at ε = 500 lost 1 − α to rounding."""
    oracles = json.loads((Path(__file__).parents[1] / "data" / "oracles.json").read_text())
    names = {"pm": "piecewise", "sw": "square_wave", "duchi": "duchi", "hm": "hybrid"}
    checked = 0
    for text, block in oracles.items():
        for t in (0, 0.25, 0.5, 1):
            for key, name in names.items():
                if key == "hm" and text == "500":
                    continue
                ours = mechanism(name, epsilon=float(text))
                want = block[f"t={t:g}"]
                assert float(ours.variance(t)) == pytest.approx(want[f"{key}_var"], rel=1e-9)
                assert float(ours.abs_third_moment(t)) == pytest.approx(want[f"{key}_rho"], rel=1e-9)
                checked += 1
    assert checked == 5 * 4 * 4 - 4


@pytest.mark.parametrize("epsilon", [0, -1.0, float("nan"), float("inf"), "1"])
def test_a_bad_budget_is_named(epsilon: Any) -> None:
    with pytest.raises(InvalidInput, match="epsilon = "):
        mechanism("piecewise", epsilon=epsilon)


def test_bad_names_options_and_values_are_named() -> None:
    with pytest.raises(InvalidInput, match="mechanism = 'gauss' is not allowed: use one of laplace"):
        mechanism("gauss", epsilon=1.0)
    with pytest.raises(InvalidInput, match=r"options \['variant'\]"):
        mechanism("duchi", epsilon=1.0, variant="l1")
    with pytest.raises(InvalidInput, match="variant = 'l3'"):
        mechanism("staircase", epsilon=1.0, variant="l3")
    with pytest.raises(InvalidInput, match="domain = "):
        mechanism("square_wave", epsilon=1.0, domain=(0, 2))
    for bad in (1.5, float("nan"), [0.0, -1.01]):
        with pytest.raises(InvalidInput, match="piecewise accepts values in"):
            mechanism("piecewise", epsilon=1.0).variance(bad)


def pm_sub_density(epsilon: Any, t: Any) -> Pieces:
    """Zhao et al. 2020, equations for PM-OPT with t = e^{ε/3}."""
    e, tau = mp.e**epsilon, mp.e ** (epsilon / 3)
    left = (e + tau) * (t * tau - 1) / (tau * (e - 1))
    right = (e + tau) * (t * tau + 1) / (tau * (e - 1))
    top = (e + tau) * (tau + 1) / (tau * (e - 1))
    high = tau * e * (e - 1) / (2 * (tau + e) ** 2)
    return [(-top, left, high / e), (left, right, high), (right, top, high / e)]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("t", [-1.0, -0.3, 0.0, 0.5, 1.0])
def test_pm_sub(epsilon: float, t: float) -> None:
    with mp.workdps(digits(epsilon)):
        pieces = pm_sub_density(mp.mpf(epsilon), mp.mpf(t))
        assert abs(integrate(pieces, 0, 0) - 1) < mp.mpf(DIGITS_LOST)
        mean, variance, third = moments(pieces)
        assert abs(mean - t) < mp.mpf(DIGITS_LOST)
        law = mechanism("pm_sub", epsilon=epsilon)
        assert close(law.variance(t), variance)
        assert close(law.abs_third_moment(t), third)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("t", [-1.0, -0.3, 0.0, 0.5, 1.0])
def test_three_outputs(epsilon: float, t: float) -> None:
    """Enumerated from the paper's P(0|0) and its three conditions: affine P(0|x), the mean, and the loss at x = ±1."""
    law: Any = mechanism("three_outputs", epsilon=epsilon)
    with mp.workdps(digits(epsilon)):
        e, a, x = mp.e ** mp.mpf(epsilon), mp.mpf(law.zero_share), mp.mpf(t)
        if epsilon > 2:
            a = e / (e + 2)
        bound = e * (e + 1) / ((e - 1) * (e - a))
        zero = a - (a - a / e) * abs(x)
        up, down = (1 - zero + x / bound) / 2, (1 - zero - x / bound) / 2
        law_of = [(bound, up), (-bound, down), (mp.mpf(0), zero)]
        assert abs(mp.fsum(y * p for y, p in law_of) - x) < mp.mpf(DIGITS_LOST)
        variance = mp.fsum((y - x) ** 2 * p for y, p in law_of)
        third = mp.fsum(abs(y - x) ** 3 * p for y, p in law_of)
        assert close(law.variance(t), variance)
        assert close(law.abs_third_moment(t), third)


def test_three_outputs_share_of_zeros_is_the_best() -> None:
    """P(0|0) by the paper's cubic has the least largest variance, to 1e-7 of it (a numerical minimum)."""
    for epsilon in (0.3, 0.69, 0.8, 1.2, 1.7, 1.72, 3.0):
        law: Any = mechanism("three_outputs", epsilon=epsilon)
        q = math.exp(-epsilon)

        def worst(a: float, q: float = q) -> float:
            c = (1 + q) / ((1 - q) * (1 - a * q))
            x = min(1.0, c * c * a * (1 - q) / 2)
            return c * c * (1 - a * (1 - (1 - q) * x)) - x * x

        found = minimize_scalar(
            worst, bounds=(0, 1 / (1 + 2 * q)), method="bounded", options={"xatol": 1e-10}
        )
        assert worst(law.zero_share) <= found.fun * (1 + 1e-7)
        grid = np.linspace(-1, 1, 4001)
        assert law.variance(grid).max() == pytest.approx(worst(law.zero_share), rel=1e-6)
