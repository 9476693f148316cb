"""The errata of the paper: the printed statement, the correct one, the derivation, and numbers computed here."""

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
from hdr4me.paper.case_study import (
    TOLERANCES,
    case_study,
    deviation_on,
    printed_variance,
    square_wave_ahead_from,
)
from hdr4me.paper.cells import law_for
from hdr4me.paper.methods import LambdaChoice
from hdr4me.paper.theory import counter_example
from hdr4me.recalibration.hdr4me import shrink, soft_threshold
from hdr4me.simulation.sums import generator


@dataclass(frozen=True)
class Erratum:
    """An error of the paper with its correction, or a `remark` on a statement that is correct but incomplete."""

    name: str
    title: str
    where: str
    printed: str
    right: str
    derivation: str
    numbers: tuple[tuple[str, float], ...] = ()
    remark: bool = False


def harm_ratio(z: float) -> float:
    """|θ̄_j|/σ_j above which L1 with λ*_j = zσ_j has a larger risk than the naive mean."""

    def excess(theta: float) -> float:
        def loss(x: float) -> float:
            shrunk = float(soft_threshold(np.array(x), np.array(z)))
            return (shrunk - theta) ** 2 * math.exp(-0.5 * (x - theta) ** 2) / math.sqrt(2 * math.pi)

        joints = [theta - 12.0, -z, z, theta + 12.0]
        return sum(quad(loss, a, b)[0] for a, b in pairwise(joints)) - 1.0

    return float(brentq(excess, 0.5, 3.0))


def worst_ratio(name: str, epsilon: float) -> float:
    """The worst-case variance of a mechanism over that of Duchi, for one value with this budget."""
    t = np.linspace(-1, 1, 201)
    one, duchi = (float(law_for(law, epsilon).variance(t).max()) for law in (name, "duchi"))
    return one / duchi


def calibrated_ratio(epsilon: float) -> float:
    """The variance of Square wave over that of Piecewise on uniform data, once its bias is removed."""
    wave, piecewise = law_for("square_wave", epsilon), law_for("piecewise", epsilon)
    grid = np.linspace(-1, 1, 2001)
    return float(np.mean(wave.variance(grid)) / wave.calibration.slope**2 / np.mean(piecewise.variance(grid)))


def sampling_ratio(name: str, epsilon: float, sampled: int = 1) -> float:
    """Var θ̂_j over that of Lemmas 2 and 3, for 10^6 users with 100 uniform dimensions and the budget ε for each."""
    sizes: Any = {"users": 10**6, "dims": 100, "sampled": sampled, "prior": "uniform"}
    law = law_for(name, epsilon)
    return float(hd.deviation(law, **sizes).mse / hd.deviation(law, variance_formula="paper", **sizes).mse)


def _section_ii() -> Iterator[Erratum]:
    yield Erratum(
        "piecewise-and-duchi",
        "Piecewise improves on Duchi above ε/m = 1.29 only",
        "II-A",
        "with continuous and bounded outputs, the utilities of Piecewise and Hybrid are improved over Duchi",
        "the worst-case variance of Piecewise is smaller than that of Duchi only for ε/m > 1.29; that of Hybrid is "
        "never larger",
        "The largest variance of Piecewise, at |t| = 1, is (Q² − 1)/3 by the next erratum; that of Duchi, at "
        "t = 0, is ((e^ε + 1)/(e^ε − 1))². As ε → 0 both grow as 1/ε², with the ratio 16/3 : 4 = 4/3. The budgets of "
        "section VI for Piecewise are ε/m ≤ 0.032.",
        (
            ("worst-case variance, Piecewise over Duchi, ε/m = 0.001", worst_ratio("piecewise", 0.001)),
            ("worst-case variance, Hybrid over Duchi, ε/m = 0.001", worst_ratio("hybrid", 0.001)),
            (
                "ε/m at which the two are equal",
                float(brentq(lambda e: worst_ratio("piecewise", e) - 1, 0.5, 3)),
            ),
        ),
    )


