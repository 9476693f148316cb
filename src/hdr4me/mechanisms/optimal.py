"""`optimal`: the table of the linear program, with its certificate.

`Search` computes the light mass and the bound that the dual proves. The heavy windows above that mass have a closed
form. The table is these rows, rounded to integers, with an unbiased decoding.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels.proof import check_epsilon
from hdr4me.channels.table.channel import MAX_CELLS
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.cache import cached
from hdr4me.mechanisms.law import Floats
from hdr4me.mechanisms.program import (
    Dual,
    Measure,
    Objective,
    Search,
    certified,
    unfolded,
    window_rows,
    window_starts,
)
from hdr4me.mechanisms.table import (
    Certificate,
    TableMechanism,
    duchi_table,
    round_rows,
    unbiased_decode,
    window_table,
)

DESIGN_VERSION = 3  # incremented when tables or their files change
DUCHI_UP_TO = 0.05  # up to this budget the variance of Duchi's two cells is within 0.2 % of the bound
# Above, 256 cells limit the variance and not privacy: a window is as good, without a proof.
PROGRAM_UP_TO = 12.0
_LARGEST_MULTIPLIER = 1e9


def optimal(epsilon: float, objective: Objective = "max") -> TableMechanism:
    """The unbiased ε-LDP table of least variance, with a certificate: a proven bound of the variance of any other.

    `objective` is "max" (the largest variance over the inputs) or "mean" (its mean over inputs uniform on [-1, 1]).
    Designs are cached in memory and on disk; the first one takes one or two seconds.

    >>> table = optimal(1.0)
    >>> table.certificate.gap < 0.01
    True
    """
    check_epsilon(epsilon)
    if objective not in ("max", "mean"):
        raise InvalidInput(f"objective = {objective!r} is not allowed: use 'max' or 'mean'")
    budget = float(epsilon)
    return cached(
        f"optimal-v{DESIGN_VERSION}-{objective}-{budget.hex()}.json",
        lambda: design(budget, objective),
        _packed,
        lambda stored: _unpacked(stored, budget, objective),
        on_disk=DUCHI_UP_TO < epsilon <= PROGRAM_UP_TO,
    )


def _packed(table: TableMechanism) -> dict[str, Any]:
    assert table.certificate is not None
    proof = table.certificate.proof
    assert proof is not None
    return {"weights": table.weights.tolist(), "decode": table.decode.tolist(), "proof": proof.tolist()}


def _unpacked(stored: Any, epsilon: float, objective: Objective) -> TableMechanism | None:
    """The stored table with its privacy, variance and bound recomputed; None if they do not hold."""
    weights, proof = stored["weights"], np.array(stored["proof"], dtype=np.float64)
    bound = _bound(proof, epsilon, objective)
    table = TableMechanism(
        "optimal", epsilon, np.linspace(-1.0, 1.0, len(weights)), stored["decode"], weights
    )
    most = 0.05 if epsilon <= 8.0 else 0.5  # the gap of every design is well below this
    if bound is None or not bound <= _achieved(table, objective) <= (1 + most) * bound:
        return None
    return _certify(table, objective, bound, proof)


def _bound(proof: Floats, epsilon: float, objective: Objective) -> float | None:
    """The lower bound of the variance that the multipliers prove, or None if they prove none.

    Any distribution π over inputs proves a bound of the largest variance; for the mean variance it must be uniform.
    """
    levels, _, _, pi = proof
    search = Search(epsilon, objective)
    if not (np.abs(proof) <= _LARGEST_MULTIPLIER).all() or pi.min() < 0 or not math.isclose(pi.sum(), 1.0):
        return None
    if levels.size > 1 << 10 or np.abs(levels).max() > (1 + 1e-12) / search.unit:
        return None
    mean_square = None
    if objective == "mean":
        half, prior, mean_square = search.inputs(levels.size - 2)
        assert prior is not None
        whole, shares = np.concatenate([-half[:0:-1], half]), unfolded(prior, 1.0)
        if whole.shape != levels.shape or not np.allclose(whole, levels) or not np.allclose(shares, pi):
            return None
    return certified(Dual(*proof), epsilon, mean_square) * search.unit**2


def _achieved(table: TableMechanism, objective: Objective) -> float:
    return table.max_variance() if objective == "max" else table.mean_variance()


def design(epsilon: float, objective: Objective) -> TableMechanism:
    """The table of `optimal`, computed without the cache."""
    search, candidates = Search(epsilon, objective), []
    if epsilon > 8.0:
        shapes = ((256, 1), (256, 2), (256, 3), (256, 4), (256, 6), (256, 8), (200, 8))
        candidates = [window_table("optimal", epsilon, n_cells, width) for n_cells, width in shapes]
    if epsilon <= PROGRAM_UP_TO:
        stages, n_levels = _stages(epsilon, objective)
        for levels, outputs, rounds in stages:
            search.run(levels, outputs, rounds)
        duchi = epsilon <= DUCHI_UP_TO
        candidates.append(duchi_table("optimal", epsilon) if duchi else _table(search, n_levels))
    best = min(candidates, key=lambda table: _achieved(table, objective))
    return _certify(best, objective, max(search.bound, 0.0) * search.unit**2, search.proof)


def _stages(epsilon: float, objective: Objective) -> tuple[list[tuple[int, int, int]], int]:
    """The (levels, outputs, rounds) of each stage, and the number of levels of the table.

    Random rounding between levels of distance s adds up to s²/4 to the variance, so that larger budgets need more
    levels.
    """
    if epsilon <= DUCHI_UP_TO:
        return [(9, 60, 1)], 2
    if epsilon <= 1.5:
        return [(17, 60, 2)], 17
    if epsilon <= 2.6:
        return [(17, 60, 1), (33, 80, 2)], 33
    if epsilon <= 4.0:
        return [(17, 60, 1), (33, 80, 1), (65, 110, 1)], 65
    if epsilon <= 6.0:
        return [(17, 60, 1), (33, 100, 1), (65, 140, 1)], 97
    return [(17, 60, 1), (33, 100, 1), (97 if objective == "max" else 129, 260, 2)], 161


def _table(search: Search, n_levels: int) -> TableMechanism:
    """The integer weights and the decoding for the computed light mass."""
    assert search.measure is not None
    levels, epsilon, unit = np.linspace(-1.0, 1.0, n_levels), search.epsilon, search.unit
    limit = MAX_CELLS
    while True:
        cells = _merged(search.measure, limit)
        reach = -float((window_rows(cells, epsilon, np.array([-9.0])) @ cells.outputs)[0])
        cells = Measure(cells.outputs * max(1.0, 1 / (unit * reach)), cells.mass)
        cells = _split(cells, epsilon, levels / unit)
        if cells.mass.size <= MAX_CELLS:
            break
        limit -= cells.mass.size - MAX_CELLS
    weights = round_rows(window_rows(cells, epsilon, levels / unit), epsilon)
    decode = unbiased_decode(weights, cells.outputs * unit, levels)
    return TableMechanism("optimal", epsilon, levels, decode, weights)


def _merged(measure: Measure, limit: int) -> Measure:
    """At most `limit` cells: neighbors are merged in the order of the loss m₁m₂/(m₁+m₂)·(y₂−y₁)²."""
    middle = measure.outputs.size // 2
    used = measure.mass[middle + 1 :] > 0
    y, mass = measure.outputs[middle + 1 :][used], measure.mass[middle + 1 :][used]
    negligible = 1e-9 * float(mass @ y**2)
    while y.size > 1:
        loss = mass[:-1] * mass[1:] / (mass[:-1] + mass[1:]) * np.diff(y) ** 2
        k = int(loss.argmin())
        if 2 * y.size + 1 <= limit and loss[k] > negligible:
            break
        joint = mass[k] + mass[k + 1]
        y[k] = (y[k] * mass[k] + y[k + 1] * mass[k + 1]) / joint
        mass[k] = joint
        y, mass = np.delete(y, k + 1), np.delete(mass, k + 1)
    center = measure.mass[middle : middle + 1]
    center = center[center > 1e-4 * mass.mean()]
    outputs = np.concatenate([-y[::-1], np.zeros(center.size), y])
    return Measure(outputs, np.concatenate([mass[::-1], center, mass]))


def _split(cells: Measure, epsilon: float, levels: Floats) -> Measure:
    """Cells split at the outer ends of the windows: at left ends for t ≤ 0 and at right ends for t ≥ 0.

    Three rows whose windows begin in one cell and end in another are linearly dependent, so that no decoding of the
    integer rows has exact means. The rows of the split cells are independent. If all splits would exceed the largest
    number of cells, only cells with several of these ends are split.
    """
    start, width = window_starts(cells, epsilon, levels)
    edges = np.concatenate([[0.0], np.cumsum(cells.mass)])

    def cell_of(place: Floats) -> NDArray[np.int64]:
        return np.clip(np.searchsorted(edges, place, side="right") - 1, 0, cells.mass.size - 1)

    ends = np.concatenate([start[levels <= 0], start[levels >= 0] + width])
    cell = cell_of(ends)
    sliver = 1e-2 * cells.mass.min()
    clear = (ends - edges[cell] > sliver) & (edges[cell + 1] - ends > sliver)
    if cells.mass.size + clear.sum() > MAX_CELLS:
        clear &= np.bincount(cell)[cell] > 1
    cut = np.unique(np.concatenate([edges, ends[clear]]))
    return Measure(cells.outputs[cell_of((cut[:-1] + cut[1:]) / 2)], np.diff(cut))


def _certify(
    table: TableMechanism, objective: Objective, bound: float, proof: Floats | None
) -> TableMechanism:
    return replace(table, certificate=Certificate(objective, bound, _achieved(table, objective), proof))
