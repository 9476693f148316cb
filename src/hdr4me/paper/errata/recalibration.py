"""Errata of sections V and VI: λ*, lemmas 4 and 5, theorems 3 and 4; and commentary on when re-calibration harms."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar

import hdr4me as hd
from hdr4me.framework.enhancement import probability_all_exceed, probability_some_exceed
from hdr4me.paper.counter import counter_example
from hdr4me.paper.errata.erratum import Erratum
from hdr4me.paper.readings import Reading
from hdr4me.recalibration.hdr4me import soft_threshold
from hdr4me.simulation.seeds import generator

__all__ = ["RECALIBRATION_ERRATA", "harm_ratio"]


def _supremum() -> Erratum:
    return Erratum(
        "λ* is not defined by the text",
        "V-B, Lemmas 4 and 5",
        "λ*_j = sup|θ̂_j − θ̄_j| (L1); λ*_j = sup (θ̂_j − θ̄_j)/(2θ̄_j) with the normal law's mean for θ̄_j (L2)",
        "a quantile has to be chosen for the supremum, and a reference for θ̄_j",
        "The supremum of a normal variable is infinite (the paper says so itself in IV-B). The mean of the "
        "deviation's "
        "normal law is the bias, which is 0 for Laplace and Piecewise: λ* is then infinite and θ* = 0 whatever was "
        "reported. Every claim is therefore judged under all readings, and the figures name theirs.",
    )


def _some_for_all() -> Erratum:
    theta, sd, d, z = 0.9, 0.45, 100, 3.0
    rng = generator(1, "counter-example")
    naive = theta + sd * rng.standard_normal((2000, d))
    enhanced = soft_threshold(naive, np.full(d, z * sd))
    better = np.sum((enhanced - theta) ** 2, axis=1) < np.sum((naive - theta) ** 2, axis=1)
    second = counter_example("l2", Reading("3", "noise", "domain"))
    return Erratum(
        "Theorems 3 and 4: SOME for ALL",
        "V-B, proofs of Theorems 3 and 4",
        "|θ̂_j − θ̄_j| > 1 holds for all j with probability at least 1 − ∫…∫_{[−1,1]^d} f",
        "1 − ∫…∫ f is P(some |θ̂_j − θ̄_j| > 1); all j need Π_j P(|θ̂_j − θ̄_j| > 1)",
        "The complement of “every coordinate lies in [−1, 1]” is “at least one lies outside”. With θ̄_j = "
        "0.9 and σ_j = "
        "0.45 in each of 100 dimensions, z = 3, the theorem promises an improvement nearly always; there is "
        "none. For L2 "
        f"take θ̄_j = {second.true_mean:g}, σ_j = {second.sd:g} and {second.n_dims:,} dimensions: the mean "
        f"of a dimension's "
        "gain is negative, so Cantelli's inequality bounds the chance that their sum is positive. The same "
        "is found under every "
        "reading of λ*.",
        (
            ("probability as printed (some)", probability_some_exceed(0.0, np.full(d, sd), 1.0)),
            ("probability that the proof needs (all)", probability_all_exceed(0.0, np.full(d, sd), 1.0)),
            ("share of 2,000 simulated collections that L1 improves", float(better.mean())),
            ("L2: probability as printed (some)", second.promised),
            ("L2: probability of an improvement, at most", second.at_most),
        ),
    )


def harm_ratio(z: float) -> float:
    """|θ|/σ beyond which L1 with λ* = zσ has a larger risk than the naive mean.

    >>> round(harm_ratio(1.0), 2), round(harm_ratio(2.0), 2), round(harm_ratio(3.0), 3)
    (1.28, 1.05, 1.006)
    """

    def excess(theta: float) -> float:
        def loss(x: float) -> float:
            shrunk = float(soft_threshold(np.array(x), np.array(z)))
            return (shrunk - theta) ** 2 * math.exp(-0.5 * (x - theta) ** 2) / math.sqrt(2 * math.pi)

        joints = [theta - 12.0, -z, z, theta + 12.0]
        return sum(quad(loss, a, b)[0] for a, b in pairwise(joints)) - 1.0

    return float(brentq(excess, 0.5, 3.0))


def _when_harmful() -> Erratum:
    return Erratum(
        "When L1 and L2 harm",
        "V-B, Lemmas 4 and 5",
        "|θ̂_j − θ̄_j| > 1 (L1) and > 2 (L2) as the thresholds of enhancement",
        "L1 harms once |θ̄|/σ exceeds a number near one; L2 with θ* = 0 once |θ̄| > σ",
        "The lemmas give sufficient conditions on the unknown deviation. In terms of what is known, soft "
        "thresholding "
        "at zσ has risk above σ² as soon as |θ̄|/σ > h(z), found by quadrature below; answering zero has "
        "risk θ̄² and so "
        "harms iff |θ̄| > σ; L2 with reference 1 and λ* = zσ/2 harms iff θ̄² > 2σ/z + σ².",
        tuple((f"h({z:g})", harm_ratio(z)) for z in (1.0, 2.0, 3.0)),
        commentary=True,
    )


def _norm_squared() -> Erratum:
    return Erratum(
        "The penalty of L2",
        "V-B, the definition of θ* and the proof of Lemma 5",
        "R(λ* ∘ θ) = ‖λ* ∘ θ‖₂ in the definition, ‖λ* ∘ θ‖₂² = Σ_j λ*_j²θ_j² in the proof",
        "Σ_j λ*_jθ_j², the squared norm weighted by λ*_j and not by its square",
        "The solution used throughout, θ*_j = θ̂_j/(2λ*_j + 1), sets the derivative of ½(θ_j − θ̂_j)² + "
        "λ*_jθ_j² to zero. The "
        "penalty of the proof would give θ̂_j/(2λ*_j² + 1), and the norm of the definition is not separable "
        "and has no such "
        "solution.",
        (
            ("argmin of ½(θ − 1)² + λθ² at λ = 3, by search", _argmin(lambda t: 3 * t * t)),
            ("1/(2λ + 1), the paper's solution", 1 / 7),
            ("argmin of ½(θ − 1)² + (λθ)² at λ = 3, by search", _argmin(lambda t: 9 * t * t)),
        ),
    )


def _argmin(penalty: Callable[[float], float]) -> float:
    """Where ½(θ − 1)² + penalty(θ) is smallest on [0, 1]."""
    found = minimize_scalar(lambda t: 0.5 * (t - 1) ** 2 + penalty(t), bounds=(0.0, 1.0), method="bounded")
    return float(found.x)


def _square_wave_bias() -> Erratum:
    wave, piecewise = (hd.mechanism(name, epsilon=1.0) for name in ("square_wave", "piecewise"))
    grid = np.linspace(0, 1, 2001)
    slope = wave.calibration.slope
    calibrated = 4 * float(np.mean(wave.variance(grid))) / slope**2
    other = float(np.mean(piecewise.variance(2 * grid - 1)))
    return Erratum(
        "Square wave's small error is shrinkage",
        "VI, Fig. 4",
        "Square wave's deviation is already small enough in high-dimensional space",
        "its raw mean is a·θ̄ with a = 1 − (1 − e^{−ε})/ε; divided by a it is no better than Piecewise",
        "At ε/d near zero a ≈ ε/2d ≈ 0: the raw mean of every dimension is the middle of the domain, and "
        "its MSE that "
        "of answering zero. Calibrated, (2u* − 1)/a is unbiased with variance 4Var/a²; the figures show it beside "
        "the raw one.",
        (("calibrated Square wave over Piecewise, variance on uniform data, ε = 1", calibrated / other),),
        commentary=True,
    )


RECALIBRATION_ERRATA: tuple[Callable[[], Erratum], ...] = (
    _supremum,
    _some_for_all,
    _norm_squared,
    _when_harmful,
    _square_wave_bias,
)
