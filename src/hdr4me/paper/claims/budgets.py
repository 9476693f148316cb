"""What the paper claims about Figure 4: re-calibration against the budget, on four data sets."""

from __future__ import annotations

import math
from functools import partial

from hdr4me.paper.cells import MECHANISMS, CellResult
from hdr4me.paper.claims.claim import Finding, Section
from hdr4me.paper.claims.measure import (
    HARDLY,
    METHODS,
    NOISY,
    SAME,
    fall,
    improvements,
    of_all,
    ratios,
    span,
    spread_of,
)
from hdr4me.paper.readings import Reading
from hdr4me.paper.results import Results
from hdr4me.paper.studies import DATASETS

BUDGETS = Section("fig4")


def _panels(results: Results, data: tuple[str, ...], mechanisms: tuple[str, ...]) -> list[list[CellResult]]:
    return [results.curve("fig4", dataset, name) for dataset in data for name in mechanisms]


def _enhances_all(results: Results, reading: Reading, *, data: tuple[str, ...]) -> Finding:
    cells = [cell for panel in _panels(results, data, NOISY) for cell in panel]
    evidence, missed = improvements(
        cells, reading, lambda cell: f"{cell.panel} ε = {cell.cell.epsilon:g}", " cells"
    )
    return Finding(
        not missed,
        evidence,
        f"Not in: {'; '.join(missed[:4])}{' …' if len(missed) > 4 else ''}."
        if missed
        else "With ε/d for each value the noise exceeds the means, and nearly any shrinking gains.",
    )


@BUDGETS(
    "both-enhance-gaussian",
    "VI, Fig. 4(a)–(c)",
    "Overall, both L1- and L2-regularization enhance the aggregation accuracy in all three LDP mechanisms.",
    "in each of the three panels the geometric mean over ε of MSE/naive is below 1, for L1 and for L2",
)
def _overall_gaussian(results: Results, reading: Reading) -> Finding:
    gains = {
        (method, cells[0].panel): math.exp(
            sum(math.log(value) for value in ratios(cells, method, reading)) / len(cells)
        )
        for cells in _panels(results, ("gaussian",), tuple(MECHANISMS))
        for method in METHODS
    }
    bad = [f"{method.upper()}, {panel}" for (method, panel), gain in gains.items() if gain >= 1]
    evidence = "; ".join(f"{m.upper()} on {p.split()[0]} {g:.3g}" for (m, p), g in gains.items())
    return Finding(
        not bad,
        f"geometric mean over ε of MSE/naive: {evidence}",
        f"It harms overall in: {', '.join(bad)}." if bad else "Each of the six ratios is below one.",
    )


@BUDGETS(
    "l2-slower-than-l1",
    "VI, Fig. 4(a)–(c)",
    "In contrast to L1, the MSE of L2 decreases at a slower rate as ε increases.",
    "from the smallest to the largest ε L2's MSE falls by a smaller factor than L1's, in each panel",
)
def _slower(results: Results, reading: Reading) -> Finding:
    panels = _panels(results, ("gaussian",), tuple(MECHANISMS))
    falls = [(fall(cells, "l1", reading), fall(cells, "l2", reading)) for cells in panels]
    words = {
        "bias": "Without bias this reading sets every L2 mean to zero, so its MSE does not move with ε at all.",
        "domain": "L2 divides by 1 + zσ_j, whose bias falls with σ as the noise does.",
        "plug-in": "L2 takes about zσ_j off each |θ̂_j|, much as L1 does.",
    }
    return Finding(
        all(second < first for first, second in falls),
        "; ".join(
            f"{cells[0].panel}: from ε = {cells[0].cell.epsilon:g} to {cells[-1].cell.epsilon:g} L1 falls "
            f"{one:.3g}-fold, L2 {two:.3g}-fold"
            for cells, (one, two) in zip(panels, falls, strict=True)
        ),
        words[reading.reference],
    )