def _section_iv() -> Iterator[Erratum]:
    """The mechanisms, the case study, Lemmas 1 to 3, Theorems 1 and 2."""
    lines = {line.quantity: line for line in case_study()}
    law, t = hd.mechanism("piecewise", epsilon=0.001), 0.3
    half: float = law.half_width  # type: ignore[attr-defined]
    joints = sorted({*law.support, t * (1 + half) - half, t * (1 + half) + half})

    def moment(center: float) -> float:
        parts = (
            quad(lambda x: (x - center) ** 2 * float(law.density(x, t)), a, b)[0] for a, b in pairwise(joints)
        )
        return sum(parts)

    yield Erratum(
        "piecewise-variance",
        "Variance of Piecewise",
        "IV-C, equation (14)",
        "t*/(e^{ε/2m} − 1) + e^{ε/2m + 3}/(3(e^{ε/2m} − 1)²)",
        "t²/(e^{ε/2m} − 1) + (e^{ε/2m} + 3)/(3(e^{ε/2m} − 1)²)",
        "In terms of the paper's Q = (e^{ε/2m} + 1)/(e^{ε/2m} − 1), a report is uniform on [−Q, Q] with probability "
        "(Q − 1)/(Q + 1), and otherwise uniform on an interval of width Q − 1 with center t(Q + 1)/2. So E t*² = (Q − "
        "1)/(Q + 1)·Q²/3 + 2/(Q + 1)·(t²(Q + 1)²/4 + (Q − 1)²/12) = t²(Q + 1)/2 + (Q − 1)(2Q − 1)/6. Subtracting t² "
        "gives t²(Q − 1)/2 + (Q − 1)(2Q − 1)/6, which is the corrected formula. The printed 533.210 follows from the "
        "corrected formula, not from the printed one. Equation (14) also writes the report t* where it means the value "
        "t.",
        (
            ("σ_j² of the case study, printed formula", printed_variance()),
            ("σ_j² of the case study, corrected formula", lines["Piecewise: variance"].value),
            ("Var(t*) at t = 0.3, ε/m = 0.001, corrected formula", float(law.variance(t))),
            ("the same by quadrature of the density", moment(t)),
        ),
    )
    yield Erratum(
        "piecewise-integral",
        "The integrals of Piecewise's variance omit −t²",
        "IV-C, equation (14)",
        "E(t*²) − E²(t*) is set equal to three integrals of x² times the density",
        "the three integrals are E(t*²) alone; −E²(t*) = −t² has to be added",
        "Piecewise is unbiased, so E(t*) = t. The result below the integrals contains the term −t², the integrals do "
        "not. At ε/m = 0.001 the difference is small in relation to the variance, at large budgets it is not.",
        (
            ("the three integrals at t = 0.3, ε/m = 0.001", moment(0.0)),
            ("the same less Var(t*): t²", moment(0.0) - moment(t)),
        ),
    )

    own = lines["Square wave: probability within 0.05 from the printed bias and variance"].value
    wrong = [
        line
        for name, line in lines.items()
        if line.verdict == "wrong" and name.startswith("Square") and "printed" not in name
    ]
    yield Erratum(
        "case-study-numbers",
        "Numbers of the case study",
        "IV-C, equations (19) and (20), and Table II",
        f"{len(wrong)} numbers of Square wave, in parentheses below",
        "the numbers below",
        "The bias of Square wave on [0, 1] is δ_j = (1 − e^{−ε/m})/(ε/m)·(½ − 0.55) with ε/m = 0.001, and its variance "
        "is the mean of equation (18) over the ten values. The Square row of Table II follows neither from these nor "
        f"from the printed −0.049 and 3.365e-5, which give {own:.4f} at ξ_j = 0.05.",
        tuple((f"{line.quantity} (printed {line.printed})", line.value) for line in wrong),
    )

    laws = {
        f"{title} on [{low:g}, 1]": deviation_on(name, (low, 1.0))
        for low in (0.0, -1.0)
        for name, title in (("piecewise", "Piecewise"), ("square_wave", "Square wave"))
    }
    rows = [
        (f"probability within {xi:g}, {name}", float(law.probability_within(xi)))
        for xi in TOLERANCES[2:]
        for name, law in laws.items()
    ]
    yield Erratum(
        "table-2-domains",
        "Table II compares two domains",
        "IV-C, Table II",
        "Piecewise on [−1, 1] beside Square wave on [0, 1]",
        "on a common [0, 1] the probabilities of Piecewise double and the conclusion of the paper holds: Square wave "
        "is far better at ξ_j = 0.05 and 0.1; on a common [−1, 1] Piecewise is better at every ξ_j of the table, and "
        "Square wave is better from about 0.53 on",
        "Section III-B assumes [−1, 1] for every dimension. At ε/m = 0.001 the reports of Square wave hardly depend "
        "on the value, and their mean is the middle of the domain. On [0, 1] this is ½, which is close to the mean "
        "0.55 of the ten values; on [−1, 1] it is 0.",
        (
            ("bias δ_j, Square wave on [0, 1]", float(laws["Square wave on [0, 1]"].bias)),
            ("bias δ_j, Square wave on [-1, 1]", float(laws["Square wave on [-1, 1]"].bias)),
            *rows,
            ("ξ_j from which Square wave is better, both on [-1, 1]", square_wave_ahead_from()),
        ),
    )

    yield Erratum(
        "third-moment",
        "Third moment of Laplace noise",
        "IV-D, equation (21), and the 1.57 % after Theorem 2",
        "ρ = 3λ³ for Lap(λ), hence at most 1.57 % at r_j = 1000",
        "ρ = 6λ³, hence at most 2.69 %",
        "By parts, ρ = (1/λ)∫₀^∞ x³e^{−x/λ}dx = 3λ·(1/λ)∫₀^∞ x²e^{−x/λ}dx = 3λ·2λ² = 6λ³. The paper has the factor "
        "3λ/2 instead of 3λ, which makes the Berry–Esseen bound too small.",
        (
            ("ρ/λ³ by quadrature", quad(lambda x: x**3 * math.exp(-x), 0, math.inf)[0]),
            ("bound at r_j = 1000 with 6λ³", lines["Laplace: Berry–Esseen bound, 1000 reports"].value),
            ("bound at r_j = 1000 with 3λ³", lines["Laplace: the same with the printed 3λ³"].value),
        ),
    )

    yield Erratum(
        "theorem-2",
        "The factor r_jσ_j in Theorem 2",
        "IV-D, Theorem 2, equation (22)",
        "0.33554(ρ + 0.415(r_jσ_j)³)/(r_j^{7/2}σ_j³), with E Var(t*) = (r_jσ_j)²",
        "0.33554(ρ + 0.415 r_j^{3/2}σ_j³)/(r_j²σ_j³), with E Var(t*) = r_jσ_j²",
        "Lemmas 2 and 3 define σ_j² = E Var(t*)/r_j, so E Var(t*) = r_jσ_j². The Berry–Esseen bound of the mean of "
        "r_j terms with variance v and third absolute moment ρ is 0.33554(ρ + 0.415v^{3/2})/(v^{3/2}√r_j); v = "
        "r_jσ_j² gives the corrected expression. The constants 0.33554 and 0.415 hold for identically distributed "
        "terms. The reports of a bounded mechanism are identically distributed if each value is drawn at random "
        "together with its report. The text after the theorem takes r_jσ_j for constant; √r_j·σ_j is.",
    )

    numbers = []
    for name, epsilon in (("piecewise", 1.0), ("duchi", 1.0), ("hybrid", 0.5), ("hybrid", 1.0)):
        variance = hd.mechanism(name, epsilon=epsilon).variance(np.linspace(-1, 1, 201))
        ratio = float(variance.max() / variance.min())
        numbers.append((f"largest variance over smallest, {name}, ε = {epsilon:g}", ratio))
    yield Erratum(
        "lemma-1",
        "Lemma 1, second half",
        "IV-B, Lemma 1",
        "Var(t*) and δ depend on t if Bound(M) = 1; otherwise t* would be independent of t",
        "they may depend on t; under Hybrid with ε > 0.609 neither does",
        "Hybrid uses Piecewise with probability 1 − e^{−ε/2} and Duchi otherwise. Both are unbiased, so δ = 0. The "
        "coefficient of t² in the variance is (1 − e^{−ε/2})/(e^{ε/2} − 1) for Piecewise and −e^{−ε/2} for Duchi; "
        "their sum is zero. The distribution of the report depends on t through its mean. Lemma 3 does not need this "
        "half.",
        tuple(numbers),
    )

    found = [
        (f"exact/paper variance, {name}, ε = {epsilon:g}, d = 100, m = 1", sampling_ratio(name, epsilon))
        for name, epsilon in (("laplace", 8.0), ("piecewise", 1.0), ("piecewise", 4.0), ("piecewise", 8.0))
    ]
    yield Erratum(
        "sampling-of-users",
        "Lemmas 2 and 3 omit the sampling of users",
        "IV-B, equation (6), Lemmas 2 and 3",
        "lim (1/r_j Σ_{i≤r_j} t_ij − 1/n Σ_{i≤n} t_ij) = 0, hence Var θ̂_j = E Var(t*)/r_j",
        "Var θ̂_j = E[1/r_j](E Var(t*) + S²) − S²/n, where S² is the variance of E[t*|t_ij] over the users",
        "The difference of the two means tends to 0, but at the same rate 1/√r_j as the noise. The variance of the "
        "mean of E[t*|t_ij] over the sampled users is S²(E[1/r_j] − 1/n), a fixed share of the total as r_j grows. It "
        "vanishes for m = d, the setting of Figures 3 to 5.",
        tuple(found),
    )

    law, n = law_for("piecewise", 1.0), 10_000
    t_values = np.linspace(-1, 1, 2001)
    lyapunov = float(np.mean(law.abs_third_moment(t_values)) / np.mean(law.variance(t_values)) ** 1.5)
    yield Erratum(
        "lemma-3-continuous",
        "The proof of Lemma 3 does not cover continuous data",
        "IV-B, proof of Lemma 3",
        "reports are grouped by equal values, and the central limit theorem is applied within each group; continuous "
        "data are “discretized with sampling”",
        "the lemma holds for all data, by Lyapunov's theorem for independent, not identically distributed reports",
        "Values of a continuous distribution are all different, so each group has one report and no limit theorem "
        "applies within it. Discretizing changes the data. The reports t*_ij given the values are independent and "
        "bounded. Lyapunov's condition asks that Σ_i E|t*_ij − E t*_ij|³/(Σ_i Var(t*_ij))^{3/2} → 0; this ratio is at "
        "most a constant over √r_j where the average variance has a positive lower bound. The proof also orders the "
        "reports t*_ij where it needs the values t_ij.",
        (
            ("Lyapunov's ratio times √r_j, Piecewise, ε = 1, uniform data", lyapunov),
            ("Lyapunov's ratio at r_j = 10,000", lyapunov / math.sqrt(n)),
        ),
    )

    law = hd.mechanism("piecewise", epsilon=8.0)
    one = hd.deviation(law, users=n, dims=2, sampled=1, prior="uniform")
    correlation = -(1 / 3) / n / float(one.variance)
    box = multivariate_normal([0.0, 0.0], [[1.0, correlation], [correlation, 1.0]])
    both = float(box.cdf([1.0, 1.0], lower_limit=[-1.0, -1.0]))
    product = float(one.probability_within(float(one.sd))) ** 2
    yield Erratum(
        "theorem-1-product",
        "The product form of Theorem 1 needs m = d",
        "IV-B, Theorem 1",
        "f(θ̂ − θ̄) = Π_j f(θ̂_j − θ̄_j), because each dimension is perturbed independently",
        "for m < d the errors of the dimensions are correlated: Cov(θ̂_j, θ̂_k) = −C_jk(d − m)/(nm(d − 1)), where "
        "C_jk is the covariance of the data over the users",
        "The perturbations are independent, but a single draw decides which dimensions a user reports: the user "
        "reports both j and k with probability m(m − 1)/(d(d − 1)), which is less than (m/d)². Let I_ij indicate that "
        "user i reports dimension j. To first order θ̂_j − θ̄_j = (d/nm)Σ_i I_ij(t*_ij − θ̄_j), so the covariance is "
        "(d/nm)²·n·C_jk(m(m − 1)/(d(d − 1)) − m²/d²). It has the order of the variance and therefore does not vanish "
        "as n grows. It vanishes for m = d or C_jk = 0.",
        (
            (
                "correlation of two errors, equal uniform dimensions, Piecewise, d = 2, m = 1, ε = 8",
                correlation,
            ),
            ("P(both within one standard deviation) by the product", product),
            ("the same with that correlation", both),
        ),
    )

    wave_law = law_for("square_wave", 1.0)
    slope, bias = wave_law.calibration.slope, wave_law.bias(np.array([-1.0, 1.0]))
    yield Erratum(
        "calibration",
        "Calibration needs the unknown value",
        "IV-B, step 2 of the framework",
        "the collector calibrates the perturbed values by δ_ij = E(t*_ij − t_ij)",
        "δ_ij = δ(t_ij) is known to the collector only if it does not depend on t_ij; otherwise the mean can be "
        "calibrated where E[t*|t] is an affine function of t",
        "For a bounded mechanism δ(t) depends on t by Lemma 1, and the collector does not know t_ij. If E[t*|t] = "
        "slope·t + intercept, then (θ̂_j − intercept)/slope is unbiased without knowledge of any value. The figures of "
        "the paper use θ̂ without calibration, and so do ours; the calibrated mean of Square wave is a separate curve.",
        (
            ("δ(−1) of Square wave on [-1, 1], ε/m = 1", float(bias[0])),
            ("δ(1) of Square wave on [-1, 1], ε/m = 1", float(bias[1])),
            ("slope of E[t*|t]", slope),
        ),
    )


