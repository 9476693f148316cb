"""What the paper claims about Figure 5, and the probabilities that its theorems promise."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from hdr4me.paper.cells import CellResult, title_of
from hdr4me.paper.claims.claim import GENERAL, Beyond, Finding, Section
from hdr4me.paper.claims.measure import (
    HARDLY,
    NOISY,
    improvements,
    of_all,
    span,
    spread_of,
)
from hdr4me.paper.readings import Reading
from hdr4me.paper.results import Results
from hdr4me.paper.theory import counter_example

DIMENSIONS = Section("fig5")


def _panels(results: Results) -> list[list[CellResult]]:
    return [results.curve("fig5", "cov19", name) for name in NOISY]


def _mse(cells: list[CellResult], method: str, reading: Reading) -> list[float]:
    return [cell.outcome(method, reading).mse for cell in cells]


def _steps(values: list[float]) -> str:
    return " → ".join(f"{value:.3g}" for value in values)


def _theorem(results: Results, reading: Reading, *, method: str, place: int) -> Finding:
    short = []
    for cell in results.cells:
        promised, found = cell.some_above[place], cell.outcome(method, reading).better
        error = 3 * (max(promised * (1 - promised), 0.25 / cell.cell.repeats) / cell.cell.repeats) ** 0.5
        if found < promised - error:
            short.append((cell, promised, found))
    if not short:
        return Finding(
            True,
            f"in none of {len(results.cells)} cells are there fewer improvements than promised",
            "The probability printed is P(some dimension deviates), the proof needs all: it happens to hold here.",
        )
    cell, promised, found = max(short, key=lambda item: item[1] - item[2])
    every = max(item[0].all_above[place] for item in short)
    return Finding(
        False,
        f"fewer improvements than promised in {len(short)} of {len(results.cells)} cells; worst: "
        f"{cell.panel}, d = {cell.cell.n_dims}, ε = {cell.cell.epsilon:g}: "
        f"promised ≥ {promised:.3g}, found {found:.3g}",
        "The printed 1 − ∫f is the probability that SOME dimension deviates beyond the threshold; the proof needs "
        f"ALL to, which in these cells has probability at most {every:.2g}.",
    )


def _general(results: Results, reading: Reading, *, method: str) -> Finding:
    found = counter_example(method, reading)
    return Finding(
        found.at_most >= found.promised,
        f"promised ≥ {found.promised:.4f}, true at most {found.at_most:.2g}",
        f"Every mean is {found.true_mean:g} and every deviation has the standard deviation {found.sd:g}, in "
        f"{found.n_dims:,} dimensions: some of them surely pass the threshold, most do not, and in most the "
        "shrinking costs more than it saves. A counter-example of this kind exists under every reading.",
    )


@DIMENSIONS(
    "enhances-at-every-d",
    "VI, Fig. 5",
    "Our protocol enhances the current aggregation regardless of dimensionality.",
    "both L1 and L2 are better than naive by more than two standard errors in all 12 cells",
)
def _regardless(results: Results, reading: Reading) -> Finding:
    cells = [cell for panel in _panels(results) for cell in panel]
    evidence, missed = improvements(
        cells, reading, lambda cell: f"{title_of(cell.cell.mechanism)} d = {cell.cell.n_dims}"
    )
    return Finding(
        not missed,
        evidence,
        f"Not in: {'; '.join(missed)}: there the noise is still smaller than the means."
        if missed
        else "At ε = 0.8 shared by all dimensions the noise exceeds the means from the smallest d on.",
    )


@DIMENSIONS(
    "l2-better-as-d-grows",
    "VI, Fig. 5",
    "L2 provides even better utilities as dimensionality increases, as opposed to both the current aggregation "
    "and L1.",
    "from the smallest to the largest d L2's MSE falls while L1's and the naive one rise, in both panels",
)
def _opposed(results: Results, reading: Reading) -> Finding:
    parts, holds = [], True
    for cells in _panels(results):
        naive, one, two = (_mse(cells, method, reading) for method in ("naive", "l1", "l2"))
        holds &= naive[-1] > naive[0] and one[-1] > one[0] and two[-1] < two[0]
        parts.append(
            f"{title_of(cells[0].cell.mechanism)}: naive ×{naive[-1] / naive[0]:.3g}, L1 ×{one[-1] / one[0]:.3g}, L2 "
            f"×{two[-1] / two[0]:.3g}"
        )
    return Finding(
        holds,
        f"MSE at d = {cells[-1].cell.n_dims} over d = {cells[0].cell.n_dims}: {'; '.join(parts)}",
        "L2's MSE can fall with d only by which dimensions happen to be drawn: its bias towards zero does not shrink "
        "as the noise grows.",
    )


@DIMENSIONS(
    "l2-decreases-50-to-200",
    "VI, Fig. 5",
    "MSE results of L2 in both mechanisms decrease as dimensionality increases (d = 50, 100, 200).",
    "it falls at both steps and by more than 2 % in all, in both panels",
)
def _decreases(results: Results, reading: Reading) -> Finding:
    panels = _panels(results)
    values = [_mse(cells, "l2", reading)[:3] for cells in panels]
    d = ", ".join(str(cell.cell.n_dims) for cell in panels[0][:3])
    falling = [all(a > b for a, b in pairwise(v)) for v in values]
    drops = [1 - v[-1] / v[0] for v in values]
    return Finding(
        all(falling) and min(drops) > 0.02,
        f"L2 at d = {d}: "
        + "; ".join(
            f"{title_of(c[0].cell.mechanism)} {_steps(v)}" for c, v in zip(panels, values, strict=True)
        ),
        "With a fixed reference the noise that is left and the bias both grow with σ, hence with d; with zero as the "
        "answer, the MSE is the mean of θ̄², whatever d is.",
    )


@DIMENSIONS(
    "l2-settles-from-400",
    "VI, Fig. 5",
    "As the dimensionality becomes extremely large (d = 400, 800, 1600), MSE results of L2 hardly change.",
    f"its largest MSE is at most {HARDLY:g} times its smallest, in both panels",
)
def _settles(results: Results, reading: Reading) -> Finding:
    panels = _panels(results)
    spreads = [spread_of(cells[3:], "l2", reading) for cells in panels]
    holds = all(value <= HARDLY for value in spreads)
    d = ", ".join(str(cell.cell.n_dims) for cell in panels[0][3:])
    return Finding(
        holds,
        f"L2's largest MSE over its smallest at d = {d}: "
        + "; ".join(f"{title_of(c[0].cell.mechanism)} {v:.3g}" for c, v in zip(panels, spreads, strict=True)),
        "The answer is zero (or nearly) in every dimension." if holds else
        "Under this reading L2's MSE still grows with the noise.",
    )  # fmt: skip


@DIMENSIONS(
    "l2-weights-larger",
    "VI, Fig. 5",
    "The regularization weights of L2 are much larger than those of L1 as dimensionality increases.",
    "the median weight of L2 is more than twice that of L1 in all 12 cells",
)
def _weights(results: Results, reading: Reading) -> Finding:
    pairs = []
    for cell in (cell for panel in _panels(results) for cell in panel):
        one, two = (cell.outcome(method, reading).weight for method in ("l1", "l2"))
        pairs.append((one or 0.0, two or 0.0))
    larger = [two > 2 * one for one, two in pairs]
    return Finding(
        all(larger),
        f"median λ*: L1 {span([one for one, _ in pairs])}, L2 {span([two for _, two in pairs])}; L2's is more than "
        f"twice as large in {of_all(larger)} cells",
        "A reference of zero makes L2's weight infinite." if reading.reference == "bias" else
        "L2's weight is sup/2θ̄: with a reference near one it is half of L1's, not larger.",
    )  # fmt: skip


DIMENSIONS(
    "theorem-3-probability",
    "V, Theorem 3",
    "‖θ* − θ̄‖ < ‖θ̂ − θ̄‖ holds with at least 1 − ∫f probability (L1).",
    "the share of repeats in which L1 improves is nowhere below that, by more than 3 standard errors",
    needs="fig4",
    beyond=Beyond(
        GENERAL, "For a population made for it, without simulation", partial(_general, method="l1")
    ),
)(partial(_theorem, method="l1", place=0))


DIMENSIONS(
    "theorem-4-probability",
    "V, Theorem 4",
    "‖θ* − θ̄‖ < ‖θ̂ − θ̄‖ holds with at least 1 − ∫f probability (L2).",
    "the share of repeats in which L2 improves is nowhere below that, by more than 3 standard errors",
    needs="fig4",
    beyond=Beyond(
        GENERAL, "For a population made for it, without simulation", partial(_general, method="l2")
    ),
)(partial(_theorem, method="l2", place=1))
