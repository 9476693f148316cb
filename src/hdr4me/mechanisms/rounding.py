"""Real rows to integer rows: sums kept, ratios kept, and the decoding corrected so that the mean stays exact."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels.proof import BITS, exp_lower
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.law import Floats

__all__ = ["Integers", "round_rows", "unbiased_decode", "unbiased_rows"]

_INDEPENDENT = 1e-6
"""Rows that differ by less than this share of the largest difference count as dependent."""
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

    Parameters
    ----------
    rows
        Real rows whose columns keep the ratio e^ε.
    epsilon
        That ε.
    inputs
        What the means are to be, one row per row and one column per decoder.
    decoders
        Where to start from, one row per cell; zeros give the decoders of least mean square over the prior.
    prior
        The rows' shares in the norm that is kept small (equal if left out).

    Returns
    -------
    tuple
        Weights that sum to 2^32 in each row, and decoders.
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