def _section_v() -> Iterator[Erratum]:
    """λ*, Lemmas 4 and 5, Theorems 3 and 4."""
    yield Erratum(
        "lambda-star",
        "λ* is not defined by the text",
        "V-B, Lemmas 4 and 5",
        "λ*_j = sup|θ̂_j − θ̄_j| (L1); λ*_j = sup (θ̂_j − θ̄_j)/(2θ̄_j) with the mean of the normal distribution for "
        "θ̄_j (L2)",
        "a quantile has to be chosen for the supremum, and a reference for θ̄_j",
        "The supremum of a normal variable is infinite, as section IV-B states. The mean of the normal distribution of "
        "the deviation is the bias, which is 0 for Laplace and Piecewise: λ*_j is then infinite and θ*_j = 0 for every "
        "set of reports. Every claim is therefore judged under all choices of λ*, and the figures name their choice.",
    )

    wave = deviation_on("square_wave")
    δ, σ, z = float(wave.bias), float(wave.sd), 3.0
    weight = (abs(δ) + z * σ) / (2 * δ)
    yield Erratum(
        "lemma-5-positive",
        "The weight of Lemma 5 can be negative",
        "V-B, Lemma 5 and its proof",
        "λ*_j = sup (θ̂_j − θ̄_j)/(2θ̄_j); “our framework implies λ*_j > 0”",
        "λ*_j = sup|θ̂_j − θ̄_j|/(2|θ̄_j|)",
        "The lemma recommends the bias for θ̄_j. The bias may be negative, as for Square wave in the case study, and "
        "then λ*_j < 0 for every positive supremum. The divisor 2λ*_j + 1 can then be negative too, which reverses "
        "the sign of the mean, or zero. The inequality |θ*_j| ≤ |θ̄_j| of the proof needs a positive divisor.",
        (
            ("λ*_j in the case study, Square wave, sup = |δ_j| + 3σ_j", weight),
            ("θ*_j/θ̂_j with this weight", 1 / (2 * weight + 1)),
            ("θ*_j/θ̂_j with the corrected weight", 1 / (2 * abs(weight) + 1)),
        ),
    )

    theta, sd, d = 0.9, 0.45, 100
    rng = generator(1, "counter-example")
    naive = theta + sd * rng.standard_normal((2000, d))
    enhanced = soft_threshold(naive, np.full(d, z * sd))
    better = np.sum((enhanced - theta) ** 2, axis=1) < np.sum((naive - theta) ** 2, axis=1)
    second = counter_example("l2", LambdaChoice("3", "noise", "domain"))
    yield Erratum(
        "quantifier",
        "Quantifier error in the proofs of Theorems 3 and 4",
        "V-B, proofs of Theorems 3 and 4",
        "|θ̂_j − θ̄_j| > 1 holds for all j with probability at least 1 − ∫…∫_{[−1,1]^d} f",
        "1 − ∫…∫ f is the probability that |θ̂_j − θ̄_j| > 1 for some j; for all j it is Π_j P(|θ̂_j − θ̄_j| > 1)",
        "The complement of “every coordinate lies in [−1, 1]” is “at least one coordinate lies outside”. With θ̄_j = "
        "0.9 and σ_j = 0.45 in each of 100 dimensions and λ*_j = 3σ_j, Theorem 3 states an improvement with "
        f"probability 0.93, and there is none. For L2, let θ̄_j = {second.true_mean:g} and σ_j = {second.sd:g} in "
        f"each of {second.dims:,} dimensions: the expected gain of a dimension is negative, and Cantelli's inequality "
        "bounds the probability that the sum of the gains is positive. The same holds under every choice of λ*.",
        (
            ("printed probability (some j)", probability_some_exceed(0.0, np.full(d, sd), 1.0)),
            ("probability that the proof needs (all j)", probability_all_exceed(0.0, np.full(d, sd), 1.0)),
            ("share of 2,000 simulated collections that L1 improves", float(better.mean())),
            ("L2: printed probability (some j)", second.promised),
            ("L2: probability of an improvement, at most", second.at_most),
        ),
    )

    loss = partial(minimize_scalar, lambda t, k: 0.5 * (t - 1) ** 2 + k * t * t, bounds=(0.0, 1.0))
    once, squared = (float(loss(args=(k,), method="bounded").x) for k in (3, 9))
    yield Erratum(
        "l2-penalty",
        "The penalty of L2",
        "V-B, equations (23) and (36)",
        "R(λ* ∘ θ) = ‖λ* ∘ θ‖₂ in the definition, ‖λ* ∘ θ‖₂² = Σ_j λ*_j²θ_j² in the proof of Lemma 5",
        "Σ_j λ*_jθ_j², the squared norm weighted by λ*_j and not by its square",
        "The solution used throughout, θ*_j = θ̂_j/(2λ*_j + 1), sets the derivative of ½(θ_j − θ̂_j)² + λ*_jθ_j² to "
        "zero. The penalty of the proof gives θ̂_j/(2λ*_j² + 1). The norm of the definition is not separable and has "
        "no such solution.",
        (
            ("argmin of ½(θ − 1)² + λ*θ² at λ* = 3, by search", once),
            ("1/(2λ* + 1), the solution of the paper", 1 / 7),
            ("argmin of ½(θ − 1)² + (λ*θ)² at λ* = 3, by search", squared),
        ),
    )


