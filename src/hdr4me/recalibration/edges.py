"""A mean that is known up to a normal error, on a domain whose ends are likelier than other points.

Hours of sleep without a step, pixels that are always empty, answers that everybody gives: means at an end of the domain
are common. The prior has a spike of `SPIKE` at each end and is uniform between. A normal estimate N(m, v) of θ is
combined with it; the posterior is a share at each end and a truncated normal between.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from hdr4me.recalibration.cells import Floats

__all__ = ["SPIKE", "Edged", "edged"]

SPIKE = 0.15
_ROOT_2PI = float(np.sqrt(2 * np.pi))
# As in `cells`: an estimate further outside than this many standard errors is moved there, so that nothing underflows.
_FARTHEST = 8.0


class Edged(NamedTuple):
    """The posterior of each mean: N(m, sd²) cut to [low, high], and the shares of the two ends."""

    m: Floats
    sd: Floats
    low: float
    high: float
    at_low: Floats
    at_high: Floats

    def part(self, rows: slice) -> Edged:
        """The same for some of the means."""
        m, sd, at_low, at_high = (a[rows] for a in (self.m, self.sd, self.at_low, self.at_high))
        return Edged(m, sd, self.low, self.high, at_low, at_high)

    @property
    def mean(self) -> Floats:
        """E θ."""
        a, b = (self.low - self.m) / self.sd, (self.high - self.m) / self.sd
        slope = (_density(a) - _density(b)) / _between(a, b)
        inside = np.clip(self.m + self.sd * slope, self.low, self.high)
        return np.asarray(inside + self.at_low * (self.low - inside) + self.at_high * (self.high - inside))

    def below(self, θ: Floats) -> Floats:
        """P(mean ≤ θ) for a row of points of the domain, one row for each mean."""
        m, sd = self.m[:, None], self.sd[:, None]
        a = (self.low - m) / sd
        part = _between(a, (θ - m) / sd) / _between(a, (self.high - m) / sd)
        inside = (1 - self.at_low - self.at_high)[:, None] * np.minimum(part, 1.0)
        return np.asarray(self.at_low[:, None] + inside + self.at_high[:, None] * (θ >= self.high))


def edged(mean: Floats, variance: Floats, low: float, high: float) -> Edged:
    """Combine estimates N(mean, variance) of points of [low, high] with the prior.

    >>> found = edged(np.array([-1.1, 0.2]), np.array([0.01, 0.01]), -1.0, 1.0)
    >>> found.mean.round(3)   # the first is next to surely at the end
    array([-0.993,  0.2  ])
    """
    sd = np.sqrt(np.maximum(variance, 1e-18 * (high - low) ** 2))
    m = np.clip(mean, low - _FARTHEST * sd, high + _FARTHEST * sd)
    a, b = (low - m) / sd, (high - m) / sd
    ends = [SPIKE * _density(z) / sd for z in (a, b)]
    total = ends[0] + ends[1] + (1 - 2 * SPIKE) / (high - low) * _between(a, b)
    return Edged(m, sd, low, high, ends[0] / total, ends[1] / total)


def _density(z: Floats) -> Floats:
    return np.asarray(np.exp(-0.5 * z**2) / _ROOT_2PI)


def _between(a: Floats, b: Floats) -> Floats:
    """Φ(b) − Φ(a) for a ≤ b, taken in the tail where it keeps its digits."""
    flip = a > 0
    return np.asarray(np.maximum(ndtr(np.where(flip, -a, b)) - ndtr(np.where(flip, -b, a)), 1e-300))
