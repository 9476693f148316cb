"""Simulations that test the theory of the paper: Figures 2 and 3, the lemmas and the theorems."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.stats import chi2, kstest

import hdr4me as hd
from hdr4me.framework.normal import (
    L1_THRESHOLD,
    L2_THRESHOLD,
    berry_esseen_bound,
    berry_esseen_printed,
    probability_some_exceed,
    tolerance_for,
)
from hdr4me.kernels.simulate.aggregate import laplace_noise_sums
from hdr4me.mechanisms.laplace import Laplace
from hdr4me.mechanisms.law import Mechanism
from hdr4me.paper import case_study
from hdr4me.paper.cells import MECHANISMS, law_for, naive_means, predicted
from hdr4me.paper.datasets import Dataset, synthetic
from hdr4me.paper.methods import DOMAIN, REFERENCES, WIDTHS, Floats, LambdaChoice
from hdr4me.recalibration.hdr4me import l2_weights, shrink, soft_threshold
from hdr4me.recalibration.inputs import check_inputs
from hdr4me.simulation.sums import generator, simulate

SAMPLED_BUDGETS = (1.0, 8.0)
_USERS, _CORRELATED = 2_000, 8  # users and dimensions in the study of Theorem 1
REPORTS = (1, 10, 100)
# The three mechanisms of the paper at the budgets of the case study, of Figure 2, and at 1.
PAPER_CASES = tuple((name, epsilon) for name in MECHANISMS for epsilon in (0.001, 0.02, 1.0))
# “For any LDP mechanism”: a mechanism with two outputs, and large budgets.
GENERAL_CASES = (("duchi", 1.0), ("piecewise", 8.0), ("square_wave", 8.0))
_VALUE = 0.5
_PER_REPEAT = 100
_SPREADS = (0.3, 1.0, 3.0, 30.0)
_JOINT_DIMS = 100  # the dimensions that the joint width covers
# The counter-examples: θ̄_j, σ_j, d and the threshold of the theorem.
_POPULATIONS = {"l1": (0.9, 0.45, 10_000, L1_THRESHOLD), "l2": (1.0, 0.4, 10_000_000, L2_THRESHOLD)}


def _joint_law(repeats: int, seed: int) -> dict[str, float]:
    """Theorem 1 on strongly correlated data: the distribution of Σ_j z_j² and the correlations of the z_j."""
    d = _CORRELATED
    columns = synthetic("cov19", _USERS, d, seed)
    values = np.stack([columns.column(j) for j in range(d)], axis=1).astype(np.float64)
    numbers = {"data correlation": float(_pairs(values).mean())}
    for name in MECHANISMS:
        law = law_for(name, 1.0 / d)
        rng = generator(seed, "theory", "joint", name)
        predicted = hd.deviation(law, users=_USERS, dims=d, sampled=d, values=values.T)
        drawn = np.array([law.sample(values, rng).mean(axis=0) for _ in range(repeats)])
        z = (drawn - values.mean(axis=0) - predicted.bias) / predicted.sd
        test = kstest((z**2).sum(axis=1), chi2(d).cdf)
        numbers[f"all/{name}/ks p-value"] = float(test.pvalue)
        numbers[f"all/{name}/largest correlation in s.e."] = float(_pairs(z).max() * np.sqrt(repeats))
    numbers["all/pairs"] = float(d * (d - 1) // 2)
    return {**numbers, **_one_of_two(repeats, seed)}


def _pairs(columns: Floats) -> Floats:
    """|correlation| of every pair of columns."""
    matrix = np.atleast_2d(np.corrcoef(columns.T))
    return np.abs(matrix[np.triu_indices(columns.shape[1], 1)])


def _one_of_two(repeats: int, seed: int) -> dict[str, float]:
    """Two equal dimensions, one of which each user reports with the full budget ε (Piecewise)."""
    t = generator(seed, "theory", "joint", "values").uniform(-1, 1, _USERS)
    values = np.stack([t, t], axis=1)
    numbers = {}
    for epsilon in SAMPLED_BUDGETS:
        law = law_for("piecewise", epsilon)
        rng = generator(seed, "theory", "joint", "one of two", epsilon)
        seeds = rng.integers(2**63, size=repeats)
        away = np.array([simulate(law, values, seed=int(s), sampled=1).mean for s in seeds]) - t.mean()
        predicted = hd.deviation(law, users=_USERS, dims=2, sampled=1, values=t)
        reach = float(predicted.sd)
        both = np.all(np.abs(away) <= reach, axis=1)
        # Cov(θ̂_j, θ̂_k) = −C_jk (d − m) / (n m (d − 1)): one draw decides which dimension a user reports.
        covariance = -float(t.var()) / _USERS
        place = f"some/{epsilon:g}"
        numbers[f"{place}/correlation"] = float(np.atleast_2d(np.corrcoef(away.T))[0, 1])
        numbers[f"{place}/correlation predicted"] = covariance / float(predicted.variance)
        numbers[f"{place}/both within"] = float(both.mean())
        numbers[f"{place}/both within, product"] = float(predicted.probability_within(reach)) ** 2
        numbers[f"{place}/repeats"] = float(repeats)
    return numbers


def _normal_approximation(repeats: int, seed: int) -> dict[str, float]:
    """Theorem 2: the distance of the mean of r reports from its normal law, the bound, and the printed bound."""
    draws = repeats * _PER_REPEAT
    # With probability 99.9 % sampling adds at most 1.95/√draws to the Kolmogorov–Smirnov distance.
    numbers = {"draws": float(draws), "chance": 1.95 / math.sqrt(draws)}
    for name, epsilon in (*PAPER_CASES, *GENERAL_CASES):
        law = law_for(name, epsilon)
        mean, variance = float(law.mean(_VALUE)), float(law.variance(_VALUE))
        third = float(law.abs_third_moment(_VALUE))
        for r in REPORTS:
            means = _means(law, r, draws, generator(seed, "theory", "normal", name, epsilon, r))
            sd = math.sqrt(variance / r)
            place = f"{name}/{epsilon:g}/{r}"
            numbers[f"{place}/distance"] = float(kstest((means - mean) / sd, "norm").statistic)
            numbers[f"{place}/bound"] = float(berry_esseen_bound(third, variance, r))
            numbers[f"{place}/printed"] = float(berry_esseen_printed(third, sd, r))
    return numbers


def _means(law: Mechanism, r: int, size: int, rng: np.random.Generator) -> Floats:
    if isinstance(law, Laplace):
        return _VALUE + laplace_noise_sums(law.scale, r, size, rng) / r
    total = np.zeros(size)
    for _ in range(r):  # report by report: memory does not grow with r
        total += law.sample(np.full(size, _VALUE), rng)
    return total / r


def _enhanced(means: Floats, sd: Floats, dims: int, width: str, reference: str = "") -> Floats:
    """θ* of an unbiased mechanism: L1 at a width, or L2 at a width and a reference."""
    bound = sd * (float(tolerance_for(1.0, 0.95, n=dims)) if width == "joint" else float(width))
    if not reference:
        return soft_threshold(means, bound)
    return shrink(means, l2_weights(check_inputs(means, sd, None, 1.0, DOMAIN), bound, reference))


def _lemmas_per_dimension(repeats: int, seed: int) -> dict[str, float]:
    """Lemmas 4 and 5: the share of dimensions, beyond and below the threshold, in which θ*_j is closer than θ̂_j."""
    rng = generator(seed, "theory", "lemmas")
    size = repeats * _PER_REPEAT
    true = rng.uniform(-1, 1, len(_SPREADS) * size)
    sd = np.repeat(_SPREADS, size)
    means = true + sd * rng.standard_normal(true.size)
    away = np.abs(means - true)
    numbers: dict[str, float] = {}

    def note(name: str, enhanced: Floats, threshold: float) -> None:
        closer = np.abs(enhanced - true) < away
        numbers[name] = float(closer[away > threshold].mean())
        numbers[f"{name}/below"] = float(closer[away <= threshold].mean())

    for width in WIDTHS:
        note(f"l1/z{width}", _enhanced(means, sd, _JOINT_DIMS, width), L1_THRESHOLD)
        for reference in REFERENCES:
            enhanced = _enhanced(means, sd, _JOINT_DIMS, width, reference)
            note(f"l2/z{width}/{reference}", enhanced, L2_THRESHOLD)
    numbers["l1/beyond"] = float(np.sum(away > L1_THRESHOLD))
    numbers["l2/beyond"] = float(np.sum(away > L2_THRESHOLD))
    return numbers


def _frequencies(repeats: int, seed: int) -> dict[str, float]:
    """Section V-C: Zipf categories in histogram encoding with ε/2m for each entry, predicted, simulated, enhanced."""
    d, v, n, epsilon = 5, 20, 2_000, 1.0
    zipf = 1 / np.arange(1, v + 1)
    rng = generator(seed, "theory", "frequencies")
    drawn = [rng.choice(v, n, p=zipf / zipf.sum()) for _ in range(d)]
    # Entries 0 and 1 on [−1, 1]; frequencies are (θ̂ + 1)/2.
    columns = [np.where(one == k, 1, -1).astype(np.float32) for one in drawn for k in range(v)]
    data = Dataset("data", "frequencies", n, d * v, "fixed", lambda j: columns[j])
    true = (data.moments.mean + 1) / 2
    numbers = {}
    for name in ("laplace", "piecewise"):
        law = law_for(name, epsilon / (2 * d))
        sd = np.broadcast_to(predicted(law, data.moments, n).sd / 2, true.shape)
        means = naive_means(
            law, data, np.arange(d * v), max(repeats // 5, 10), seed, f"theory-frequencies-{name}"
        )
        means = (means + 1) / 2
        mse = np.mean((means - true) ** 2, axis=1)
        numbers[f"{name}/predicted"] = float(np.mean(sd**2))
        numbers[f"{name}/mse"] = float(mse.mean())
        numbers[f"{name}/standard error"] = float(mse.std(ddof=1) / math.sqrt(mse.size))
        wide = np.broadcast_to(sd, means.shape).ravel()
        for width in WIDTHS:
            for reference in ("", *REFERENCES):
                better = _enhanced(means.ravel(), wide, d * v, width, reference).reshape(means.shape)
                place = f"{name}/l2/z{width}/{reference}" if reference else f"{name}/l1/z{width}"
                numbers[place] = float(np.mean((better - true) ** 2))
    return numbers


_STUDIES: dict[str, Callable[[int, int], dict[str, float]]] = {
    "joint": _joint_law,
    "normal": _normal_approximation,
    "lemmas": _lemmas_per_dimension,
    "frequencies": _frequencies,
}
STUDIES = tuple(_STUDIES)


@dataclass(frozen=True)
class TheoryCell:
    """One study; the number of draws is proportional to `repeats`."""

    study: str
    repeats: int
    figure: str = "theory"

    @property
    def key(self) -> str:
        """A name that no other cell of the same run has."""
        return f"{self.figure}-{self.study}"

    @property
    def cost(self) -> int:
        """About how many milliseconds the cell takes."""
        return 1 + 4 * self.repeats


@dataclass(frozen=True)
class TheoryResult:
    """The results of a study by name."""

    cell: TheoryCell
    seed: int
    seconds: float
    numbers: dict[str, float]


def run_theory(cell: TheoryCell, seed: int) -> TheoryResult:
    """Run one study."""
    start = time.process_time()
    numbers = _STUDIES[cell.study](cell.repeats, seed)
    return TheoryResult(cell, seed, time.process_time() - start, numbers)


@dataclass(frozen=True)
class CltCell:
    """The first dimension of Figure 2 (Uniform data on [−1, 1]) or 3 (the ten values of the case study)."""

    figure: str
    mechanism: str
    epsilon: float
    users: int
    dims: int
    sampled: int
    repeats: int

    @property
    def key(self) -> str:
        """A name that no other cell of the same run has."""
        return f"{self.figure}-{self.mechanism}"

    @property
    def cost(self) -> int:
        """About how many milliseconds the cell takes."""
        return 1 + self.users * self.sampled * self.repeats // (self.dims * 20_000)


@dataclass(frozen=True)
class CltResult:
    """The simulated deviations and their predicted distribution.

    `paper_sd` is the standard deviation of Lemmas 2 and 3, which omits the sampling of users.
    """

    cell: CltCell
    seed: int
    how: str
    true_mean: float
    bias: float
    sd: float
    paper_sd: float
    berry_esseen: float
    ks_distance: float
    ks_p_value: float
    seconds: float
    deviations: tuple[float, ...]


def _on_unit_interval(name: str, epsilon: float) -> Mechanism:
    """The mechanism of the case study: Square wave on [0, 1]."""
    return hd.mechanism(name, epsilon=epsilon, **({"domain": (0.0, 1.0)} if name == "square_wave" else {}))


def run_clt(cell: CltCell, seed: int) -> CltResult:
    """Simulate every report of the first dimension: r ~ Binomial(n, m/d) users, drawn without replacement."""
    start = time.process_time()
    n, share, budget = cell.users, cell.sampled / cell.dims, cell.epsilon / cell.sampled
    if cell.figure == "fig3":
        law, values = _on_unit_interval(cell.mechanism, budget), np.resize(case_study.VALUES, n)
    else:
        law = law_for(cell.mechanism, budget)
        values = synthetic("uniform", n, cell.dims, seed).column(0).astype(np.float64)
    rng = generator(seed, cell.key, n, cell.repeats)
    deviations = np.empty(cell.repeats)
    for i in range(cell.repeats):
        chosen = values
        if cell.sampled < cell.dims:
            count = max(int(rng.binomial(n, share)), 1)
            chosen = values[rng.choice(n, count, replace=False, shuffle=False)]
        deviations[i] = law.sample(chosen, rng).mean() - values.mean()
    sizes: Any = {"users": n, "dims": cell.dims, "sampled": cell.sampled}
    exact = hd.deviation(law, values=values, **sizes)
    paper = hd.deviation(law, values=values, variance_formula="paper", **sizes)
    test = kstest((deviations - float(exact.bias)) / float(exact.sd), "norm")
    return CltResult(
        cell=cell,
        seed=seed,
        how="direct simulation of every report",
        true_mean=float(values.mean()),
        bias=float(exact.bias),
        sd=float(exact.sd),
        paper_sd=float(paper.sd),
        berry_esseen=float(exact.berry_esseen),
        ks_distance=float(test.statistic),
        ks_p_value=float(test.pvalue),
        seconds=time.process_time() - start,
        deviations=tuple(deviations.tolist()),
    )


@dataclass(frozen=True)
class CounterExample:
    """A population, the probability `promised` by Theorem 3 or 4, and an upper bound of the true probability."""

    true_mean: float
    sd: float
    dims: int
    promised: float
    at_most: float


@lru_cache(maxsize=64)
def counter_example(method: str, choice: LambdaChoice) -> CounterExample:
    """The probability in the theorem for `method` ("l1" or "l2"), and a bound of the probability of an improvement.

    Every dimension has the same θ̄ and σ. The gain of a dimension, (θ̂ − θ̄)² − (θ* − θ̄)², has a mean μ and a variance
    v, both computed by quadrature. Where μ < 0, the sum of d independent gains is positive with probability at most
    v/(v + dμ²) (Cantelli's inequality). The theorem states P(some |θ̂_j − θ̄_j| > threshold).
    """
    theta, sd, dims, threshold = _POPULATIONS[method]
    x = np.linspace(theta - 10 * sd, theta + 10 * sd, 200_001)
    density = np.exp(-0.5 * ((x - theta) / sd) ** 2)
    density /= density.sum()
    reference = choice.reference if method == "l2" else ""
    enhanced = _enhanced(x, np.full(x.size, sd), dims, choice.width, reference)
    gain = (x - theta) ** 2 - (enhanced - theta) ** 2
    mean = float(gain @ density)
    variance = float((gain - mean) ** 2 @ density)
    at_most = variance / (variance + dims * mean**2) if mean < 0 else 1.0
    promised = probability_some_exceed(0.0, sd, threshold, counts=dims)
    return CounterExample(theta, sd, dims, promised, at_most)
