"""The claims of the lemmas and theorems, of sections II-A and V, checked by formulas and by the studies of `theory`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise, product
from math import exp

import numpy as np
from scipy.stats import norm

import hdr4me as hd
from hdr4me.framework.normal import berry_esseen_bound
from hdr4me.paper.cells import MECHANISMS, law_for
from hdr4me.paper.claims.claim import GENERAL, NOISY, Beyond, Finding, Section, either, span
from hdr4me.paper.errata import sampling_ratio, worst_ratio
from hdr4me.paper.methods import LambdaChoice
from hdr4me.paper.studies import DATASETS, Results
from hdr4me.paper.theory import GENERAL_CASES, PAPER_CASES, REPORTS, SAMPLED_BUDGETS
from hdr4me.recalibration.hdr4me import shrink, soft_threshold

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


_BUDGETS = (0.001, 0.01, 0.1, 0.5, 1.0, 1.5, 2.0, 4.0, 8.0)
_MORE = "With Duchi at ε = 1, Piecewise at ε = 8 and Square wave at ε = 8"


def _lemma1(results: Results, *, names: Sequence[str], bounded: bool) -> Finding:
    flags = _flags(names)
    constant = [case for case, depends in flags.items() if not depends]
    if not bounded:
        return Finding(
            len(constant) == len(flags),
            f"variance and bias are the same at 401 values in {len(constant)} of {len(flags)} cases",
            "The noise does not depend on the value.",
        )
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
    distances = {case: study[f"{case[0]}/{case[1]:g}/{_FEW}/distance"] for case in cases}
    (name, epsilon), worst = max(distances.items(), key=lambda item: item[1])
    promised = float(berry_esseen_bound(6 * 2**3, 2 * 2**2, _FEW))
    bound = f"The bound of Theorem 2 for Laplace at {_FEW} reports is {100 * promised:.0f} %."
    return either(
        worst - study["chance"] <= _TOLERABLE,
        f"with {_FEW} reports the distance is {span(list(distances.values()))}, largest for {name} at ε = {epsilon:g}",
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
    "unbounded-less-noise",
    "II-A",
    "SCDF and Staircase perturb values with less noise (than Laplace).",
    "their variance is not larger than that of Laplace, at nine budgets",
)
def _less_noise(results: Results) -> Finding:
    ratios = {
        name: [float(law_for(name, e).variance(0.0) / law_for("laplace", e).variance(0.0)) for e in _BUDGETS]
        for name in ("scdf", "staircase")
    }
    return Finding(
        all(value <= 1 + 1e-12 for values in ratios.values() for value in values),
        "; ".join(
            f"variance over that of Laplace, {name}: {span(values)}" for name, values in ratios.items()
        ),
        "At small budgets the three variances are equal to first order; the steps gain at large budgets.",
    )


@LEMMAS(
    "piecewise-hybrid-improve-duchi",
    "II-A",
    "With continuous and bounded outputs, the utilities of Piecewise and Hybrid are improved (over Duchi).",
    "their worst-case variance is not larger than that of Duchi, at nine budgets from 0.001 to 8",
)
def _improve_duchi(results: Results) -> Finding:
    ratios = {name: [worst_ratio(name, epsilon) for epsilon in _BUDGETS] for name in ("piecewise", "hybrid")}
    good = [name for name, values in ratios.items() if max(values) <= 1 + 1e-12]
    worse = [f"{e:g}" for e, value in zip(_BUDGETS, ratios["piecewise"], strict=True) if value > 1]
    return Finding(
        len(good) == len(ratios),
        "; ".join(
            f"worst-case variance over that of Duchi, {name}: {span(values)}"
            for name, values in ratios.items()
        ),
        f"Piecewise has a larger worst-case variance than Duchi at ε/m = {', '.join(worse)}: it improves on Duchi "
        "above 1.29 only. Hybrid uses Duchi at small budgets and is never worse.",
        (len(good), f"{len(ratios)} mechanisms"),
    )


LEMMAS(
    "lemma-1-unbounded",
    "IV-B, Lemma 1",
    "Var(t*) and δ are deterministic if Bound(M) = 0.",
    "neither depends on the value, for Laplace, SCDF and Staircase at four budgets",
)(partial(_lemma1, names=("laplace", "scdf", "staircase"), bounded=False))

LEMMAS(
    "lemma-1-bounded",
    "IV-B, Lemma 1",
    "Var(t*) and δ are correlated to t if Bound(M) = 1.",
    "variance or bias depend on the value, for Piecewise and Square wave at four budgets",
    beyond=Beyond(
        GENERAL,
        "For every bounded mechanism at the same budgets",
        partial(_lemma1, names=_BOUNDED, bounded=True),
    ),
)(partial(_lemma1, names=("piecewise", "square_wave"), bounded=True))


def _half_width(epsilon: float) -> float:
    """The b of equation (5) as printed."""
    grown = exp(epsilon)
    return (epsilon * grown - grown + 1) / (2 * grown * (grown - 1 - epsilon))


def _wave(epsilon: float, t: float) -> tuple[float, float]:
    """Equations (17) and (18) as printed: bias and variance of Square wave on [0, 1]."""
    grown, b = exp(epsilon), _half_width(epsilon)
    rest = 2 * b * grown + 1
    bias = 2 * b * (grown - 1) * t / rest + (1 + 2 * b) / (2 * rest) - t
    variance = b**2 / 3 + (2 * b + 1) * (b + 1 - 3 * t**2) / (3 * rest) - bias**2 - 2 * bias * t
    return bias, variance


def _steps(name: str, epsilon: float, t: float) -> tuple[list[float], list[float]]:
    """Equation (4) or (5) as printed: the ends of the three pieces of the density, and its value on each."""
    grown, half = exp(epsilon), exp(epsilon / 2)
    if name == "piecewise":
        q = (grown + half) / (grown - half)
        left = (q + 1) / 2 * t - (q - 1) / 2
        low = (1 - 1 / half) / (2 * half + 2)
        return [-q, left, left + q - 1, q], [low, (grown - half) / (2 * half + 2), low]
    b = _half_width(epsilon)
    low = 1 / (2 * b * grown + 1)
    return [-b, t - b, t + b, 1 + b], [low, low * grown, low]


_FOUR, _FIVE = (0.1, 0.5, 1.0, 4.0), (0.0, 0.3, 0.5, 0.9, 1.0)


def _same(differences: Sequence[tuple[str, float]], why: str) -> Finding:
    """Whether every difference, beside the name of its case, is below 1e-9."""
    apart = [case for case, difference in differences if difference >= 1e-9]
    shown = f"; not {', '.join(apart[:3])}" if apart else ""
    return Finding(
        not apart, f"{len(differences) - len(apart)} of {len(differences)} numbers agree to 1e-9{shown}", why
    )


@LEMMAS(
    "densities",
    "IV-A, equations (4) and (5)",
    "The perturbed value of Piecewise and of Square wave follows the printed density.",
    "it integrates to one, its largest ratio is e^ε, and it is the density of the implementation, at four budgets and "
    "five values",
)
def _densities(results: Results) -> Finding:
    found = []
    for name, epsilon, share in product(("piecewise", "square_wave"), _FOUR, _FIVE):
        law = hd.mechanism(name, epsilon=epsilon)
        t = law.domain[0] + share * (law.domain[1] - law.domain[0])
        ends, heights = _steps(name, epsilon, t)
        wide = [
            (low, high, p)
            for (low, high), p in zip(pairwise(ends), heights, strict=True)
            if high - low > 1e-9
        ]
        differences = [
            np.dot(np.diff(ends), heights) - 1,
            np.log(max(heights) / min(heights)) - epsilon,
            *(law.density((low + high) / 2, t) / p - 1 for low, high, p in wide),
        ]
        found += [(f"{name}, ε = {epsilon:g}, t = {t:g}", abs(float(value))) for value in differences]
    return _same(found, "The printed densities are correct.")


@LEMMAS(
    "square-wave-moments",
    "IV-C, equations (17) and (18)",
    "The bias δ_ij and the variance Var(t*_ij) of Square wave are the printed functions of t_ij.",
    "the printed formulas agree with the integrals of the printed density, at four budgets and five values",
)
def _square_moments(results: Results) -> Finding:
    found = []
    for epsilon, t in product(_FOUR, _FIVE):
        ends, heights = _steps("square_wave", epsilon, t)
        first, second = (float(np.dot(np.diff(np.power(ends, k)), heights)) / k for k in (2, 3))
        bias, variance = _wave(epsilon, t)
        case = f"ε = {epsilon:g}, t = {t:g}"
        found += [(case, abs(bias - (first - t))), (case, abs(variance - (second - first**2)))]
    return _same(found, "Both follow from the integrals of x and x² over the three pieces of the density.")


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


def _lemma_23(results: Results, *, names: Sequence[str], sampled: int) -> Finding:
    """Var θ̂_j by the lemma over the exact variance, for 100 uniform dimensions."""
    ratios = {
        f"{name} at ε/m = {epsilon:g}": sampling_ratio(name, epsilon, sampled)
        for name, epsilon in product(names, (1.0, 8.0))
    }
    return Finding(
        all(abs(value - 1) < 1e-3 for value in ratios.values()),
        f"m = {sampled}, d = 100, exact variance over that of the lemma: "
        + "; ".join(f"{name} {value:.4g}" for name, value in ratios.items()),
        "The normal limit holds. The variance of the lemma omits the sampling of users, which vanishes only for m = d.",
    )


for _number, _bound_is, _names in (
    (2, "0", ("laplace", "staircase")),
    (3, "1", ("piecewise", "square_wave")),
):
    LEMMAS(
        f"lemma-{_number}",
        f"IV-B, Lemma {_number}",
        "θ̂_j − θ̄_j tends to a normal distribution with mean E(δ_ij) and variance E(Var(t*_ij))/r_j, "
        f"if Bound(M) = {_bound_is}.",
        "with m = d the variance is the exact one (Figures 2 and 3 test the normal limit)",
        beyond=Beyond(GENERAL, "With m < d", partial(_lemma_23, names=_names, sampled=1)),
    )(partial(_lemma_23, names=_names, sampled=100))

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


@LEMMAS(
    "convergence-rate",
    "IV-D, after Theorem 2",
    "The speed of convergence is at least on the order of 1/√r_j.",
    "the simulated Kolmogorov–Smirnov distance does not significantly exceed the corrected bound, which is "
    "proportional to 1/√r_j, with 1, 10 and 100 reports (level 0.1 %)",
)
def _rate(results: Results) -> Finding:
    study = results.study("normal")
    places = [f"{name}/{epsilon:g}/{r}" for (name, epsilon), r in product(_ALL_CASES, REPORTS)]
    shares = [(study[f"{place}/distance"] - study["chance"]) / study[f"{place}/bound"] for place in places]
    return Finding(
        max(shares) <= 1,
        f"the distance, less its sampling error, is at most {max(shares):.2f} of the bound in {len(shares)} cases",
        "E Var(t*) and ρ do not depend on r_j.",
    )


@LEMMAS(
    "figure-1-regularization",
    "V-A, Fig. 1",
    "L1 reduces both dimensions and the scale of θ̂, while L2 just reduces the scale.",
    "in two dimensions L1 sets a coordinate to zero, L2 sets none, and both reduce the norm, more so with a larger λ*",
    needs="theory",
)
def _figure_1(results: Results) -> Finding:
    means, weights = np.array([1.2, 0.5]), np.array([0.6, 0.6])
    one, two = soft_threshold(means, weights), shrink(means, weights)
    zeros = [int(np.sum(point == 0)) for point in (one, two)]
    norms = [
        [float(np.linalg.norm(solve(means, share * weights))) for share in (0, 0.5, 1, 1.5)]
        for solve in (soft_threshold, shrink)
    ]
    return Finding(
        zeros == [1, 0] and all(a > b for values in norms for a, b in pairwise(values)),
        f"θ̂ = (1.2, 0.5), λ* = 0.6: L1 gives ({one[0]:.3g}, {one[1]:.3g}), L2 ({two[0]:.3g}, {two[1]:.3g})",
        "The soft threshold sets |θ̂_j| ≤ λ*_j to zero; L2 divides by 2λ*_j + 1.",
    )


@LEMMAS(
    "one-off-solver",
    "V-B, equations (34) and (42)",
    "The solvers of HDR4ME are one-off and non-iterative.",
    "proximal gradient descent reaches them in one step from 1,000 random starts, and no nearby point is better",
)
def _one_off(results: Results) -> Finding:
    rng = np.random.default_rng(1)
    means, weights, start = rng.normal(0, 2, 1000), rng.exponential(1.0, 1000), rng.normal(0, 9, 1000)
    away = {}
    for name, solve, penalty in (
        ("L1", soft_threshold, lambda x: weights * np.abs(x)),
        ("L2", shrink, lambda x: weights * x**2),
    ):
        solved = solve(means, weights)
        step = solve(start - (start - means), weights)  # the gradient of the loss at `start` is start − θ̂
        best = min(
            float(np.min(_loss(solved + d, means, penalty) - _loss(solved, means, penalty)))
            for d in (-1e-3, -1e-5, 1e-5, 1e-3)
        )
        away[name] = (float(np.abs(step - solved).max()), best)
    return Finding(
        all(step < 1e-12 and best >= 0 for step, best in away.values()),
        "; ".join(
            f"{name}: largest difference after one step {step:.1g}, smallest increase of the objective nearby "
            f"{best:.2g}"
            for name, (step, best) in away.items()
        ),
        "The gradient of the loss is θ − θ̂ with Lipschitz constant 1, so a step of size 1 ends at θ̂ from every "
        "start.",
    )


def _loss(x: np.ndarray, means: np.ndarray, penalty: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    return np.asarray(0.5 * (x - means) ** 2 + penalty(x))


@LEMMAS(
    "no-extra-burden",
    "V-B",
    "The data collector can enhance utilities without bearing extra computational burden.",
    "re-calibration needs at most 0.1 % of the operations of the aggregation, in the settings of Figures 4 and 5",
)
def _burden(results: Results) -> Finding:
    # |θ̂|, − λ*, max, sign and product for L1; 2λ*, + 1 and a division for L2; n·m additions for the aggregation.
    operations = 5
    shares = [operations * d / (n * d) for n, d in DATASETS.values()]
    return Finding(
        max(shares) < 1e-3,
        f"{operations} operations for each dimension after n additions for each: {100 * max(shares):.2g} % at most",
        "The number of operations is proportional to d and does not depend on n.",
    )


def _budget(results: Results, *, entries: int, why: str) -> Finding:
    """The largest log ratio of the reports of two users, of whom `entries` reports differ in each of m dimensions."""
    worst = []
    for name, m in product(MECHANISMS, (1, 5)):
        law = law_for(name, 1.0 / (entries * m))
        low, high = law.support if np.isfinite(law.support).all() else (-40.0, 40.0)
        x = np.linspace(low, high, 4001)
        entry = float(np.abs(np.log(law.density(x, 1.0)) - np.log(law.density(x, -1.0))).max())
        worst.append(entries * m * entry)
    return Finding(
        max(worst) <= 1 + 1e-9, f"ε = 1: largest log ratio over m = 1 and 5 dimensions {span(worst)}", why
    )


LEMMAS(
    "sampling-budget",
    "III-B",
    "Each user reports m dimensions with budget ε/m allocated to each dimension so that ε-LDP still holds.",
    "the log ratio of the densities for t = 1 and −1, times m, is at most ε, for the three mechanisms",
)(
    partial(
        _budget, entries=1, why="The reports of the m dimensions are independent, so their log ratios add."
    )
)


@LEMMAS(
    "expected-reports",
    "III-B",
    "E(r_j) = nm/d.",
    "the framework's number of reports, and the mean of 200 simulated collections to within 4 standard errors",
)
def _expected_reports(results: Results) -> Finding:
    n, d, m = 1000, 10, 3
    law = law_for("laplace", 1.0)
    reports = hd.deviation(law, users=n, dims=d, sampled=m, prior="uniform").reports_per_dimension
    drawn = [hd.simulate(law, np.zeros((n, d)), seed=s, sampled=m).n_reports[0] for s in range(200)]
    mean, error = float(np.mean(drawn)), float(np.std(drawn, ddof=1)) / len(drawn) ** 0.5
    return Finding(
        reports == n * m / d and abs(mean - n * m / d) < 4 * error,
        f"n = {n}, m = {m}, d = {d}: {reports:g} reports, simulated {mean:.1f} ± {error:.1f}",
        "Each user reports a dimension with probability m/d.",
    )


LEMMAS(
    "frequency-budget",
    "V-C",
    "The collective ε-LDP can be guaranteed by applying ε/2m to each entry of the encoded vectors.",
    "the log ratio of the densities of an entry for t = 1 and −1, times 2m, is at most ε, for the three mechanisms",
)(
    partial(
        _budget,
        entries=2,
        why="The entries of the old and of the new category change; every other entry has the same distribution.",
    )
)


@LEMMAS(
    "frequency-estimation",
    "V-C",
    "Both our framework and re-calibration protocol can further apply (to frequency estimation).",
    "the MSE of the frequencies is within 4 standard errors of its prediction, and L1 and L2 reduce it, for Laplace "
    "and Piecewise on Zipf categories",
)
def _frequencies(results: Results, choice: LambdaChoice) -> Finding:
    study = results.study("frequencies")
    parts, holds = [], True
    for name in NOISY:
        mse, error, predicted = (study[f"{name}/{what}"] for what in ("mse", "standard error", "predicted"))
        gains = [study[f"{name}/l1/z{choice.width}"], study[f"{name}/l2/z{choice.width}/{choice.reference}"]]
        choice.note(name, mse, *gains)
        holds &= abs(mse - predicted) <= 4 * error and max(gains) < mse
        parts.append(
            f"{MECHANISMS[name]}: MSE over its prediction {mse / predicted:.3f} ± {error / predicted:.3f}, L1/naive "
            f"{gains[0] / mse:.3g}, L2/naive {gains[1] / mse:.3g}"
        )
    return Finding(
        holds,
        "; ".join(parts),
        "A frequency is the mean of an encoded entry. Frequencies sum to one, which the protocol does not use; "
        "`recalibrate_frequencies` does.",
    )


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
