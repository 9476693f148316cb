"""The paper's errata: what it prints, what is right, why, and numbers that show it, computed here."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import multivariate_normal

import hdr4me as hd
from hdr4me.framework.normal import probability_all_exceed, probability_some_exceed
from hdr4me.paper.case_study import TOLERANCES, case_study, deviation_on, printed_variance
from hdr4me.paper.methods import Reading
from hdr4me.paper.theory import counter_example
from hdr4me.recalibration.hdr4me import soft_threshold
from hdr4me.simulation.sums import generator


@dataclass(frozen=True)
class Erratum:
    """One error of the paper with its correction, or `commentary` on what the paper leaves unsaid."""

    title: str
    where: str
    printed: str
    right: str
    derivation: str
    numbers: tuple[tuple[str, float], ...] = ()
    commentary: bool = False


def harm_ratio(z: float) -> float:
    """|θ|/σ beyond which L1 with λ* = zσ has a larger risk than the naive mean."""

    def excess(theta: float) -> float:
        def loss(x: float) -> float:
            shrunk = float(soft_threshold(np.array(x), np.array(z)))
            return (shrunk - theta) ** 2 * math.exp(-0.5 * (x - theta) ** 2) / math.sqrt(2 * math.pi)

        joints = [theta - 12.0, -z, z, theta + 12.0]
        return sum(quad(loss, a, b)[0] for a, b in pairwise(joints)) - 1.0

    return float(brentq(excess, 0.5, 3.0))


def _section_iv() -> Iterator[Erratum]:
    """Mechanisms, case study, lemmas 1 to 3, theorems 1 and 2."""
    lines = {line.quantity: line for line in case_study()}
    law, t = hd.mechanism("piecewise", epsilon=0.001), 0.3
    half: float = law.half_width  # type: ignore[attr-defined]
    joints = sorted({*law.support, t * (1 + half) - half, t * (1 + half) + half})
    integral = sum(
        quad(lambda x: (x - t) ** 2 * float(law.density(x, t)), a, b)[0] for a, b in pairwise(joints)
    )

    yield Erratum(
        "Variance of Piecewise",
        "IV-C, the equation of Var(t*)",
        "t*/(e^{ε/2m} − 1) + e^{ε/2m + 3}/(3(e^{ε/2m} − 1)²)",
        "t²/(s − 1) + (s + 3)/(3(s − 1)²) with s = e^{ε/2m}",
        "A report is uniform on [−Q, Q] with probability 1/s, Q = (s+1)/(s−1), else uniform of width Q − 1 about "
        "t(Q+1)/2. So E t*² = Q²/(3s) + (1 − 1/s)(t²(Q+1)²/4 + (Q−1)²/12). With Q + 1 = 2s/(s−1) and Q − 1 = 2/(s−1) "
        "this is t²·s/(s−1) + (s+3)/(3(s−1)²); less t², the line above. The paper's 533.210 follows from it.",
        (
            ("σ² of the case study, formula as printed", printed_variance()),
            ("σ² of the case study, right", lines["Piecewise: variance"].value),
            ("Var(t*) at t = 0.3, ε/m = 0.001, right formula", float(law.variance(t))),
            ("the same by quadrature of the density", integral),
        ),
    )

    own = lines["Square wave: probability within 0.05 from the paper's own bias and variance"].value
    wrong = [
        line
        for name, line in lines.items()
        if line.verdict == "wrong" and name.startswith("Square") and "own" not in name
    ]
    yield Erratum(
        "Numbers of the case study",
        "IV-C and Table II",
        f"{len(wrong)} numbers of Square wave, in brackets below",
        "those below",
        "Square wave's bias is (1−a)(½ − 0.55) with 1 − a = (1 − e^{−ε})/ε at ε = 0.001, and its variance the mean "
        "of the paper's own formula over the ten values. Table II's Square row follows neither from these nor from "
        f"the printed −0.049 and 3.365e-5, which give {own:.4f} at ξ = 0.05.",
        tuple((f"{line.quantity} (printed {line.printed})", line.value) for line in wrong),
    )

    wave, common = deviation_on("square_wave"), deviation_on("square_wave", (-1.0, 1.0))
    laws = {
        "Square wave on [0, 1] as in Table II": wave,
        "Square wave on [−1, 1]": common,
        "Piecewise on [−1, 1]": deviation_on("piecewise"),
    }
    rows = [
        (f"probability within {xi:g}, {name}", float(law.probability_within(xi)))
        for xi in TOLERANCES[2:]
        for name, law in laws.items()
    ]
    yield Erratum(
        "Table II compares two domains",
        "IV-C and Table II",
        "if the supremum becomes larger (0.05, 0.1), Square wave is far better than Piecewise",
        "only because Square wave stands on [0, 1] there and Piecewise on [−1, 1]; on a common [−1, 1] Piecewise is "
        "better at every ξ of the table",
        "The paper assumes [−1, 1] for every dimension (III-B, IV). At ε/m = 0.001 Square wave's reports hardly "
        "depend on the value and their mean is the middle of the domain: ½ on [0, 1], close to the data's 0.55 by "
        "chance, but 0 on [−1, 1].",
        (
            ("Square wave on [−1, 1]: bias", float(common.bias)),
            ("Square wave on [0, 1]: bias", float(wave.bias)),
            *rows,
        ),
    )

    yield Erratum(
        "Third moment of Laplace noise",
        "IV-D, the equation of ρ, and the 1.57 % after it",
        "ρ = 3λ³, hence at most 1.57 % at r = 1000",
        "ρ = 6λ³, hence at most 2.69 %",
        "By parts, E|N|³ = (1/λ)∫₀^∞ x³e^{−x/λ}dx = 3λ·(1/λ)∫₀^∞ x²e^{−x/λ}dx = 3λ·E N² = 3λ·2λ² = 6λ³. The paper "
        "writes 3λ/2 for the factor 3λ; Berry–Esseen's bound is then too small.",
        (
            ("λ⁻³E|N|³ by quadrature", quad(lambda x: x**3 * math.exp(-x), 0, math.inf)[0]),
            ("bound at r = 1000 with 6λ³", lines["Laplace: Berry–Esseen bound, 1000 reports"].value),
            ("bound at r = 1000 with 3λ³", lines["Laplace: the same with the paper's 3λ³"].value),
        ),
    )

    yield Erratum(
        "Theorem 2's r_jσ_j",
        "IV-D, Theorem 2",
        "0.33554(ρ + 0.415(r_jσ_j)³)/(r_j^{7/2}σ_j³) with E Var(t*) = (r_jσ_j)²",
        "0.33554(ρ + 0.415 s³)/(s³√r_j) with s² = E Var(t*) = r_jσ_j²",
        "Lemmas 2 and 3 define σ_j² = E Var(t*)/r_j, so E Var(t*) = r_jσ_j², not (r_jσ_j)². The printed bound is "
        "right only if σ_j is read as s/r_j. Besides, the constants 0.33554 and 0.415 are those for identically "
        "distributed terms: reports of a bounded mechanism are such once a user's value is drawn at random with her "
        "report.",
    )

    numbers = []
    for name, epsilon in (("piecewise", 1.0), ("duchi", 1.0), ("hybrid", 0.5), ("hybrid", 1.0)):
        variance = hd.mechanism(name, epsilon=epsilon).variance(np.linspace(-1, 1, 201))
        ratio = float(variance.max() / variance.min())
        numbers.append((f"largest variance over smallest, {name}, ε = {epsilon:g}", ratio))
    yield Erratum(
        "Lemma 1, second half",
        "IV-B, Lemma 1",
        "Var(t*) and δ are correlated to t if Bound(M) = 1; otherwise t* would be independent of t",
        "they may depend on t; under Hybrid above ε* = 0.609 neither does",
        "Hybrid reports by Piecewise with probability α and by Duchi otherwise; both are unbiased, so δ = 0, and Var "
        "= α(t²/(s−1) + (s+3)/(3(s−1)²)) + (1−α)(C² − t²). With α = 1 − 1/s the coefficient of t² is α/(s−1) − (1−α) "
        "= 1/s − 1/s = 0. The report's law does depend on t, through its mean. Lemma 3 does not need this half.",
        tuple(numbers),
    )

    found = []
    sizes: Any = {"users": 10**6, "dims": 100, "sampled": 1, "prior": "uniform"}
    for epsilon in (1.0, 4.0, 8.0):
        law = hd.mechanism("piecewise", epsilon=epsilon)
        ratio = hd.deviation(law, **sizes).mse / hd.deviation(law, variance="paper", **sizes).mse
        found.append((f"exact/paper variance, Piecewise, ε = {epsilon:g}, d = 100, m = 1", ratio))
    yield Erratum(
        "The lemmas drop the sampling of users",
        "IV-B, before Lemma 2",
        "lim (1/r Σ_{i≤r} t_i − 1/n Σ_{i≤n} t_i) = 0, so Var θ̂_j = E Var(t*)/r",
        "Var θ̂_j = E[1/r](V̄ + S²_μ) − S²_μ/n",
        "The difference of the two means does tend to 0, but so does everything else, at the same rate 1/√r: Var of "
        "the sample mean of μ_i = E[t*|t_i] is S²_μ(E[1/r] − 1/n), and it stays a fixed share of the whole as r "
        "grows. It vanishes only for m = d, as in Figures 3 to 5.",
        tuple(found),
    )

    law, n = hd.mechanism("piecewise", epsilon=8.0), 10_000
    one = hd.deviation(law, users=n, dims=2, sampled=1, prior="uniform")
    correlation = -(1 / 3) / n / float(one.variance)
    box = multivariate_normal([0.0, 0.0], [[1.0, correlation], [correlation, 1.0]])
    both = float(box.cdf([1.0, 1.0], lower_limit=[-1.0, -1.0]))
    product = float(one.probability_within(float(one.sd))) ** 2
    yield Erratum(
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
            ("P(both within one standard deviation) by the product", product),
            ("the same with that correlation", both),
        ),
    )


def _sections_v_and_vi() -> Iterator[Erratum]:
    """λ*, lemmas 4 and 5, theorems 3 and 4."""
    yield Erratum(
        "λ* is not defined by the text",
        "V-B, Lemmas 4 and 5",
        "λ*_j = sup|θ̂_j − θ̄_j| (L1); λ*_j = sup (θ̂_j − θ̄_j)/(2θ̄_j) with the normal law's mean for θ̄_j (L2)",
        "a quantile has to be chosen for the supremum, and a reference for θ̄_j",
        "The supremum of a normal variable is infinite (the paper says so itself in IV-B). The mean of the "
        "deviation's normal law is the bias, which is 0 for Laplace and Piecewise: λ* is then infinite and θ* = 0 "
        "whatever was reported. Every claim is therefore judged under all readings, and the figures name theirs.",
    )

    theta, sd, d, z = 0.9, 0.45, 100, 3.0
    rng = generator(1, "counter-example")
    naive = theta + sd * rng.standard_normal((2000, d))
    enhanced = soft_threshold(naive, np.full(d, z * sd))
    better = np.sum((enhanced - theta) ** 2, axis=1) < np.sum((naive - theta) ** 2, axis=1)
    second = counter_example("l2", Reading("3", "noise", "domain"))
    yield Erratum(
        "Theorems 3 and 4: SOME for ALL",
        "V-B, proofs of Theorems 3 and 4",
        "|θ̂_j − θ̄_j| > 1 holds for all j with probability at least 1 − ∫…∫_{[−1,1]^d} f",
        "1 − ∫…∫ f is P(some |θ̂_j − θ̄_j| > 1); all j need Π_j P(|θ̂_j − θ̄_j| > 1)",
        "The complement of “every coordinate lies in [−1, 1]” is “at least one lies outside”. With θ̄_j = 0.9 and "
        "σ_j = 0.45 in each of 100 dimensions, z = 3, the theorem promises an improvement nearly always; there is "
        f"none. For L2 take θ̄_j = {second.true_mean:g}, σ_j = {second.sd:g} and {second.dims:,} dimensions: the "
        "mean of a dimension's gain is negative, so Cantelli's inequality bounds the chance that their sum is "
        "positive. The same is found under every reading of λ*.",
        (
            ("probability as printed (some)", probability_some_exceed(0.0, np.full(d, sd), 1.0)),
            ("probability that the proof needs (all)", probability_all_exceed(0.0, np.full(d, sd), 1.0)),
            ("share of 2,000 simulated collections that L1 improves", float(better.mean())),
            ("L2: probability as printed (some)", second.promised),
            ("L2: probability of an improvement, at most", second.at_most),
        ),
    )

    loss = partial(minimize_scalar, lambda t, k: 0.5 * (t - 1) ** 2 + k * t * t, bounds=(0.0, 1.0))
    once, squared = (float(loss(args=(k,), method="bounded").x) for k in (3, 9))
    yield Erratum(
        "The penalty of L2",
        "V-B, the definition of θ* and the proof of Lemma 5",
        "R(λ* ∘ θ) = ‖λ* ∘ θ‖₂ in the definition, ‖λ* ∘ θ‖₂² = Σ_j λ*_j²θ_j² in the proof",
        "Σ_j λ*_jθ_j², the squared norm weighted by λ*_j and not by its square",
        "The solution used throughout, θ*_j = θ̂_j/(2λ*_j + 1), sets the derivative of ½(θ_j − θ̂_j)² + λ*_jθ_j² to "
        "zero. The penalty of the proof would give θ̂_j/(2λ*_j² + 1), and the norm of the definition is not "
        "separable and has no such solution.",
        (
            ("argmin of ½(θ − 1)² + λθ² at λ = 3, by search", once),
            ("1/(2λ + 1), the paper's solution", 1 / 7),
            ("argmin of ½(θ − 1)² + (λθ)² at λ = 3, by search", squared),
        ),
    )


def _commentary() -> Iterator[Erratum]:
    """When re-calibration harms."""
    yield Erratum(
        "When L1 and L2 harm",
        "V-B, Lemmas 4 and 5",
        "|θ̂_j − θ̄_j| > 1 (L1) and > 2 (L2) as the thresholds of enhancement",
        "L1 harms once |θ̄|/σ exceeds a number near one; L2 with θ* = 0 once |θ̄| > σ",
        "The lemmas give sufficient conditions on the unknown deviation. In terms of what is known, soft "
        "thresholding at zσ has risk above σ² as soon as |θ̄|/σ > h(z), found by quadrature below; answering zero "
        "has risk θ̄² and so harms iff |θ̄| > σ; L2 with reference 1 and λ* = zσ/2 harms iff θ̄² > 2σ/z + σ².",
        tuple((f"h({z:g})", harm_ratio(z)) for z in (1.0, 2.0, 3.0)),
        commentary=True,
    )

    wave, piecewise = (hd.mechanism(name, epsilon=1.0) for name in ("square_wave", "piecewise"))
    grid = np.linspace(0, 1, 2001)
    slope = wave.calibration.slope
    calibrated = 4 * float(np.mean(wave.variance(grid))) / slope**2
    other = float(np.mean(piecewise.variance(2 * grid - 1)))
    yield Erratum(
        "Square wave's small error is shrinkage",
        "VI, Fig. 4",
        "Square wave's deviation is already small enough in high-dimensional space",
        "its raw mean is a·θ̄ with a = 1 − (1 − e^{−ε})/ε; divided by a it is no better than Piecewise",
        "At ε/d near zero a ≈ ε/2d ≈ 0: the raw mean of every dimension is the middle of the domain, and its MSE "
        "that of answering zero. Calibrated, (2u* − 1)/a is unbiased with variance 4Var/a²; the figures show it "
        "beside the raw one.",
        (("calibrated Square wave over Piecewise, variance on uniform data, ε = 1", calibrated / other),),
        commentary=True,
    )


def errata() -> list[Erratum]:
    """Every erratum, then the commentary, with their numbers computed."""
    return [*_section_iv(), *_sections_v_and_vi(), *_commentary()]
