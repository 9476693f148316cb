"""Errata of section IV: mechanisms, case study, lemmas 1 to 3, theorems 1 and 2."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from scipy.integrate import quad
from scipy.stats import multivariate_normal

import hdr4me as hd
from hdr4me.framework.deviation import Variance
from hdr4me.paper.case_study import TOLERANCES, Line, case_study, deviation_of, deviation_on, printed_variance
from hdr4me.paper.errata.erratum import Erratum
from hdr4me.paper.theory.joint import covariance_of_errors

__all__ = ["FRAMEWORK_ERRATA"]

_KINDS: tuple[Variance, Variance] = ("exact", "paper")


def _line(start: str) -> Line:
    return next(line for line in case_study() if line.quantity.startswith(start))


def _piecewise_variance() -> Erratum:
    law = hd.mechanism("piecewise", epsilon=0.001)
    t = 0.3
    low, high = law.support
    joints = sorted({low, high, *_band(law, t)})
    integral = sum(
        quad(lambda x: (x - t) ** 2 * float(law.density(x, t)), a, b)[0] for a, b in pairwise(joints)
    )
    return Erratum(
        "Variance of Piecewise",
        "IV-C, the equation of Var(t*)",
        "t*/(e^{ε/2m} − 1) + e^{ε/2m + 3}/(3(e^{ε/2m} − 1)²)",
        "t²/(s − 1) + (s + 3)/(3(s − 1)²) with s = e^{ε/2m}",
        "A report is uniform on [−Q, Q] with probability 1/s, Q = (s+1)/(s−1), else uniform of width Q − 1 about "
        "t(Q+1)/2. So E t*² = Q²/(3s) + (1 − 1/s)(t²(Q+1)²/4 + (Q−1)²/12). With Q + 1 = 2s/(s−1) and Q − 1 = 2/(s−1) "
        "this is t²·s/(s−1) + (s+3)/(3(s−1)²); taking t² off leaves the line above. The paper's exponent swallowed "
        "the 3 and its t lost the square; its number 533.210 comes from the right formula.",
        (
            ("σ² of the case study, formula as printed", printed_variance()),
            ("σ² of the case study, right", _line("Piecewise: variance").value),
            ("Var(t*) at t = 0.3, ε/m = 0.001, right formula", float(law.variance(t))),
            ("the same by quadrature of the density", integral),
        ),
    )


def _band(law: object, t: float) -> tuple[float, float]:
    half = law.half_width  # type: ignore[attr-defined]
    return t * (1 + half) - half, t * (1 + half) + half


def _case_study_numbers() -> Erratum:
    own = deviation_of(-0.049, 3.365e-5)
    lines = [
        line
        for line in case_study()
        if line.verdict == "wrong" and line.quantity.startswith("Square") and "own" not in line.quantity
    ]
    return Erratum(
        "Numbers of the case study",
        "IV-C and Table II",
        f"{len(lines)} numbers of Square wave, in brackets below",
        "those below",
        "Square wave's bias is (1−a)(½ − 0.55) with 1 − a = (1 − e^{−ε})/ε at ε = 0.001, and its variance the mean "
        "of the paper's own formula over the ten values. Table II's Square row follows neither from these nor from "
        f"the printed −0.049 and 3.365e-5, which give {float(own.probability_within(0.05)):.4f} at ξ = 0.05.",
        tuple((f"{line.quantity} (printed {line.printed})", line.value) for line in lines),
    )


def _two_domains() -> Erratum:
    piecewise, own, common = (
        deviation_on("piecewise"),
        deviation_on("square_wave"),
        deviation_on("square_wave", (-1.0, 1.0)),
    )
    rows = [
        ("Square wave on [−1, 1]: bias", float(common.bias)),
        ("Square wave on [0, 1]: bias", float(own.bias)),
    ]
    for xi in TOLERANCES[2:]:
        rows += [
            (
                f"probability within {xi:g}, Square wave on [0, 1] as in Table II",
                float(own.probability_within(xi)),
            ),
            (f"probability within {xi:g}, Square wave on [−1, 1]", float(common.probability_within(xi))),
            (f"probability within {xi:g}, Piecewise on [−1, 1]", float(piecewise.probability_within(xi))),
        ]
    return Erratum(
        "Table II compares two domains",
        "IV-C and Table II",
        "if the supremum becomes larger (0.05, 0.1), Square wave is far better than Piecewise",
        "only because Square wave stands on [0, 1] there and Piecewise on [−1, 1]; on a common [−1, 1] Piecewise is "
        "better at every ξ of the table",
        "The paper assumes [−1, 1] for every dimension (III-B, IV). At ε/m = 0.001 Square wave's reports hardly "
        "depend on the value and their mean is the middle of the domain: ½ on [0, 1], close to the data's 0.55 by "
        "chance, but 0 on [−1, 1].",
        tuple(rows),
    )


def _lemma1() -> Erratum:
    t = np.linspace(-1, 1, 201)
    numbers = []
    for name, epsilon in (("piecewise", 1.0), ("duchi", 1.0), ("hybrid", 0.5), ("hybrid", 1.0)):
        variance = hd.mechanism(name, epsilon=epsilon).variance(t)
        ratio = float(variance.max() / variance.min())
        numbers.append((f"largest variance over smallest, {name}, ε = {epsilon:g}", ratio))
    return Erratum(
        "Lemma 1, second half",
        "IV-B, Lemma 1",
        "Var(t*) and δ are correlated to t if Bound(M) = 1; otherwise t* would be independent of t",
        "they may depend on t; under Hybrid above ε* = 0.609 neither does",
        "Hybrid reports by Piecewise with probability α and by Duchi otherwise; both are unbiased, so δ = 0, and Var "
        "= α(t²/(s−1) + (s+3)/(3(s−1)²)) + (1−α)(C² − t²). With α = 1 − 1/s the coefficient of t² is α/(s−1) − (1−α) "
        "= 1/s − 1/s = 0. The report's law does depend on t, through its mean. Lemma 3 does not need this half.",
        tuple(numbers),
    )


def _dropped_sampling() -> Erratum:
    found = []
    for epsilon in (1.0, 4.0, 8.0):
        law = hd.mechanism("piecewise", epsilon=epsilon)
        exact, paper = (
            hd.deviation(law, n_users=10**6, n_dims=100, n_sampled=1, prior="uniform", variance=kind).mse
            for kind in _KINDS
        )
        found.append((f"exact/paper variance, Piecewise, ε = {epsilon:g}, d = 100, m = 1", exact / paper))
    return Erratum(
        "The lemmas drop the sampling of users",
        "IV-B, before Lemma 2",
        "lim (1/r Σ_{i≤r} t_i − 1/n Σ_{i≤n} t_i) = 0, so Var θ̂_j = E Var(t*)/r",
        "Var θ̂_j = E[1/r](V̄ + S²_μ) − S²_μ/n",
        "The difference of the two means does tend to 0, but so does everything else, at the same rate 1/√r: Var of "
        "the sample mean of μ_i = E[t*|t_i] is S²_μ(E[1/r] − 1/n), and it stays a fixed share of the whole as r "
        "grows. It vanishes only for m = d, as in Figures 3 to 5.",
        tuple(found),
    )


def _product_form() -> Erratum:
    law, n = hd.mechanism("piecewise", epsilon=8.0), 10_000
    one = hd.deviation(law, n_users=n, n_dims=2, n_sampled=1, prior="uniform")
    correlation = covariance_of_errors(1 / 3, n, 2, 1) / float(one.variance)
    box = multivariate_normal([0.0, 0.0], [[1.0, correlation], [correlation, 1.0]])
    both = float(box.cdf([1.0, 1.0], lower_limit=[-1.0, -1.0]))
    return Erratum(
        "Theorem 1's product form needs m = d",
        "IV-B, Theorem 1",
        "f(θ̂ − θ̄) = Π_j f(θ̂_j − θ̄_j), since each dimension is perturbed independently",
        "for m < d the dimensions' errors are correlated: Cov(θ̂_j, θ̂_k) = −C_jk(d − m)/(nm(d − 1))",
        "The perturbations are independent, but who reports what is one draw: a user's chance to report both j and k "
        "is m(m−1)/(d(d−1)), less than (m/d)². Around its mean θ̂_j is (d/nm)Σ_i I_ij(t*_ij − θ̄_j), so the "
        "covariance is (d/nm)²·n·C_jk(m(m−1)/(d(d−1)) − m²/d²), with C the covariance of the data over the users. It "
        "is of the order of the variance, hence does not vanish as n grows; it vanishes for m = d, or where the data "
        "are uncorrelated.",
        (
            (
                "correlation of two errors, equal uniform dimensions, Piecewise, d = 2, m = 1, ε = 8",
                correlation,
            ),
            (
                "P(both within one standard deviation) by the product",
                float(one.probability_within(float(one.sd))) ** 2,
            ),
            ("the same with that correlation", both),
        ),
    )


def _third_moment() -> Erratum:
    right = _line("Laplace: Berry–Esseen").value
    return Erratum(
        "Third moment of Laplace noise",
        "IV-D, the equation of ρ, and the 1.57 % after it",
        "ρ = 3λ³, hence at most 1.57 % at r = 1000",
        "ρ = 6λ³, hence at most 2.69 %",
        "By parts, E|N|³ = (1/λ)∫₀^∞ x³e^{−x/λ}dx = 3λ·(1/λ)∫₀^∞ x²e^{−x/λ}dx = 3λ·E N² = 3λ·2λ² = 6λ³. The paper "
        "writes 3λ/2 for the factor 3λ; Berry–Esseen's bound is then too small.",
        (
            ("λ⁻³E|N|³ by quadrature", quad(lambda x: x**3 * math.exp(-x), 0, math.inf)[0]),
            ("bound at r = 1000 with 6λ³", right),
            ("bound at r = 1000 with 3λ³", _line("Laplace: the same").value),
        ),
    )


def _theorem2_scaling() -> Erratum:
    return Erratum(
        "Theorem 2's r_jσ_j",
        "IV-D, Theorem 2",
        "0.33554(ρ + 0.415(r_jσ_j)³)/(r_j^{7/2}σ_j³) with E Var(t*) = (r_jσ_j)²",
        "0.33554(ρ + 0.415 s³)/(s³√r_j) with s² = E Var(t*) = r_jσ_j²",
        "Lemmas 2 and 3 define σ_j² = E Var(t*)/r_j, so E Var(t*) = r_jσ_j², not (r_jσ_j)². The printed bound is "
        "right only if σ_j is read as s/r_j. Besides, the constants 0.33554 and 0.415 are those for identically "
        "distributed terms: reports of a bounded mechanism are such once a user's value is drawn at random with her "
        "report.",
    )


FRAMEWORK_ERRATA: tuple[Callable[[], Erratum], ...] = (
    _piecewise_variance,
    _case_study_numbers,
    _two_domains,
    _third_moment,
    _theorem2_scaling,
    _lemma1,
    _dropped_sampling,
    _product_form,
)
