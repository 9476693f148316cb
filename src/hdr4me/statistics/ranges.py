"""How far a range may be narrowed: squared bias and variance together are least; and what two rounds would bring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.errors import InvalidInput
from hdr4me.mechanisms import mechanism as named
from hdr4me.mechanisms.priors import as_prior

__all__ = ["CAUTION", "Range", "foretell_rounds", "narrowed"]

Floats = NDArray[np.float64]
CAUTION = 1.0
"""A bias counts this many times as much as the pilot says; its smoothed distribution has long tails already."""
LEAST = 0.1
"""No range is narrowed to less than this share of its width."""
WORTH = 0.85
"""A range is narrowed only if that brings the expected squared error below this share."""
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
    """

    low: float
    high: float
    below: float
    above: float
    gain: float

    @property
    def bias(self) -> float:
        """The largest bias either way."""
        return CAUTION * max(self.below, self.above)


def narrowed(edges: Floats, cumulative: Floats, n: float, noise: float) -> Range:
    """The range that makes bias² + variance least, for values distributed as given.

    Parameters
    ----------
    edges, cumulative
        The expected distribution: the share of values up to each edge on [−1, 1].
    n
        How many reports the next round will have about this dimension.
    noise
        The variance of a report on [−1, 1].
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
    spread = _spread(edges, cumulative)
    cost = (half**2 * noise + spread) / n + bias**2
    cost[half < LEAST] = np.inf
    first, last = np.unravel_index(int(cost.argmin()), cost.shape)
    i, k = max(int(first) - MARGIN, 0), min(int(last) + MARGIN, _STEPS - 1)
    whole = (noise + spread) / n
    if cost[i, k] > WORTH * whole:
        return Range(-1.0, 1.0, 0.0, 0.0, 1.0)
    return Range(float(ends[i]), float(ends[k]), float(below[i]), float(above[k]), float(whole / cost[i, k]))


def _spread(edges: Floats, cumulative: Floats) -> float:
    middles = (edges[:-1] + edges[1:]) / 2
    share = np.diff(cumulative)
    mean = float(share @ middles)
    return float(share @ (middles - mean) ** 2)


def foretell_rounds(
    prior: Any, n: int, epsilon: float, *, mechanism: str = "optimal", pilot: float = 0.2
) -> float:
    """How many times less the mean squared error of a mean is with two rounds than with one, if values are as expected.

    The pilot is taken to find the distribution as it is, so this is what two rounds bring at best.

    Parameters
    ----------
    prior
        What the values are expected to be on [−1, 1]: "uniform", a SciPy distribution, a histogram or an array.
    n
        Reports about the dimension in both rounds together.
    epsilon
        The budget of one answer.
    mechanism
        How numbers are randomised.
    pilot
        The share of the reports in the first round.

    Returns
    -------
    float
        The gain; about 1 where the values fill their range.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> foretell_rounds(norm(0, 0.1), 40_000, 1.0) > 3, round(foretell_rounds("uniform", 40_000, 1.0), 6)
    (True, 1.0)
    """
    if not 0.0 < pilot < 1.0:
        raise InvalidInput.of("pilot", pilot, "a share strictly between 0 and 1")
    law = as_prior(prior)
    edges = np.linspace(-1.0, 1.0, 257)
    order = np.argsort(law.values)
    below = np.concatenate([[0.0], np.cumsum(law.shares[order])])
    cumulative = below[np.searchsorted(law.values[order], edges, side="right")]
    table = named(mechanism, epsilon=epsilon).exact()
    noise = float(np.asarray(table.variance(law.values)) @ law.shares)
    first, second = pilot * n, (1.0 - pilot) * n
    found = narrowed(edges, cumulative, second, noise)
    half = (found.high - found.low) / 2
    whole = noise + law.variance
    later = (half**2 * noise + law.variance) / second + found.bias**2
    return float((1.0 / later + first / whole) * whole / n)
