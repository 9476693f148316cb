"""The support of a prior on the domain: an atom at the null value and K equal cells, each of uniform density.

Because cells are uniform inside, the posterior mean tends to the observation where the noise is finer than a cell, and
the posterior has a continuous distribution function for intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from hdr4me.recalibration.inputs import Floats

_ROOT_2PI = float(np.sqrt(2 * np.pi))
FARTHEST = 8.0
"""An observation further outside the domain than this many standard errors is moved there, so that no likelihood
underflows to zero."""
_WINDOW = 13
# Levels of noise: at least 40 dimensions each, at most 6, and only if the standard errors differ by half.
_FEWEST_PER_LEVEL, _MOST_LEVELS, _UNEQUAL = 40, 6, 1.5


class Sample(NamedTuple):
    """Observations x_b with standard errors s_b > 0, each standing for `weight_b` dimensions."""

    x: Floats
    s: Floats
    weight: Floats


class Prior(NamedTuple):
    """Distributions over atom and cells (one a row), and the logarithm of each one's weight."""

    shapes: Floats
    log_weights: Floats

    @property
    def average(self) -> Floats:
        """The weighted average of the distributions."""
        return np.asarray(np.exp(self.log_weights) @ self.shapes)


@dataclass(frozen=True)
class Cells:
    """`n_cells` equal cells between low and high, and an atom at `null`."""

    low: float
    high: float
    null: float
    n_cells: int

    @classmethod
    def for_noise(cls, low: float, high: float, null: float, s: Floats) -> Cells:
        """Cells about a third of the smaller standard errors wide; between 40 and 256 of them."""
        fine = float(np.quantile(s, 0.1)) / 3
        return cls(low, high, null, int(np.clip(np.ceil((high - low) / fine), 40, 256)))

    @property
    def width(self) -> float:
        """The width of a cell."""
        return (self.high - self.low) / self.n_cells

    @property
    def edges(self) -> Floats:
        """The K+1 edges."""
        return np.linspace(self.low, self.high, self.n_cells + 1)

    @property
    def middles(self) -> Floats:
        """The K middles."""
        edges = self.edges
        return 0.5 * (edges[1:] + edges[:-1])

    def likelihood(self, x: Floats, s: Floats) -> Floats:
        """Average of exp(−(x−θ)²/2s²) over the atom (column 0) and over each cell."""
        x = self._nearby(x, s)
        out = np.empty((x.size, self.n_cells + 1))
        out[:, 0] = np.exp(-0.5 * ((x - self.null) / s) ** 2)
        out[:, 1:] = self._inside(x, (self.edges - x[:, None]) / s[:, None])
        out[:, 1:] *= (_ROOT_2PI * s / self.width)[:, None]
        return out

    def window_moments(self, x: Floats, s: Floats, shape: Floats) -> tuple[Floats, Floats]:
        """E θ and E θ² given x under the prior `shape`, for s below 1.5 cells.

        Only the 27 cells around x carry likelihood above e⁻³²; inside each the normal is integrated exactly.
        """
        x = self._nearby(x, s)
        size = min(2 * _WINDOW + 1, self.n_cells)
        middle = np.floor((x - self.low) / self.width).astype(np.int64)
        at = np.clip(middle - _WINDOW, 0, self.n_cells - size)[:, None] + np.arange(size + 1)
        z = (self.edges[at] - x[:, None]) / s[:, None]
        density = shape[1:][at[:, :-1]] / self.width
        mass = density * self._inside(x, z) * s[:, None]
        φ = normal_density(z)
        σ = s[:, None]
        # ∫ (θ−x) and (θ−x)² against the normal of each cell, in units of s.
        first = -density * np.diff(φ, axis=1) * σ**2
        second = mass * σ**2 - density * np.diff(z * φ, axis=1) * σ**3
        atom = shape[0] * np.exp(-0.5 * ((x - self.null) / s) ** 2) / _ROOT_2PI
        # Where the prior has no mass nearby, the posterior is the observation's own normal.
        total = mass.sum(axis=1) + atom
        lost = total < 1e-200
        total = np.where(lost, 1.0, total)
        p = atom / total
        m1 = first.sum(axis=1) / total
        m2 = second.sum(axis=1) / total
        mean = np.where(lost, x, (1 - p) * x + m1 + p * self.null)
        square = (1 - p) * x**2 + 2 * x * m1 + m2 + p * self.null**2
        return mean, np.where(lost, x**2 + s**2, square)

    def _nearby(self, x: Floats, s: Floats) -> Floats:
        return np.clip(x, self.low - FARTHEST * s, self.high + FARTHEST * s)

    def _inside(self, x: Floats, z: Floats) -> Floats:
        """Φ(b) − Φ(a) between neighbouring z, taken in the left tail where it keeps its digits."""
        flip = np.where(x < 0.5 * (self.low + self.high), -1.0, 1.0)[:, None]
        return np.abs(np.diff(ndtr(flip * z), axis=1))


