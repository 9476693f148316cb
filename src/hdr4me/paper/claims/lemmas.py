"""The claims of the lemmas and theorems, of sections II-A and V, checked by formulas and by the studies of `theory`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product

import numpy as np
from scipy.stats import norm

from hdr4me.framework.normal import berry_esseen_bound
from hdr4me.paper.cells import MECHANISMS, law_for
from hdr4me.paper.claims.claim import GENERAL, Beyond, Finding, Section, either, span
from hdr4me.paper.methods import LambdaChoice
from hdr4me.paper.studies import Results
from hdr4me.paper.theory import GENERAL_CASES, PAPER_CASES, REPORTS, SAMPLED_BUDGETS

LEMMAS = Section("theory")

_FAMILY = 0.01  # False-alarm rate of the tests of Theorem 1 together.
_TOLERABLE = 0.05  # “Tolerable”: every probability is correct to within 0.05.
_FEW = 10  # “Insufficient”: ten reports in a dimension.
_BOUNDED = ("duchi", "piecewise", "hybrid", "square_wave")
_ALL_CASES = (*PAPER_CASES, *GENERAL_CASES)


def _flags(names: Sequence[str]) -> dict[str, bool]:
    """Whether the variance or the bias of a report depends on the value, beyond rounding errors."""
    flags = {}
    for name, epsilon in product(names, (0.1, 0.5, 1.0, 4.0)):
        law = law_for(name, epsilon)
        t = np.linspace(*law.domain, 401)
        variance, bias = law.variance(t), law.bias(t)
        flags[f"{name} at ε = {epsilon:g}"] = bool(
            np.ptp(variance) > 1e-9 * variance.max() or np.ptp(bias) > 1e-9
        )
    return flags


_MORE = "With Duchi at ε = 1, Piecewise at ε = 8 and Square wave at ε = 8"


def _lemma1(results: Results, *, names: Sequence[str]) -> Finding:
    flags = _flags(names)
    constant = [case for case, depends in flags.items() if not depends]
    return either(
        not constant,
        f"variance or bias depend on the value in {len(flags) - len(constant)} of {len(flags)} cases"
        + (f"; not in: {', '.join(constant)}" if constant else ""),
        "The position of the band depends on the value, and for these mechanisms the variance does too.",
        "Hybrid is unbiased. Above ε* = 0.609 it mixes Piecewise, whose variance increases with t², and Duchi, whose "
        "variance decreases with t², and the two terms cancel.",
    )


def _theorem1_some(results: Results) -> Finding:
    study = results.study("joint")
    parts, holds = [], True
    for epsilon in SAMPLED_BUDGETS:
        place = f"some/{epsilon:g}"
        correlation, repeats = study[f"{place}/correlation"], study[f"{place}/repeats"]
        holds &= abs(correlation) < float(norm.isf(_FAMILY / 4)) / repeats**0.5
        parts.append(
            f"ε = {epsilon:g}: correlation {correlation:.3f} (predicted "
            f"{study[f'{place}/correlation predicted']:.3f}), both within one standard deviation with probability "
            f"{study[f'{place}/both within']:.3f}, by the product form {study[f'{place}/both within, product']:.3f}"
        )
    return Finding(
        holds,
        "; ".join(parts),
        "A user who reports one dimension does not report the other. Therefore Cov(θ̂_j, θ̂_k) = "
        "−C_jk(d − m)/(nm(d − 1)), where C_jk is the covariance of the data. It is zero for m = d or C_jk = 0.",
    )


def _bound(results: Results, *, cases: Sequence[tuple[str, float]]) -> Finding:
    study = results.study("normal")
    beyond, wrong = [], 0
    for name, epsilon in cases:
        for r in REPORTS:
            place = f"{name}/{epsilon:g}/{r}"
            distance = study[f"{place}/distance"] - study["chance"]
            wrong += distance > study[f"{place}/bound"]
            if distance > study[f"{place}/printed"]:
                beyond.append(
                    f"{name} at ε = {epsilon:g}, r = {r}: distance {study[f'{place}/distance']:.3f}, printed bound "
                    f"{study[f'{place}/printed']:.3f}, corrected bound {study[f'{place}/bound']:.3f}"
                )
    total = len(cases) * len(REPORTS)
    return either(
        not beyond,
        f"the distance exceeds the printed bound in {len(beyond)} of {total} cases and the corrected bound in {wrong}"
        + (f" ({'; '.join(beyond[:3])}{' …' if len(beyond) > 3 else ''})" if beyond else ""),
        "These distributions are symmetric or nearly symmetric: the distance decreases with 1/r, faster than the "
        "bound.",
        "With σ_j² = E Var(t*)/r_j the printed expression divides ρ by a factor r_j^{3/2} too many. The corrected "
        "bound holds in every case.",
    )


def _tolerable(results: Results, *, cases: Sequence[tuple[str, float]]) -> Finding:
    study = results.study("normal")
    found = {case: study[f"{case[0]}/{case[1]:g}/{_FEW}/distance"] for case in cases}
    (name, epsilon), worst = max(found.items(), key=lambda item: item[1])
    promised = float(berry_esseen_bound(6 * 2**3, 2 * 2**2, _FEW))
    bound = f"The bound of Theorem 2 for Laplace at {_FEW} reports is {100 * promised:.0f} %."
    return either(
        worst - study["chance"] <= _TOLERABLE,
        f"with {_FEW} reports the distance is {span(list(found.values()))}, largest for {name} at ε = {epsilon:g}",
        f"{bound} The distance is far smaller, because at these budgets a report is nearly uniform or Laplace noise.",
        f"{bound} Where a report is close to the value itself, or one of two values, the mean of ten reports is not "
        "normal.",
    )


def _lemma(results: Results, choice: LambdaChoice, *, method: str) -> Finding:
    study = results.study("lemmas")
    name = f"{method}/z{choice.width}" + (f"/{choice.reference}" if method == "l2" else "")
    share, below = study[name], study[f"{name}/below"]
    choice.note(share, below)
    return Finding(
        share == 1.0,
        f"closer in {100 * share:.4g} % of {study[f'{method}/beyond']:.0f} dimensions beyond the threshold, in "
        f"{100 * below:.3g} % of those below",
        "Both methods move θ̂_j towards zero and not past it. The squared error is convex on the segment from θ̂_j to "
        "0, where it is larger than 1 at θ̂_j and at most θ̄_j² ≤ 1 at 0. So the lemma holds for every λ*_j > 0, and "
        "the threshold 1 is enough for L2 too.",
    )


@LEMMAS(
    "square-wave-superior",
    "II-A",
    "Square wave's perturbation is more centered than Piecewise, and the utility is therefore superior.",
    "once its bias is calibrated away its variance is smaller than Piecewise's, on uniform data at six budgets",
)
def _square_superior(results: Results) -> Finding:
    grid = np.linspace(-1, 1, 2001)
    ratios = {}
    for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0, 8.0):
        wave, piecewise = law_for("square_wave", epsilon), law_for("piecewise", epsilon)
        calibrated = float(np.mean(wave.variance(grid))) / wave.calibration.slope**2
        ratios[epsilon] = calibrated / float(np.mean(piecewise.variance(grid)))
    bias = float(law_for("square_wave", 1.0).bias(0.5))
    return Finding(
        all(value < 1 for value in ratios.values()),
        "variance of the calibrated Square wave over Piecewise's, uniform data: "
        + "; ".join(f"ε = {epsilon:g}: {value:.5g}" for epsilon, value in ratios.items())
        + f"; uncalibrated, its mean is off by {bias:.3f} at t = 0.5 and ε = 1, however many report",
        "Its reports are less spread because they are shrunk towards the middle of the domain; once that is undone, "
        "they tell less than Piecewise's.",
    )


@LEMMAS(
    "lemma-1-unbounded",
    "IV-B, Lemma 1",
    "Var(t*) and δ are deterministic if Bound(M) = 0.",
    "neither depends on the value, for Laplace, SCDF and Staircase at four budgets",
)
def _lemma1_unbounded(results: Results) -> Finding:
    flags = _flags(("laplace", "scdf", "staircase"))
    return Finding(
        not any(flags.values()),
        f"variance and bias are the same at 401 values in {sum(not f for f in flags.values())} of {len(flags)} cases",
        "The noise does not depend on the value.",
    )


LEMMAS(
    "lemma-1-bounded",
    "IV-B, Lemma 1",
    "Var(t*) and δ are correlated to t if Bound(M) = 1.",
    "variance or bias depend on the value, for Piecewise and Square wave at four budgets",
    beyond=Beyond(
        GENERAL, "For every bounded mechanism at the same budgets", partial(_lemma1, names=_BOUNDED)
    ),
)(partial(_lemma1, names=("piecewise", "square_wave")))


@LEMMAS(
    "theorem-1-jointly",
    "IV-B, Theorem 1",
    "The pdf of θ̂ − θ̄ is the product of the dimensions' normal densities.",
    "with m = d, on correlated data, Σz² follows a chi-square distribution and no two dimensions are significantly "
    "correlated (false-alarm rate 1 % over all tests)",
    beyond=Beyond(GENERAL, "With m < d (one of two equal dimensions, Piecewise)", _theorem1_some),
)
def _theorem1_all(results: Results) -> Finding:
    study = results.study("joint")
    p_values = {name: study[f"all/{name}/ks p-value"] for name in MECHANISMS}
    largest = {name: study[f"all/{name}/largest correlation in s.e."] for name in MECHANISMS}
    tests = len(MECHANISMS) * (1 + study["all/pairs"])
    limit = float(norm.isf(_FAMILY / tests / 2))
    return Finding(
        min(p_values.values()) > _FAMILY / tests and max(largest.values()) < limit,
        "; ".join(
            f"{MECHANISMS[name]}: Σz² against chi-square p = {p_values[name]:.3f}, largest correlation of two "
            f"dimensions {largest[name]:.2f} standard errors"
            for name in MECHANISMS
        )
        + f" (limit {limit:.2f})",
        "With m = d every user reports every dimension with independent noise, so the correlation of the data "
        f"({study['data correlation']:.2f} on average) does not enter.",
    )


LEMMAS(
    "theorem-2-bound",
    "IV-D, Theorem 2",
    "For any LDP mechanism, the true cdf and the approximated cdf differ by no more than 0.33554(ρ + "
    "0.415(r_jσ_j)³)/(r_j^{7/2}σ_j³).",
    "the simulated Kolmogorov–Smirnov distance does not significantly exceed the printed bound (level 0.1 %), for the "
    "paper's three mechanisms at ε/m = 0.001, 0.02 and 1, with 1, 10 and 100 reports",
    beyond=Beyond(GENERAL, _MORE, partial(_bound, cases=_ALL_CASES)),
)(partial(_bound, cases=PAPER_CASES))

LEMMAS(
    "theorem-2-few-reports",
    "IV-D, after Theorem 2",
    "The approximation error is still tolerable even if the number of reports is insufficient.",
    f"with {_FEW} reports the simulated Kolmogorov–Smirnov distance is at most {_TOLERABLE:g}, in the same cases",
    beyond=Beyond(GENERAL, _MORE, partial(_tolerable, cases=_ALL_CASES)),
)(partial(_tolerable, cases=PAPER_CASES))

LEMMAS(
    "lemma-4-per-dimension",
    "V-B, Lemma 4",
    "L1 improves accuracy in the j-th dimension if λ*_j = sup|θ̂_j − θ̄_j| and |θ̂_j − θ̄_j| > 1.",
    "|θ*_j − θ̄_j| < |θ̂_j − θ̄_j| in every simulated dimension beyond the threshold",
)(partial(_lemma, method="l1"))

LEMMAS(
    "lemma-5-per-dimension",
    "V-B, Lemma 5",
    "L2 improves accuracy in the j-th dimension if λ*_j = sup(θ̂_j − θ̄_j)/(2θ̄_j) and |θ̂_j − θ̄_j| > 2.",
    "|θ*_j − θ̄_j| < |θ̂_j − θ̄_j| in every simulated dimension beyond the threshold",
)(partial(_lemma, method="l2"))
