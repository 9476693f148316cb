"""The errata by independent arithmetic: fractions and mpmath, without the code of the package."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import mpmath as mp
import pytest

from hdr4me.paper.errata import errata


@pytest.fixture(scope="module")
def numbers():
    return {what: value for item in errata() for what, value in item.numbers}


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(40):
        yield


def _q(epsilon):
    return (mp.exp(epsilon / 2) + 1) / (mp.exp(epsilon / 2) - 1)


def _piecewise(power, t, epsilon, center=0):
    """∫ |x − center|^power over the density of Piecewise, as printed in equation (4)."""
    q, t = _q(epsilon), mp.mpf(t)
    left, right = (q + 1) / 2 * t - (q - 1) / 2, (q + 1) / 2 * t + (q - 1) / 2
    inside = (mp.exp(epsilon) - mp.exp(epsilon / 2)) / (2 * mp.exp(epsilon / 2) + 2)
    outside = (1 - mp.exp(-epsilon / 2)) / (2 * mp.exp(epsilon / 2) + 2)
    edges = [-q, left, right, q]
    total = mp.mpf(0)
    for a, b, height in zip(edges, edges[1:], (outside, inside, outside), strict=False):
        points = [a, center, b] if a < center < b else [a, b]
        total += height * mp.quad(lambda x: abs(x - center) ** power, points)
    return total


def _wave_moments(t, epsilon, low):
    """Mean and variance of Square wave on [low, 1], from the density of equation (5)."""
    width, e = 1 - low, mp.exp(epsilon)
    b = (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon))
    u = (mp.mpf(t) - low) / width
    height = 1 / (2 * b * e + 1)

    def moment(power):
        tails = mp.quad(lambda x: x**power, [-b, u - b]) + mp.quad(lambda x: x**power, [u + b, 1 + b])
        return height * (tails + e * mp.quad(lambda x: x**power, [u - b, u + b]))

    mean = moment(1)
    return low + width * mean, width**2 * (moment(2) - mean**2)


def test_piecewise_and_duchi(numbers):
    """(Q² − 1)/3 against ((e^ε + 1)/(e^ε − 1))²; tolerance 1e-9 relative."""

    def ratio(epsilon):
        worst = (_q(epsilon) ** 2 - 1) / 3
        assert abs(worst - (_piecewise(2, 1, epsilon) - 1)) < mp.mpf(10) ** -20 * worst
        return worst / ((mp.exp(epsilon) + 1) / (mp.exp(epsilon) - 1)) ** 2

    assert abs(ratio(mp.mpf("1e-8")) - mp.mpf(4) / 3) < 1e-12
    found = numbers["worst-case variance, Piecewise over Duchi, ε/m = 0.001"]
    assert found == pytest.approx(float(ratio(mp.mpf("0.001"))), rel=1e-9)
    assert numbers["ε/m at which the two are equal"] == pytest.approx(
        float(mp.findroot(lambda e: ratio(e) - 1, 1.3)), rel=1e-9
    )


def test_the_integrals_of_piecewise_omit_t_squared(numbers):
    """E t*² − Var(t*) = t²; tolerance 1e-25 with 40 digits, 1e-9 relative for the published double."""
    epsilon, t = mp.mpf("0.001"), mp.mpf("0.3")
    s = mp.exp(epsilon / 2)
    corrected = t**2 / (s - 1) + (s + 3) / (3 * (s - 1) ** 2)
    integrals = _piecewise(2, t, epsilon)
    assert abs(integrals - corrected - t**2) < mp.mpf(10) ** -25
    assert (
        abs(_piecewise(1, t, epsilon, center=-_q(epsilon)) - _q(epsilon) - t) < mp.mpf(10) ** -25
    )  # unbiased
    assert numbers["the three integrals at t = 0.3, ε/m = 0.001"] == pytest.approx(float(integrals), rel=1e-9)


@pytest.mark.parametrize("low", [0, -1])
def test_table_2_on_a_common_domain(numbers, low):
    """The probabilities of both mechanisms on [0, 1] and on [−1, 1]; tolerance 1e-6 relative, 1e-12 absolute."""
    epsilon, values = mp.mpf("0.001"), [mp.mpf(k) / 10 for k in range(1, 11)]
    wave = [_wave_moments(t, epsilon, low) for t in values]
    bias = sum(mean - t for (mean, _), t in zip(wave, values, strict=True)) / 10
    assert numbers[f"bias δ_j, Square wave on [{low}, 1]"] == pytest.approx(float(bias), rel=1e-9)
    width = 1 - low
    scaled = [2 * (t - low) / width - 1 for t in values]
    laws = {
        "Square wave": (bias, sum(variance for _, variance in wave) / 10 / 10_000),
        "Piecewise": (
            mp.mpf(0),
            sum(_piecewise(2, t, epsilon) - t**2 for t in scaled) / 10 * width**2 / 4 / 10_000,
        ),
    }
    found = {}
    for name, (mean, variance) in laws.items():
        for xi in ("0.05", "0.1"):
            ends = [(sign * mp.mpf(xi) - mean) / mp.sqrt(2 * variance) for sign in (-1, 1)]
            found[name, xi] = float((mp.erf(ends[1]) - mp.erf(ends[0])) / 2)
            published = numbers[f"probability within {xi}, {name} on [{low}, 1]"]
            assert published == pytest.approx(found[name, xi], rel=1e-6, abs=1e-12)
    far_better = all(found["Square wave", xi] > 10 * found["Piecewise", xi] for xi in ("0.05", "0.1"))
    assert far_better == (low == 0)


def test_the_variance_with_sampled_users():
    """Var θ̂_j = (V + S²)/r − S²/n over all samples of r = 2 of n = 4 users of a coin mechanism; exact."""
    values = [Fraction(-1), Fraction(1, 3), Fraction(1, 2), Fraction(1)]
    c, r, n = Fraction(3), 2, 4
    first = second = Fraction(0)
    samples = list(combinations(range(n), r))
    for chosen in samples:
        for signs in product((1, -1), repeat=r):
            weight = Fraction(1, len(samples))
            for i, sign in zip(chosen, signs, strict=True):
                weight *= (1 + sign * values[i] / c) / 2
            mean = sum(sign * c for sign in signs) / Fraction(r)
            first, second = first + weight * mean, second + weight * mean**2
    noise = sum(c**2 - t**2 for t in values) / n
    center = sum(values) / n
    spread = sum((t - center) ** 2 for t in values) / (n - 1)
    assert first == center
    assert second - first**2 == (noise + spread) / r - spread / n
    assert second - first**2 != noise / r  # Lemma 3


def test_lyapunov_ratio_for_continuous_data(numbers):
    """Piecewise, ε = 1, t uniform on [−1, 1], by quadrature over t; tolerance 1e-3 (a grid of 2,001 values)."""
    with mp.workdps(15):
        epsilon = mp.mpf(1)
        third = mp.quad(lambda t: _piecewise(3, t, epsilon, center=t), [0, 1])
        variance = mp.quad(lambda t: _piecewise(2, t, epsilon) - t**2, [0, 1])
    ratio = float(third / variance**1.5)
    assert numbers["Lyapunov's ratio times √r_j, Piecewise, ε = 1, uniform data"] == pytest.approx(
        ratio, rel=1e-3
    )


def test_calibration_depends_on_the_value(numbers):
    """δ(±1) of Square wave on [−1, 1] at ε = 1 is ∓(1 − 1/e); tolerance 1e-12."""
    for t in (-1, 1):
        bias = _wave_moments(t, mp.mpf(1), -1)[0] - t
        published = numbers[f"δ({'−' if t < 0 else ''}1) of Square wave on [-1, 1], ε/m = 1"]
        assert published == pytest.approx(float(bias), rel=1e-12)


def test_the_weight_of_lemma_5_is_negative_in_the_case_study(numbers):
    """λ* = (|δ| + 3σ)/(2δ) with δ and σ² by quadrature; tolerance 1e-9 relative."""
    values = [mp.mpf(k) / 10 for k in range(1, 11)]
    moments = [_wave_moments(t, mp.mpf("0.001"), 0) for t in values]
    bias = sum(mean - t for (mean, _), t in zip(moments, values, strict=True)) / 10
    sd = mp.sqrt(sum(variance for _, variance in moments) / 10 / 10_000)
    weight = (abs(bias) + 3 * sd) / (2 * bias)
    assert weight < 0
    assert 2 * weight + 1 < 0  # θ* has the opposite sign of θ̂
    published = numbers["λ*_j in the case study, Square wave, sup = |δ_j| + 3σ_j"]
    assert published == pytest.approx(float(weight), rel=1e-9)
    assert numbers["θ*_j/θ̂_j with this weight"] == pytest.approx(float(1 / (2 * weight + 1)), rel=1e-9)


def test_lemma_5_holds_with_the_threshold_1():
    """Exact, on a grid of θ̄ in [−1, 1], |θ̂ − θ̄| > 1 and λ* > 0."""
    for true, away, weight in product(range(-4, 5), range(1, 41), range(1, 9)):
        mean_true, deviation = Fraction(true, 4), 1 + Fraction(away, 10)
        for estimate in (mean_true + deviation, mean_true - deviation):
            enhanced = estimate / (2 * Fraction(weight, 4) + 1)
            assert abs(enhanced - mean_true) < deviation
    # Below the threshold 1 the inequality can fail.
    assert abs(Fraction(3, 2) / 3 - 1) == abs(Fraction(3, 2) - 1)
    assert abs(Fraction(14, 10) / 3 - 1) > abs(Fraction(14, 10) - 1)
