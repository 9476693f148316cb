"""How far a second round may narrow a range, and the gain to expect of it.

A narrower range has less noise and a bias, because values outside count as its ends. The range is chosen such that
squared bias and variance together are least.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels import Table
from hdr4me.errors import InvalidInput
from hdr4me.framework.em import climb
from hdr4me.mechanisms import mechanism as named
from hdr4me.mechanisms.priors import as_prior
from hdr4me.statistics.readings import Reading
from hdr4me.statistics.shapes import Grid

__all__ = [
    "GENERAL",
    "NEXT",
    "Foretold",
    "Range",
    "foretell_rounds",
    "narrowed",
    "spread_of",
    "unseen_share",
]

Floats = NDArray[np.float64]
# These constants were set with benchmarks/second_rounds.py: docs/decisions/second-rounds.md.
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
_DRAWS, _SEED = 24, 20261116
NEXT = "optimal_mean"
"""The table whose noise decides on the next round's ranges: of least mean variance."""
GENERAL = ("optimal", NEXT)
"""The tables that each number of the next round may have, whichever has less variance for its values."""


@dataclass(frozen=True)
class Foretold:
    """What two rounds are expected to bring for the mean of one number, on the scale [−1, 1].

    Parameters
    ----------
    one, two
        The root mean square error of one round with all users, and of two rounds.
    low, high
        The second round's range, averaged over the pilots that were drawn.
    """

    one: float
    two: float
    low: float
    high: float

    @property
    def gain(self) -> float:
        """How many times less the mean squared error is with two rounds."""
        return (self.one / self.two) ** 2


def foretell_rounds(
    prior: Any, n: int, epsilon: float, *, mechanism: str = "optimal", pilot: float = 0.2
) -> Foretold:
    """What a second round would bring, if values are as expected.

    Pilots are drawn from the law of a report under the prior with a fixed seed, fitted as `refine` fits them, and the
    errors of the second round on the ranges that follow are computed, bias included.

    Parameters
    ----------
    prior
        What the values are expected to be on [−1, 1]: "uniform", a SciPy distribution, a histogram or an array.
    n
        Reports about the dimension in both rounds together.
    epsilon
        The budget of one answer.
    mechanism
        How numbers are randomised in the first round.
    pilot
        The share of the reports in the first round.

    Returns
    -------
    Foretold
        Its `gain` is about 1 where the values fill their range.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> foretell_rounds(norm(0, 0.1), 40_000, 1.0).gain > 3, 0.9 < foretell_rounds("uniform", 40_000, 1.0).gain < 1.1
    (True, True)
    """
    if not 0.0 < pilot < 1.0:
        raise InvalidInput.of("pilot", pilot, "a share strictly between 0 and 1")
    if type(n) is not int or n < 10:
        raise InvalidInput.of("n", n, "a whole number from 10")
    law = as_prior(prior)
    exact = named(mechanism, epsilon=epsilon).exact()
    later = named(NEXT, epsilon=epsilon).exact()
    tables = [named(name, epsilon=epsilon).exact() for name in GENERAL]
    channel = exact.channel()
    assert isinstance(channel, Table)
    reading = Reading(channel)
    first, second = pilot * n, (1.0 - pilot) * n
    spread = law.variance
    noise = float(np.asarray(exact.variance(law.values)) @ law.shares)
    one = (noise + spread) / n
    whole = (noise + spread) / first
    if reading.rank < 3:  # the pilot shows a mean and nothing else: ranges are kept
        return Foretold(float(np.sqrt(one)), float(np.sqrt(one)), -1.0, 1.0)
    grid = Grid.of(reading)
    shares = law.shares @ np.asarray(exact.law_at(law.values))
    counts = np.random.default_rng(_SEED).multinomial(round(first), shares / shares.sum(), size=_DRAWS)
    fits = climb(grid.joined(counts.astype(np.float64)), grid.law, grid.shape)
    errors, lows, highs = [], [], []
    for cumulative in grid.cumulative(fits.p):
        hidden = unseen_share(grid.edges, cumulative, float(np.sqrt(exact.mean_variance() / first)))
        found = narrowed(grid.edges, cumulative, second, later.mean_variance(), hidden)
        half, middle = (found.high - found.low) / 2, (found.high + found.low) / 2
        values = np.clip(law.values, found.low, found.high)
        shift = float(law.shares @ (values - law.values))
        scaled = (values - middle) / half
        own = min(float(law.shares @ np.asarray(table.variance(scaled))) for table in tables) * half**2
        mean = float(law.shares @ values)
        variance = (own + float(law.shares @ (values - mean) ** 2)) / second
        weight = whole / (
            whole + variance + found.bias**2 + found.unseen**2
        )  # of the second round, as `combine` weighs it
        errors.append(weight**2 * (variance + shift**2) + (1.0 - weight) ** 2 * whole)
        lows.append(found.low)
        highs.append(found.high)
    two = float(np.sqrt(np.mean(errors)))
    return Foretold(float(np.sqrt(one)), two, float(np.mean(lows)), float(np.mean(highs)))


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
        return max(self.below, self.above)


def unseen_share(edges: Floats, cumulative: Floats, noise: float) -> float:
    """The share of users beyond an end whom a pilot may miss.

    `cumulative` is the pilot's share of values up to each edge on [−1, 1], `noise` the standard error of its mean.

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

    `cumulative` is the expected share of values up to each edge on [−1, 1], n the number of reports of the next round,
    `noise` the variance of a report on [−1, 1], `unseen` the share of users beyond an end whom the pilot may miss.
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
    bias = np.maximum(below[:, None], above[None, :])
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