def normal_density(z: Floats) -> Floats:
    """The density of the standard normal."""
    return np.asarray(np.exp(-0.5 * z**2) / _ROOT_2PI)


def distinct_pairs(a: Floats, b: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One index for each distinct pair, in order of the pairs, and each element's place among them.

    >>> distinct_pairs(np.array([2.0, 1.0, 2.0]), np.array([5.0, 7.0, 5.0]))
    (array([1, 0]), array([1, 0, 1]))
    """
    order = np.lexsort((b, a))
    new = np.ones(a.size, dtype=bool)
    new[1:] = (np.diff(a[order]) != 0) | (np.diff(b[order]) != 0)
    inverse = np.empty(a.size, dtype=np.int64)
    inverse[order] = np.cumsum(new) - 1
    return order[new], inverse


def compress(sample: Sample, limit: int = 400) -> Sample:
    """At most about `limit` weighted observations that stand for all: bins of s/8 by 5 % of s, or coarser.

    Bins carry their members' averages; the spread inside one adds (1/8)²/12 ≈ 0.1 % to the noise variance.

    >>> many = Sample(np.linspace(-1, 1, 5001), np.full(5001, 0.1), np.ones(5001))
    >>> few = compress(many)
    >>> len(few.x), float(few.weight.sum())
    (161, 5001.0)
    """
    x, s, weight = sample
    if x.size <= limit:
        return sample
    step = 1.0
    while True:
        level = np.rint(np.log(s) / (0.05 * step))
        place = np.rint(x / (np.exp(level * 0.05 * step) * step / 8))
        _, inverse = distinct_pairs(level, place)
        total = np.bincount(inverse, weights=weight).astype(np.float64)
        if total.size <= limit or step >= 8:
            break
        step *= 1.5
    return Sample(
        np.bincount(inverse, weights=x * weight) / total,
        np.exp(np.bincount(inverse, weights=np.log(s) * weight) / total),
        total,
    )


def noise_levels(s: Floats) -> list[NDArray[np.int64]]:
    """Dimensions in levels of standard error, at least 40 in each; one level if they hardly differ.

    Equal standard errors stay together: a cut between them would sort by the observed means.

    >>> [level.size for level in noise_levels(np.geomspace(0.01, 1, 100))]
    [50, 50]
    >>> [level.size for level in noise_levels(np.repeat([0.1, 0.3], [50, 70]))]
    [50, 70]
    >>> len(noise_levels(np.full(1000, 0.1)))
    1
    """
    number = min(s.size // _FEWEST_PER_LEVEL, _MOST_LEVELS)
    order = np.argsort(s, kind="stable")
    if number < 2 or np.quantile(s, 0.9) < _UNEQUAL * np.quantile(s, 0.1):
        return [order]
    rising = s[order]
    cuts: list[int] = []
    for level in np.array_split(rising, number)[:-1]:
        cut = int(np.searchsorted(rising, level[-1], "right"))
        if cut - (cuts[-1] if cuts else 0) >= _FEWEST_PER_LEVEL and s.size - cut >= _FEWEST_PER_LEVEL:
            cuts.append(cut)
    return np.split(order, cuts)
