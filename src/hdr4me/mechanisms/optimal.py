"""`optimal`: the table of the linear programme, with its certificate.

`Search` finds the light mass that the programme wants and the bound that its dual proves. The heavy windows
above that mass in closed form, integers (`table.py`) and a decoding that is exactly unbiased make the table.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels.proof import check_epsilon
from hdr4me.channels.table.channel import MAX_CELLS
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.cache import achieved, cached_table
from hdr4me.mechanisms.law import Floats
from hdr4me.mechanisms.programme import Measure, Objective, Search, window_rows, window_starts
from hdr4me.mechanisms.table import Certificate, Table, duchi_table, round_rows, unbiased_decode, window_table

DUCHI_UP_TO = 0.05  # up to here Duchi's two cells are within 0.2 % of the limit and more would gain nothing


PROGRAMME_UP_TO = 12.0
"""Beyond, 256 cells are what limits the variance, not privacy: a window does as well, and nothing is proven."""


def optimal(epsilon: float, objective: Objective = "max") -> Table:
    """The table of least variance among all ε-LDP ones with an unbiased report, and the proof of how near it is.

    `objective` is "max" (the largest variance over the inputs) or "mean" (its mean over inputs uniform on
    [-1, 1]). Designs are kept in memory and on disk; the first takes a second or two.

    >>> table = optimal(1.0)
    >>> table.certificate.gap < 0.01
    True
    """
    check_epsilon(epsilon)
    if objective not in ("max", "mean"):
        raise InvalidInput(f"objective = {objective!r} is not allowed: use 'max' or 'mean'")
    slow = DUCHI_UP_TO < epsilon <= PROGRAMME_UP_TO
    return cached_table(float(epsilon), objective, design, on_disk=slow)


def design(epsilon: float, objective: Objective) -> Table:
    """The same, designed afresh."""
    if epsilon <= DUCHI_UP_TO:
        search = Search(epsilon, objective)
        search.run(9, 60, rounds=1)
        return _certify(
            duchi_table("optimal", epsilon), objective, search.bound * search.unit**2, search.proof
        )
    if epsilon <= 8.0:
        return _programme_table(epsilon, objective)
    shapes = ((256, 1), (256, 2), (256, 3), (256, 4), (256, 6), (256, 8), (200, 8))
    candidates = [window_table("optimal", epsilon, n_cells, width) for n_cells, width in shapes]
    bound, proof = 0.0, None
    if epsilon <= PROGRAMME_UP_TO:
        table = _programme_table(epsilon, objective)
        assert table.certificate is not None
        candidates.append(table)
        bound, proof = table.certificate.bound, table.certificate.proof
    best = min(candidates, key=lambda table: achieved(table, objective))
    return _certify(best, objective, bound, proof)


def _stages(epsilon: float, objective: Objective) -> tuple[list[tuple[int, int, int]], int]:
    """How fine to go, (levels, outputs, rounds) stage by stage, and the table's own number of levels.

    Random rounding between levels of distance s adds up to s²/4 to the variance: more budget, more levels.
    """
    if epsilon <= 1.5:
        return [(17, 60, 2)], 17
    if epsilon <= 2.6:
        return [(17, 60, 1), (33, 80, 2)], 33
    if epsilon <= 4.0:
        return [(17, 60, 1), (33, 80, 1), (65, 110, 1)], 65
    if epsilon <= 6.0:
        return [(17, 60, 1), (33, 100, 1), (65, 140, 1)], 97
    return [(17, 60, 1), (33, 100, 1), (97 if objective == "max" else 129, 260, 2)], 161


def _programme_table(epsilon: float, objective: Objective) -> Table:
    search = Search(epsilon, objective)
    stages, n_levels = _stages(epsilon, objective)
    for levels, outputs, rounds in stages:
        search.run(levels, outputs, rounds)
    assert search.measure is not None
    table = _table(search.measure, search.unit, epsilon, n_levels)
    return _certify(table, objective, search.bound * search.unit**2, search.proof)


def _table(measure: Measure, unit: float, epsilon: float, n_levels: int) -> Table:
    """Integers and decoding for a light mass given in units of C."""
    levels = np.linspace(-1.0, 1.0, n_levels)
    limit = MAX_CELLS
    while True:
        cells = _merged(measure, limit)
        reach = -float((window_rows(cells, epsilon, np.array([-9.0])) @ cells.outputs)[0])
        cells = Measure(cells.outputs * max(1.0, 1 / (unit * reach)), cells.mass)
        cells = _split(cells, epsilon, levels / unit)
        if cells.mass.size <= MAX_CELLS:
            break
        limit -= cells.mass.size - MAX_CELLS
    weights = round_rows(window_rows(cells, epsilon, levels / unit), epsilon)
    decode = unbiased_decode(weights, cells.outputs * unit, levels)
    return Table("optimal", epsilon, levels, decode, weights)


def _merged(measure: Measure, limit: int) -> Measure:
    """At most `limit` cells, neighbours joined where that loses least: m₁m₂/(m₁+m₂)·(y₂−y₁)², a spread's size."""
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
    centre = measure.mass[middle : middle + 1]
    centre = centre[centre > 1e-4 * mass.mean()]
    return Measure(
        np.concatenate([-y[::-1], np.zeros(centre.size), y]), np.concatenate([mass[::-1], centre, mass])
    )


def _split(cells: Measure, epsilon: float, levels: Floats) -> Measure:
    """Cells cut in pieces at the outer ends of the windows: left ends for t ≤ 0, right ends for t ≥ 0.

    Three rows whose windows begin in one cell and end in another are linearly dependent, so that no decoding could
    make their integer means exact. Cut like this they are independent, and the law is the same. If there is no room
    for all cuts, only cells with several of these ends are cut.
    """
    start, width = window_starts(cells, epsilon, levels)
    edges = np.concatenate([[0.0], np.cumsum(cells.mass)])

    def home(place: Floats) -> NDArray[np.int64]:
        return np.clip(np.searchsorted(edges, place, side="right") - 1, 0, cells.mass.size - 1)

    ends = np.concatenate([start[levels <= 0], start[levels >= 0] + width])
    cell = home(ends)
    sliver = 1e-2 * cells.mass.min()
    clear = (ends - edges[cell] > sliver) & (edges[cell + 1] - ends > sliver)
    if cells.mass.size + clear.sum() > MAX_CELLS:
        clear &= np.bincount(cell)[cell] > 1
    cut = np.unique(np.concatenate([edges, ends[clear]]))
    return Measure(cells.outputs[home((cut[:-1] + cut[1:]) / 2)], np.diff(cut))


def _certify(table: Table, objective: Objective, bound: float, proof: Floats | None) -> Table:
    return replace(table, certificate=Certificate(objective, bound, achieved(table, objective), proof))
