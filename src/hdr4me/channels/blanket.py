"""The privacy blanket of a channel, for privacy amplification by shuffling.

Let c(y) = min_x P(y|x). The distribution of every input contains the measure c, of mass γ = Σ c(y): with probability γ
a report is independent of its input. Balle, Bell, Gascón and Nissim (2019) bound the privacy loss of n shuffled reports
by the values ρ_x(y) = P(y|x)/c(y) of two inputs under c alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Blanket:
    """Atoms y with `mass` c(y), `ratios` ρ_x(y) ≥ 1 for each input x, and the ordered `pairs` of inputs to compare."""

    mass: Floats
    ratios: Floats
    pairs: NDArray[np.int64]

    @property
    def gamma(self) -> float:
        """γ, the probability that a report is independent of its input."""
        return float(self.mass.sum())

    @cached_property
    def largest_ratio(self) -> float:
        """max ρ: the privacy loss of one report is its logarithm."""
        return float(self.ratios.max())


def table_blanket(rows: ArrayLike, *, alike: bool = False) -> Blanket:
    """The blanket of a table of integers with equal row sums; by convexity, mixtures of rows need no comparison.

    `alike` means that all pairs of rows differ in the same way (randomized response), so that one pair suffices.
    """
    weights = np.asarray(rows, np.float64)
    weights = weights[:, weights.max(axis=0) > 0]
    least = weights.min(axis=0)
    n = len(weights)
    # The first and the last row come first, because in most tables they differ most. A row is also compared with
    # itself, because two records may agree in this question and differ in another.
    every = np.array(
        sorted(((x, y) for x in range(n) for y in range(n)), key=lambda pair: -abs(pair[0] - pair[1])),
        np.int64,
    )
    return Blanket(least / weights[0].sum(), weights / least, every[:1] if alike else every)


def response_blanket(ratio: float) -> Blanket:
    """Binary randomized response with e^ε = `ratio`, which dominates all other channels with that ε.

    For any channel with ρ ≤ r, V = ρ_x − e^ε·ρ_x' has mean 1 − e^ε, values in [1 − e^ε r, r − e^ε], and
    E V₊ ≤ (r − e^ε)/(r + 1), which randomized response attains with all its mass at the ends of that interval and at 0.
    So its V is the largest in the convex order, and δ is the expectation of a convex function of a sum of V.
    """
    one = 1.0 / (ratio + 1.0)
    return Blanket(np.array([one, one]), np.array([[ratio, 1.0], [1.0, ratio]]), np.array([[0, 1]], np.int64))


def heavy_blanket(n_outputs: int, n_heavy: int, weight: int, total: int = 1 << 32) -> Blanket:
    """N outputs, of which each input has k heavy outputs with total probability `weight`/`total`.

    Two inputs may share λ heavy outputs. A smaller λ spreads V and keeps its mean, so the smallest possible value,
    λ = max(0, 2k − N), bounds all pairs.
    """
    k, n = n_heavy, n_outputs
    shared = max(0, 2 * k - n)
    counts = (shared, k - shared, k - shared, n - 2 * k + shared)
    # As fractions, because the number of outputs may exceed the range of floats.
    mass = np.array([float(Fraction(count * (total - weight), (n - k) * total)) for count in counts])
    ratio = float(Fraction(weight * (n - k), (total - weight) * k))
    # Both heavy, only the first, only the second, neither.
    ratios = np.array([[ratio, ratio, 1.0, 1.0], [ratio, 1.0, ratio, 1.0]])
    return Blanket(mass, ratios, np.array([[0, 1]], np.int64))


def entries_blanket(rows: Sequence[Sequence[int]], n_entries: int) -> Blanket:
    """A two-row table (absent, present) applied to every entry of a one-hot vector of `n_entries`.

    With g(y) = P₁(y)/P₀(y), the distribution of input x is ΠP₀(y_e)·g(y_x), and the blanket is ΠP₀·min_e g(y_e). For
    two inputs, only the cells of their own entries and the smallest g of the other entries matter.
    """
    absent, present = (np.asarray(row, np.float64) / sum(row) for row in rows)
    used = absent > 0
    g, index = np.unique(present[used] / absent[used], return_inverse=True)
    q = np.bincount(index, absent[used])
    above = np.append(np.cumsum(q[::-1])[::-1], 0.0) ** (n_entries - 2)  # P(all other entries >= g)
    if n_entries == 2:
        above[:] = 1.0
    mass, ratios = [], []
    for i in range(len(g)):
        for j in range(len(g)):
            k = np.arange(min(i, j) + 1)
            chance = np.append(above[k[:-1]] - above[k[1:]], above[k[-1]])
            mass.append(q[i] * q[j] * chance * g[k])
            ratios.append(np.stack([g[i] / g[k], g[j] / g[k]]))
    pairs = np.array([[0, 1], [0, 0]], np.int64)
    return Blanket(np.concatenate(mass), np.concatenate(ratios, axis=1), pairs)