@BUDGETS(
    "l2-weights-large-at-100",
    "VI, Fig. 4(a)–(c)",
    "The regularization weights of L2 become so large under 100 dimensions that any change of ε has a minor "
    "impact.",
    f"L2's largest MSE over ε is at most {HARDLY:g} times its smallest, in each of the three panels",
)
def _heavy_weights(results: Results, reading: Reading) -> Finding:
    panels = _panels(results, ("gaussian",), tuple(MECHANISMS))
    spreads = [spread_of(cells, "l2", reading) for cells in panels]
    weights = [[cell.outcome("l2", reading).weight or 0.0 for cell in cells] for cells in panels]
    flat = [value <= HARDLY for value in spreads]
    return Finding(
        all(flat),
        "; ".join(
            f"{cells[0].panel}: median λ* {span(lambdas)}, largest MSE over smallest {value:.3g}"
            for cells, lambdas, value in zip(panels, weights, spreads, strict=True)
        ),
        "λ* grows with the noise, so it is no larger for 100 dimensions than the budget of one value makes it. Where "
        "the weights are infinite the answer is zero and ε has no impact at all; where they are finite the MSE moves "
        "with ε; and under Square wave they are small.",
    )


@BUDGETS(
    "l2-outperformed-at-5000",
    "VI, Fig. 4(c)",
    "In Square wave, L2 is outperformed by the current aggregation if ε = 5,000.",
    "its MSE is larger by more than two standard errors",
)
def _outperformed(results: Results, reading: Reading) -> Finding:
    cell = results.curve("fig4", "gaussian", "square_wave")[-1]
    worse = cell.harms("l2", reading)
    return Finding(
        worse,
        f"ε = {cell.cell.epsilon:g}: L2 {cell.outcome('l2', reading).mse:.3g}, naive "
        f"{cell.outcome('naive').mse:.3g}, ratio {cell.ratio('l2', reading):.3g}",
        "Noise and bias are so small there that any shrinking costs more than it saves."
        if worse
        else "Under this reading the shrinking is too weak to harm.",
    )


@BUDGETS(
    "l1-same-as-naive-square",
    "VI, Fig. 4(c)",
    "L1 tends to get the same results as the current aggregation regardless of ε (Square wave).",
    f"MSE/naive is within {100 * SAME:.0f} % of 1 at every ε",
)
def _l1_same(results: Results, reading: Reading) -> Finding:
    cells = results.curve("fig4", "gaussian", "square_wave")
    found = ratios(cells, "l1", reading)
    same = [abs(value - 1) <= SAME for value in found]
    far = [f"ε = {c.cell.epsilon:g}: {v:.3g}" for c, v, s in zip(cells, found, same, strict=True) if not s]
    return Finding(
        all(same),
        f"L1/naive {span(found)}, within {100 * SAME:.0f} % at {of_all(same)} budgets",
        f"Not at {'; '.join(far)}: once the bias is gone, what is left of the error is noise of the size of λ* "
        "itself."
        if far
        else "λ* is the noise alone, far smaller than the bias that makes up the MSE.",
    )


@BUDGETS(
    "both-may-harm",
    "VI",
    "MSE results of both L1 and L2 may become worse than the current aggregation.",
    "each is worse by more than two standard errors in at least one cell of Fig. 4",
)
def _may_harm(results: Results, reading: Reading) -> Finding:
    cells = results.of("fig4")
    counts = {method: sum(cell.harms(method, reading) for cell in cells) for method in METHODS}
    return Finding(
        all(counts.values()),
        f"of {len(cells)} cells L1 is worse than naive in {counts['l1']}, L2 in {counts['l2']}",
        "L1 harms once |θ̄|/σ exceeds about 1.28, 1.05, 1.006 (z = 1, 2, 3); all-zeros once |θ̄| > σ.",
    )


BUDGETS(
    "enhances-laplace-piecewise-gaussian",
    "VI, Fig. 4(a)–(b)",
    "Our protocol successfully enhances utilities of Laplace and Piecewise (Gaussian).",
    "both L1 and L2 are better than naive by more than two standard errors in all 12 cells",
)(partial(_enhances_all, data=("gaussian",)))


