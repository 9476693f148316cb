"""Integer rows whose ratios are proven: rounded from real rows with an unbiased decoding, or windows in closed form.

A window has N equal cells, W heavy ones among them, which slide with the level.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels.proof import BITS, exp_lower
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.law import Floats
from hdr4me.mechanisms.table import Table

_INDEPENDENT = 1e-6  # rows that differ by less than this share of the largest difference count as dependent
_EXACT, _MOVES, _CELLS = 1e-14, 100, 64

Integers = NDArray[np.int64]


def round_rows(rows: Floats, epsilon: float, total: int = 1 << BITS) -> Integers:
    """Integer rows near total·rows that sum to `total` and whose columns keep the ratio e^ε: proven, not hoped.

    For each column y take the floor f_y = max(1, ⌈total·min_i P(y|i)⌉) and the ceiling c_y = ⌊r·f_y⌋, where
    r ≤ e^ε is rational. Whatever rows keep f_y ≤ w_iy ≤ c_y have column ratio at most c_y/f_y ≤ r ≤ e^ε. Such a row
    with sum `total` exists if and only if Σ f_y ≤ total ≤ Σ c_y: start at the floors and raise cells one unit at
    a time, and the sum passes through every integer up to Σ c_y. So

    * if Σ f_y > total, floors are lowered (never below 1);
    * if Σ c_y < total, every floor is raised by one, or fewer of them if Σ f_y would pass `total` (c_y ≥ f_y, so
      then Σ c_y ≥ total). For rows that are ε-private twice is more than enough: from f_y ≥ total·min + 1 follows
      Σ c_y ≥ Σ (r·f_y − 1) ≥ total·r·Σ min ≥ total. Rows that are not private end here, with an error;
    * each row is its rounded target clamped between floors and ceilings, and the units it lacks or has too many
      are dealt out among the cells that have room.

    >>> round_rows(np.array([[0.7, 0.3], [0.3, 0.7]]), 1.0, total=100).tolist()
    [[70, 30], [30, 70]]
    """
    ratio = exp_lower(epsilon)
    target = rows * float(total)
    floors = np.maximum(1, np.ceil(target.min(axis=0))).astype(np.int64)
    if floors.size > total:
        raise InvalidInput(f"{floors.size} cells are not allowed: at most {total} fit into a row of that sum")
    excess = int(floors.sum()) - total
    if excess > 0:
        floors -= _deal(excess, floors - 1)
    ceilings = _ceilings(floors, ratio, total)
    for _ in range(3):
        if int(ceilings.sum()) >= total:
            break
        floors[: total - int(floors.sum())] += 1
        ceilings = _ceilings(floors, ratio, total)
    else:
        raise InvalidInput(
            f"the rows are not private at epsilon = {epsilon}: no integer rows keep that ratio"
        )
    return np.stack([_fit(row, floors, ceilings, total) for row in target])


def _ceilings(floors: Integers, ratio: Fraction, total: int) -> Integers:
    """⌊ratio·f⌋ in exact arithmetic, no more than a whole row."""
    top, bottom = ratio.numerator, ratio.denominator
    return np.array([min(total, int(f) * top // bottom) for f in floors.tolist()], dtype=np.int64)


def _fit(target: Floats, floors: Integers, ceilings: Integers, total: int) -> Integers:
    """One row: the rounded target within its limits, the difference to `total` dealt out."""
    row = np.clip(np.rint(target), floors, ceilings).astype(np.int64)
    lack = total - int(row.sum())
    return row + _deal(lack, ceilings - row) if lack >= 0 else row - _deal(-lack, row - floors)


def _deal(units: int, room: Integers) -> Integers:
    """`units` shared out in proportion to `room`, never more than it; needs units ≤ Σ room."""
    if units == 0:
        return np.zeros_like(room)
    available = int(room.sum())
    shares = np.array([units * r // available for r in room.tolist()], dtype=np.int64)
    left = units - int(shares.sum())
    # a share is short of units·room/available ≤ room by less than one, so there are at least as many open cells
    open_cells = np.flatnonzero(shares < room)[:left]
    shares[open_cells] += 1
    return shares


def unbiased_decode(
    weights: Integers,
    decode: Floats,
    levels: Floats,
    prior: Floats | None = None,
    *,
    rcond: float = 1e-14,
) -> Floats:
    """`decode` with the smallest change that makes every row's mean its level.

    The norm of the change is the one of the average row (averaged with `prior` where it is given). With P the rows, D
    the diagonal of their average and r = levels − P·decode, the change is D⁻¹Pᵀ(P·D⁻¹·Pᵀ)⁻¹·r, found by the
    pseudo-inverse of P·D^(−1/2) and refined until the residual is at rounding level. From a `decode` of zeros
    this gives the decoding of least mean square over the prior. Directions in which the rows differ by less than
    `rcond` of the largest are left as they are.
    """
    rows = np.ldexp(weights.astype(np.float64), -BITS)
    average = rows.mean(axis=0) if prior is None else prior @ rows
    root = np.sqrt(np.maximum(average, 2.0**-BITS))
    scaled = rows / root
    decode = decode.astype(np.float64)
    solve = np.linalg.pinv(scaled, rcond=rcond)
    for _ in range(3):
        decode = decode + (solve @ (levels - rows @ decode)) / root
    return np.asarray(decode, dtype=np.float64)


def unbiased_rows(
    rows: Floats, epsilon: float, inputs: Floats, decoders: Floats, prior: Floats | None = None
) -> tuple[Integers, Floats]:
    """Integer rows near `rows`, and decoders near `decoders`, whose means are the inputs.

    Rows that depend on each other linearly cannot all be met by decoders once they are rounded. Then the decoders meet
    what is independent, and single units are moved between the cells of a row until its means are met too.
    """
    weights = round_rows(rows, epsilon)
    for _ in range(3):
        columns = [
            unbiased_decode(weights, decoders[:, j], inputs[:, j], prior, rcond=_INDEPENDENT)
            for j in range(inputs.shape[1])
        ]
        decoders = np.stack(columns, axis=1)
        if np.abs(np.ldexp(weights.astype(np.float64), -BITS) @ decoders - inputs).max() < _EXACT:
            break
        weights = _moved(weights, decoders, inputs, epsilon)
    return weights, decoders


def _moved(weights: Integers, decoders: Floats, inputs: Floats, epsilon: float) -> Integers:
    """The rows with single units moved from cell to cell, each time the move that brings the means nearest.

    Columns keep their smallest weight f and stay at or below ⌊r·f⌋, r ≤ e^ε rational: the privacy loss is kept.
    """
    floors = weights.min(axis=0)
    ceilings = _ceilings(floors, exp_lower(epsilon), 1 << BITS)
    some = np.unique(np.linspace(0, weights.shape[1] - 1, _CELLS).astype(np.int64))
    step = np.ldexp(decoders[None, some, :] - decoders[some, None, :], -BITS)  # from a to b
    moved = weights.copy()
    for row, wanted in zip(moved, inputs, strict=True):
        for _ in range(_MOVES):
            miss = np.ldexp(row.astype(np.float64), -BITS) @ decoders - wanted
            if np.abs(miss).max() < _EXACT:
                break
            after = np.abs(miss + step).max(axis=2)
            after[(row <= floors)[some], :] = np.inf
            after[:, (row >= ceilings)[some]] = np.inf
            a, b = np.unravel_index(int(after.argmin()), after.shape)
            if after[a, b] >= np.abs(miss).max():
                break
            row[some[a]] -= 1
            row[some[b]] += 1
    return moved


# -- windows --------------------------------------------------------------------------------------------------


def window(
    epsilon: float, n_cells: int, width: int, total: int = 1 << BITS
) -> tuple[Floats, Floats, Integers]:
    """(levels, decode, weights) of the window of `width` heavy ones among `n_cells` cells, rows summing to `total`.

    Light cells weigh B, heavy ones A, and the first ρ heavy ones A + 1, so that (N−W)·B + W·A + ρ = total with
    0 ≤ ρ < W. B is the least integer with A + 1 ≤ r·B (A ≤ r·B when ρ = 0), r ≤ e^ε rational: the ratio is kept by
    construction. The pattern moves rigidly, one cell a level, so with equally spaced decoding the mean moves
    by the same amount every level: it is affine without any correction.

    >>> levels, decode, weights = window(1.0, 4, 2, total=1000)
    >>> weights.tolist()
    [[365, 365, 135, 135], [135, 365, 365, 135], [135, 135, 365, 365]]
    """
    if not 1 <= width < n_cells:
        raise InvalidInput(
            f"width = {width} is not allowed: it must be at least 1 and below n_cells = {n_cells}"
        )
    ratio = exp_lower(epsilon)
    top, bottom = ratio.numerator, ratio.denominator
    light = -(-total * bottom // ((n_cells - width) * bottom + width * top))  # (N−W)·B + W·r·B ≥ total
    while True:
        heavy, rest = divmod(total - (n_cells - width) * light, width)
        if (heavy + (rest > 0)) * bottom <= top * light:
            break
        light += 1
    moved = (heavy - light) * width + rest
    if heavy < light or moved <= 0:
        raise InvalidInput(
            f"epsilon = {epsilon} is not allowed: {BITS} bits cannot express it with {n_cells} cells; use more than "
            f"{2 * n_cells / total:.1e}"
        )
    n_levels = n_cells - width + 1
    weights = np.full((n_levels, n_cells), light, dtype=np.int64)
    for i in range(n_levels):
        weights[i, i : i + width] = heavy
        weights[i, i : i + rest] += 1
    step = 2.0 / (n_levels - 1) * (total / moved)
    # the mean of the first row's cell numbers, with integers until the last division
    centre = sum(int(w) * y for y, w in enumerate(weights[0].tolist()))
    decode = np.array([-1.0 + step * ((y * total - centre) / total) for y in range(n_cells)])
    return np.linspace(-1.0, 1.0, n_levels), decode, weights


def window_table(name: str, epsilon: float, n_cells: int, width: int) -> Table:
    """The window as a table."""
    levels, decode, weights = window(epsilon, n_cells, width)
    return Table(name, epsilon, levels, decode, weights)


def duchi_table(name: str, epsilon: float) -> Table:
    """Duchi's mechanism: the window of one heavy cell among two."""
    return window_table(name, epsilon, n_cells=2, width=1)


def binary(epsilon: float, n_levels: int, total: int) -> tuple[Floats, Integers]:
    """(decode, weights) of Duchi's two cells for many levels: equal integer steps from one end to the other."""
    _, _, ends = window(epsilon, 2, 1, total)
    low, high = int(ends[0, 1]), int(ends[0, 0])
    step = (high - low) // (n_levels - 1)
    if step < 1:
        raise InvalidInput(
            f"epsilon = {epsilon} is not allowed: {total} cannot be stepped over {n_levels} levels"
        )
    middle = (low + high - step * (n_levels - 1)) // 2
    first = middle + step * np.arange(n_levels, dtype=np.int64)
    weights = np.stack([total - first, first], axis=1)
    bound = total / (step * (n_levels - 1))
    shift = bound * (2 * middle + step * (n_levels - 1) - total) / total
    return np.array([-bound - shift, bound - shift]), weights
