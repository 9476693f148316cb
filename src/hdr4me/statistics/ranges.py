"""How far a range may be narrowed: squared bias and variance together are least."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
CAUTION = 1.0
"""A bias counts this many times as much as the pilot says; its smoothed distribution has long tails already."""
LEAST = 0.1
"""No range is narrowed to less than this share of its width."""
WORTH = 0.85
"""A range is narrowed only if that brings the expected squared error below this share."""
UNSEEN, HEAPED = 0.4, 1.2
"""The share of users beyond a moved end whom a pilot may miss, in units of the noise of its mean on [−1, 1]: for values
of which more than half are heaped at an end of the range (counts with many zeros, yes or no) it is the second number,
because such values have long tails."""
_HEAP, _AT_END = 0.5, 1 / 32
MARGIN = 1
"""Steps of the grid (1/64 of the range) by which each end is moved outwards: where the pilot puts it is uncertain."""
_STEPS = 65


@dataclass(frozen=True)
class Range:
    """A narrower range on [−1, 1] and what it is expected to cost.

    Parameters
    ----------
    low, high
        The range.
    below, above
        By how much the mean rises and falls because values outside count as the ends: E(low − t)₊ and E(t − high)₊.
    gain
        The squared error with the whole range over that with this one.
    unseen
        By how much the mean may move because of users whom the pilot's noise hides.
    """

    low: float
    high: float
    below: float
    above: float
    gain: float
    unseen: float = 0.0

    @property
    def bias(self) -> float:
        """The largest bias either way."""
        return CAUTION * max(self.below, self.above)


def unseen_share(edges: Floats, cumulative: Floats, noise: float) -> float:
    """The share of users beyond an end whom a pilot may miss.

    Examples
    --------
    >>> edges = np.linspace(-1, 1, 65)
    >>> heap = np.concatenate([[0.0], np.full(64, 1.0)])  # all values at the lower end
    >>> round(unseen_share(edges, (edges + 1) / 2, 0.02), 6), round(unseen_share(edges, heap, 0.02), 6)
    (0.008, 0.024)
    """
    low, high = np.interp([-1.0 + 2 * _AT_END, 1.0 - 2 * _AT_END], edges, cumulative)
    return (HEAPED if max(low, 1.0 - high) > _HEAP else UNSEEN) * noise


def narrowed(edges: Floats, cumulative: Floats, n: float, noise: float, unseen: float = 0.0) -> Range:
    """The range that makes bias² + variance least, for values distributed as given.

    Users whom the pilot misses count as spread evenly over what is cut off, all of them beyond one end.
    """
    ends = np.linspace(-1.0, 1.0, _STEPS)
    fine = np.linspace(-1.0, 1.0, 8 * (_STEPS - 1) + 1)
    f = np.interp(fine, edges, cumulative)
    step = fine[1] - fine[0]
    below_all = np.concatenate([[0.0], np.cumsum((f[1:] + f[:-1]) / 2) * step])  # ∫F, which is E(x − t)₊
    rest = 1.0 - f
    above_all = np.concatenate([np.cumsum(((rest[1:] + rest[:-1]) / 2)[::-1])[::-1] * step, [0.0]])
    below, above = np.interp(ends, fine, below_all), np.interp(ends, fine, above_all)
    low, high = ends[:, None], ends[None, :]
    half = (high - low) / 2
    bias = CAUTION * np.maximum(below[:, None], above[None, :])
    spread = spread_of(edges, cumulative)
    hidden = unseen * np.maximum(1.0 + low, 1.0 - high) / 2
    cost = (half**2 * noise + spread) / n + bias**2 + hidden**2
    cost[half < LEAST] = np.inf
    first, last = np.unravel_index(int(cost.argmin()), cost.shape)
    i, k = max(int(first) - MARGIN, 0), min(int(last) + MARGIN, _STEPS - 1)
    whole = (noise + spread) / n
    if cost[i, k] > WORTH * whole:
        return Range(-1.0, 1.0, 0.0, 0.0, 1.0)
    gain, moved = float(whole / cost[i, k]), float(hidden[i, k])
    return Range(float(ends[i]), float(ends[k]), float(below[i]), float(above[k]), gain, moved)


def spread_of(edges: Floats, cumulative: Floats) -> float:
    """The variance of values distributed as given."""
    middles = (edges[:-1] + edges[1:]) / 2
    share = np.diff(cumulative)
    mean = float(share @ middles)
    return float(share @ (middles - mean) ** 2)