@BUDGETS(
    "perturbation-reaches-threshold",
    "VI",
    "Square wave's deviation does not satisfy the threshold; those of Laplace and Piecewise are rather large.",
    "no Square wave dimension deviates by more than 1; more than half of the others do, in most cells",
)
def _threshold(results: Results) -> Finding:
    noisy = [cell for panel in _panels(results, tuple(DATASETS), NOISY) for cell in panel]
    square = [cell for panel in _panels(results, tuple(DATASETS), ("square_wave",)) for cell in panel]
    large = [cell.share_above[0] for cell in noisy]
    small = [cell.share_above[0] for cell in square]
    reached = sum(value > 0.5 for value in large)
    return Finding(
        max(small) == 0 and reached > len(large) / 2,
        f"share of dimensions with |θ̂ − θ̄| > 1: Laplace and Piecewise {span(large)} (above one half in {reached} "
        f"of {len(large)} cells), Square wave {span(small)}",
        "Lemma 4's premise is met in most dimensions only where the noise's standard deviation exceeds about 1.5.",
    )


@BUDGETS(
    "not-suitable-for-square",
    "VI, Fig. 4(f), (i), (l)",
    "Our protocol is not suitable for Square wave, whose deviation is already small enough.",
    f"neither L1 nor L2 is better than naive by more than {100 * SAME:.0f} % in any of the 18 cells",
)
def _unsuitable(results: Results, reading: Reading) -> Finding:
    panels = _panels(results, ("poisson", "uniform", "cov19"), ("square_wave",))
    helped = [
        (m, cell)
        for m in METHODS
        for cells in panels
        for cell in cells
        if cell.enhances(m, reading) and cell.ratio(m, reading) < 1 - SAME
    ]
    names = sorted({cell.panel for _, cell in helped})
    parts = [
        f"{c[0].panel}: L1 {span(ratios(c, 'l1', reading))}, L2 {span(ratios(c, 'l2', reading))}"
        for c in panels
    ]
    return Finding(
        not helped,
        f"MSE/naive: {'; '.join(parts)}",
        f"It helps by more than 10 % in {len(helped)} of {2 * sum(map(len, panels))} cells, on {', '.join(names)}: "
        "where all means are near zero, pulling to zero removes the noise."
        if helped
        else "Square wave has shrunk the means already; a second shrinking adds bias.",
    )


BUDGETS(
    "enhances-laplace-piecewise-others",
    "VI, Fig. 4(d), (e), (g), (h), (j), (k)",
    "Other figures indicate that both L1 and L2 enhance utilities of Laplace and Piecewise.",
    "both are better than naive by more than two standard errors in all 36 cells",
)(partial(_enhances_all, data=("poisson", "uniform", "cov19")))


@BUDGETS(
    "l2-flat-at-500-and-750",
    "VI, Fig. 4(g), (h), (j), (k)",
    "MSE results of L2 almost remain unchanged.",
    f"its largest MSE over ε is at most {HARDLY:g} times its smallest, in all four panels",
)
def _flat(results: Results, reading: Reading) -> Finding:
    panels = _panels(results, ("uniform", "cov19"), NOISY)
    spreads = [spread_of(cells, "l2", reading) for cells in panels]
    holds = all(value <= HARDLY for value in spreads)
    return Finding(
        holds,
        "L2's largest MSE over its smallest: "
        + "; ".join(f"{c[0].panel} {v:.3g}" for c, v in zip(panels, spreads, strict=True)),
        "Its means are zero (or nearly), so the MSE is the mean of θ̄², which ε does not move."
        if holds
        else "Under this reading L2 still lets noise through, and noise falls with ε.",
    )


@BUDGETS(
    "l2-nearly-zero-at-500-and-750",
    "VI, Fig. 4(g), (h), (j), (k)",
    "Regularization weights of L2 become so large that each entry of the enhanced mean is nearly zero.",
    f"its MSE is within {100 * SAME:.0f} % of the all-zeros answer's in all 24 cells",
)
def _near_zero(results: Results, reading: Reading) -> Finding:
    cells = [cell for panel in _panels(results, ("uniform", "cov19"), NOISY) for cell in panel]
    against = [cell.outcome("l2", reading).mse / cell.outcome("zeros").mse for cell in cells]
    holds = all(abs(value - 1) <= SAME for value in against)
    return Finding(
        holds,
        f"L2's MSE over that of the all-zeros answer: {span(against)}",
        "L2 is then the same as answering zero everywhere: nothing of the users' reports is left."
        if holds
        else "The weights are not that large under this reading: what is left of the noise can be seen.",
    )
