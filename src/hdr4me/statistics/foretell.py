"""What a second round would bring: a prediction for values that are expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hdr4me.errors import InvalidInput
from hdr4me.framework.em import climb
from hdr4me.mechanisms import mechanism as named
from hdr4me.mechanisms.priors import as_prior
from hdr4me.statistics.ranges import narrowed, unseen_share
from hdr4me.statistics.shapes import Grid

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
    marginal = exact.channel().response.marginal()
    first, second = pilot * n, (1.0 - pilot) * n
    spread = law.variance
    noise = float(np.asarray(exact.variance(law.values)) @ law.shares)
    one = (noise + spread) / n
    whole = (noise + spread) / first
    if marginal.rank < 3:  # the pilot shows a mean and nothing else: ranges are kept
        return Foretold(float(np.sqrt(one)), float(np.sqrt(one)), -1.0, 1.0)
    grid = Grid.of(marginal)
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
