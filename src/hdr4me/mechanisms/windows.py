"""Windows: the closed-form tables, of N equal cells with W heavy ones that slide with the level."""

from __future__ import annotations

import numpy as np

from hdr4me.channels.proof import BITS, exp_lower
from hdr4me.errors import InvalidInput
from hdr4me.mechanisms.law import Floats
from hdr4me.mechanisms.rounding import Integers
from hdr4me.mechanisms.table import Table

__all__ = ["binary", "duchi_table", "window", "window_table"]


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
