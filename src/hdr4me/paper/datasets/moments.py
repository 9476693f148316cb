"""The two moments of each dimension that the framework's predictions need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Moments", "moments"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Moments:
    """Each dimension's mean and mean square over its users."""

    mean: Floats
    square: Floats

    def take(self, dimensions: NDArray[np.int64]) -> Moments:
        """The moments of these dimensions."""
        return Moments(self.mean[dimensions], self.square[dimensions])

    def two_points(self) -> tuple[Floats, Floats]:
        """For each dimension, two values in [−1, 1] and their shares with the same mean and mean square.

        E[t*|t] is affine and Var(t*|t) quadratic in t, so the framework predicts the same bias and variance
        from these two values as from all n. The upper one is mean + sd, or 1 where that leaves the domain;
        (upper − mean)(mean − lower) = variance gives the lower.

        >>> values, shares = Moments(np.array([0.8]), np.array([0.8])).two_points()  # zeros and ones
        >>> values.round(9).tolist(), shares.round(9).tolist()
        ([[1.0, 0.0]], [[0.8, 0.2]])
        """
        flip = np.where(self.mean < 0, -1.0, 1.0)
        mean = np.abs(self.mean)
        variance = np.maximum(self.square - mean**2, 0.0)
        above = np.maximum(np.minimum(np.sqrt(variance), 1 - mean), 1e-12)
        below = np.minimum(variance / above, 1 + mean)
        share = below / (above + below)
        values = flip[:, None] * np.stack([np.minimum(mean + above, 1.0), mean - below], axis=1)
        return values, np.stack([share, 1 - share], axis=1)


def moments(columns: Iterable[NDArray[np.float32]]) -> Moments:
    """Sums in double precision over single-precision columns.

    >>> moments([np.array([1.0, 0.0], dtype=np.float32)]).mean
    array([0.5])
    """
    wide = (np.asarray(column, dtype=np.float64) for column in columns)
    mean, square = np.array([(c.mean(), np.dot(c, c) / c.size) for c in wide]).T
    return Moments(mean, square)
