"""What PrivSet says about each category, and about the number of categories that a user has."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hdr4me.channels.heavy_response import NamingResponse
from hdr4me.channels.proof import ONE

__all__ = ["PrivSetResponse"]

Floats = NDArray[np.float64]


class PrivSetResponse(NamingResponse):
    """The counters of the categories are followed by those of the dummies that fill up smaller sets."""

    def n_coordinates(self, place: int = 0) -> int:
        return int(self.channel.family.size)

    def supports(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        return counts[: self.channel.family.size]

    def number(self, counts: NDArray[np.int64]) -> float:
        """The estimated mean number of categories that a user has."""
        p, q = self.channel.shares
        v, answers = self.channel.family.size, int(counts.sum()) // self.channel.per_report
        return float((counts[:v].sum() / answers - v * q) / (p - q))

    def number_variance(self, chosen: ArrayLike) -> Floats:
        """Variance of the number of categories that one report counts for, if all users chose `chosen` of them.

        A report names a categories. With c chosen, E a = c·p + (v − c)·q, and a² has the mean
        E a + (c(c − 1) + 2c(v − c))·P(both | one or both chosen) + (v − c)(v − c − 1)·P(both | neither chosen),
        which is a concave function of c. A report counts for (a − v·q)/(p − q).
        """
        family = self.channel.family
        c, v = np.asarray(chosen, np.float64), family.size
        p, q = self.channel.shares
        both, neither = map(float, family.pair_shares(Fraction(self.channel.weight, ONE)))
        mean = c * p + (v - c) * q
        pairs = (c * (c - 1) + 2 * c * (v - c)) * both + (v - c) * (v - c - 1) * neither
        return np.asarray(np.maximum(mean + pairs - mean**2, 0.0) / (p - q) ** 2)
