"""The range of a second round, and the expected gain of that round.

Values outside the narrower range are clipped to its ends, which is a bias. The range minimizes the squared bias plus
the variance for the pilot's distribution and for values that the pilot may have missed. The constants are fixed by
benchmarks/second_rounds.py, and tests/statistics/test_round_constants.py fails when one of them changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import cumulative_trapezoid

from hdr4me.errors import InvalidInput
from hdr4me.framework.em import climb
from hdr4me.mechanisms import mechanism as named
from hdr4me.mechanisms.priors import as_prior
from hdr4me.statistics.calibrate import Floats
from hdr4me.statistics.shapes import Grid

# A range keeps at least the share LEAST of its width, and it is narrowed only if the squared error falls below WORTH.
LEAST, WORTH = 0.1, 0.85
# The share of users beyond a moved end whom a pilot may miss, in units of the noise of its mean on [−1, 1]. Values of
# which more than _HEAP lie at an end of the range (counts with many zeros, yes or no) have long tails: HEAPED.
UNSEEN, HEAPED = 0.4, 1.2
_HEAP, _AT_END = 0.5, 1 / 32
# Steps of the grid by which each end is moved outwards, because the pilot's estimate of it is uncertain.
MARGIN, _STEPS = 1, 65
_DRAWS, _SEED = 24, 20261116
# The table of least mean variance decides on the next round's ranges; each number gets the better one of GENERAL.
NEXT = "optimal_mean"
GENERAL = ("optimal", NEXT)


class Range(NamedTuple):
    """A narrower range on [−1, 1], its largest bias, its gain in squared error, and the bias by unseen users."""

    low: float = -1.0
    high: float = 1.0
    bias: float = 0.0
    gain: float = 1.0
    unseen: float = 0.0


def unseen_share(edges: Floats, cumulative: Floats, noise: float) -> float:
    """The share of users beyond an end whom a pilot may miss."""
    low, high = np.interp([-1.0 + 2 * _AT_END, 1.0 - 2 * _AT_END], edges, cumulative)
    return (HEAPED if max(low, 1.0 - high) > _HEAP else UNSEEN) * noise


def narrowed(edges: Floats, cumulative: Floats, n: float, noise: float, unseen: float = 0.0) -> Range:
    """The range that makes bias² + variance least, for values distributed as given.

    Users whom the pilot misses count as spread evenly over what is cut off, all of them beyond one end.
    """
    ends = np.linspace(-1.0, 1.0, _STEPS)
    fine = np.linspace(-1.0, 1.0, 8 * (_STEPS - 1) + 1)
    f, step = np.interp(fine, edges, cumulative), fine[1] - fine[0]
    below_all = cumulative_trapezoid(f, dx=step, initial=0)  # ∫F, which is E(x − t)₊
    above_all = cumulative_trapezoid((1.0 - f)[::-1], dx=step, initial=0)[::-1]
    low, high = ends[:, None], ends[None, :]
    half = (high - low) / 2
    bias = np.maximum(np.interp(low, fine, below_all), np.interp(high, fine, above_all))
    spread = spread_of(edges, cumulative)
    hidden = unseen * np.maximum(1.0 + low, 1.0 - high) / 2
    cost = (half**2 * noise + spread) / n + bias**2 + hidden**2
    cost[half < LEAST] = np.inf
    first, last = np.unravel_index(int(cost.argmin()), cost.shape)
    i, k = max(int(first) - MARGIN, 0), min(int(last) + MARGIN, _STEPS - 1)
    whole = (noise + spread) / n
    if cost[i, k] > WORTH * whole:
        return Range()
    found = (ends[i], ends[k], bias[i, k], whole / cost[i, k], hidden[i, k])
    return Range(*map(float, found))


def spread_of(edges: Floats, cumulative: Floats) -> float:
    """The variance of values distributed as given."""
    middles = (edges[:-1] + edges[1:]) / 2
    share = np.diff(cumulative)
    return float(share @ (middles - float(share @ middles)) ** 2)


@dataclass(frozen=True)
class Predicted:
    """The root mean square errors of one round with all users and of two rounds, on the scale [−1, 1].

    `low` and `high` are the second round's range, averaged over the pilots that were drawn.
    """

    one: float
    two: float
    low: float = -1.0
    high: float = 1.0

    @property
    def gain(self) -> float:
        """The mean squared error of one round over that of two."""
        return (self.one / self.two) ** 2


def predict_rounds(
    prior: Any, n: int, epsilon: float, *, mechanism: str = "optimal", pilot: float = 0.2
) -> Predicted:
    """The expected gain of a second round, if values are distributed as `prior`.

    Pilots are drawn with a fixed seed, fitted as `refine` fits them, and the errors of the second round on the ranges
    that follow are computed, bias included.
    """
    if not 0.0 < pilot < 1.0:
        raise InvalidInput.of("pilot", pilot, "a share strictly between 0 and 1")
    if type(n) is not int or n < 10:
        raise InvalidInput.of("n", n, "an integer of at least 10")
    law = as_prior(prior)
    exact, later, *tables = (named(name, epsilon=epsilon).exact() for name in (mechanism, NEXT, *GENERAL))
    marginal = exact.channel().response.marginal()
    first, second = pilot * n, (1.0 - pilot) * n
    variance_of_one = float(np.asarray(exact.variance(law.values)) @ law.shares) + law.variance
    one, whole = float(np.sqrt(variance_of_one / n)), variance_of_one / first
    if marginal.rank < 3:  # the pilot shows a mean and nothing else: ranges are kept
        return Predicted(one, one)
    grid = Grid.of(marginal)
    shares = law.shares @ np.asarray(exact.law_at(law.values))
    counts = np.random.default_rng(_SEED).multinomial(round(first), shares / shares.sum(), size=_DRAWS)
    fits = climb(grid.joined(counts.astype(np.float64)), grid.law, grid.shape)
    errors, ranges = [], []
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
        # The weight of the second round in `combine`.
        weight = whole / (whole + variance + found.bias**2 + found.unseen**2)
        errors.append(weight**2 * (variance + shift**2) + (1.0 - weight) ** 2 * whole)
        ranges.append(found[:2])
    low, high = np.mean(ranges, axis=0).tolist()
    return Predicted(one, float(np.sqrt(np.mean(errors))), low, high)