def _remarks() -> Iterator[Erratum]:
    """Statements that are correct and incomplete."""
    rng = generator(1, "lemma 5")
    size = 200_000
    true = rng.uniform(-1, 1, size)
    away = rng.choice([-1.0, 1.0], size) * (1 + rng.exponential(1.0, size))
    means, weights = true + away, rng.exponential(1.0, size)
    closer = np.abs(shrink(means, weights) - true) < np.abs(means - true)
    yield Erratum(
        "lemma-5-threshold",
        "Lemma 5 holds with the threshold 1",
        "V-B, Lemma 5 and Theorem 4",
        "L2 improves accuracy in the j-th dimension if |θ̂_j − θ̄_j| > 2",
        "|θ̂_j − θ̄_j| > 1 is enough, for every λ*_j > 0; Theorem 4 may use 1 too",
        "Let g(x) = (x − θ̄_j)². It is convex, g(θ̂_j) > 1 and g(0) = θ̄_j² ≤ 1. L2 moves θ̂_j to the point θ*_j = "
        "(1 − w)·0 + w·θ̂_j with w = 1/(2λ*_j + 1) < 1, so g(θ*_j) ≤ (1 − w)g(0) + w·g(θ̂_j) < g(θ̂_j). The same proof "
        "covers L1, where w = max(1 − λ*_j/|θ̂_j|, 0).",
        (("violations in 200,000 random draws beyond the threshold 1", float(np.sum(~closer))),),
        remark=True,
    )
    yield Erratum(
        "when-harmful",
        "When L1 and L2 increase the error",
        "V-B, Lemmas 4 and 5",
        "|θ̂_j − θ̄_j| > 1 (L1) and > 2 (L2) are the thresholds of enhancement",
        "L1 increases the expected error where |θ̄_j|/σ_j exceeds a number near one; L2 with θ* = 0 where |θ̄_j| > σ_j",
        "The lemmas give sufficient conditions on the unknown deviation. In terms of θ̄_j and σ_j, soft thresholding "
        "at λ*_j = zσ_j has a risk above σ_j² where |θ̄_j|/σ_j > h(z), computed by quadrature below. The estimate "
        "zero has the risk θ̄_j², which is larger than σ_j² where |θ̄_j| > σ_j. L2 with reference 1 and λ*_j = zσ_j/2 "
        "increases the risk where θ̄_j² > 2σ_j/z + σ_j².",
        tuple((f"h({z:g})", harm_ratio(z)) for z in (1.0, 2.0, 3.0)),
        remark=True,
    )

    yield Erratum(
        "square-wave-shrinkage",
        "The small error of Square wave is shrinkage",
        "VI, Fig. 4",
        "the deviation of Square wave is already small enough in high-dimensional space",
        "on [−1, 1] its mean is slope·θ̄_j with slope = 1 − (1 − e^{−ε/m})/(ε/m); divided by the slope it is no better "
        "than Piecewise",
        "For ε/m near zero the slope is about ε/2m. The mean of every dimension is then close to the middle of the "
        "domain, and its MSE is that of the estimate zero. The calibrated mean is unbiased and has the variance "
        "divided by slope²; the figures show both.",
        (("calibrated Square wave over Piecewise, variance on uniform data, ε = 1", calibrated_ratio(1.0)),),
        remark=True,
    )


def errata() -> list[Erratum]:
    """Every erratum in the order of the paper, then the remarks, with their numbers."""
    return [*_section_ii(), *_section_iv(), *_section_v(), *_remarks()]
