"""The response of PrivSet: frequencies of categories, and the number of categories per user."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from hdr4me.channels.k_subset_response import NamingResponse, below_steps
from hdr4me.channels.proof import ONE
from hdr4me.channels.response import Floats, Mask, Numbers

if TYPE_CHECKING:
    from hdr4me.kernels.exact.secure import SecureDraws


class PrivSetResponse(NamingResponse):
    """The counters of the categories are followed by those of the dummies that pad smaller sets."""

    def sample(self, inputs: Numbers, draws: SecureDraws) -> Numbers:
        """As `PrivSet.draw`; users with equally many shared items are drawn together."""
        family, n = self.channel.family, len(inputs)
        w = family.chosen
        distinct, where = np.unique(inputs, return_inverse=True)
        members = np.array([family.members(x) for x in distinct.tolist()], np.int64)[where]
        shared = np.where(draws.words(n) < self.channel.weight, 1 + below_steps(family.ways, draws, n), 0)
        output = np.empty((n, w), np.int64)
        for j in np.unique(shared).tolist():
            users = np.flatnonzero(shared == j)
            own = members[users]
            if j:
                output[users, :j] = np.take_along_axis(own, draws.subsets(users.size, family.most, j), axis=1)
            if j < w:
                others = np.array(draws.subsets(users.size, family.size, w - j))
                for k in range(family.most):  # index among the other items to index among all items
                    others += others >= own[:, k, None]
                output[users, j:] = others
        output.sort(axis=1)
        return output

    def heavy(self, x: int, outputs: Numbers) -> Mask:
        return np.asarray(np.isin(outputs, self.channel.family.members(x)).any(axis=1))

    def n_coordinates(self, position: int = 0) -> int:
        return int(self.channel.family.size)

    def supports(self, counts: Numbers) -> Numbers:
        return counts[: self.channel.family.size]

    def number(self, counts: Numbers) -> float:
        """The estimated mean number of categories per user."""
        p, q = self.channel.shares
        v, answers = self.channel.family.size, int(counts.sum()) // self.channel.per_report
        return float((counts[:v].sum() / answers - v * q) / (p - q))

    def number_variance(self, chosen: ArrayLike) -> Floats:
        """The variance of the decoded number of categories of one report, if all users have `chosen` categories.

        A report contains a categories. With c chosen, E a = c·p + (v − c)·q, and a² has the mean
        E a + (c(c − 1) + 2c(v − c))·P(both | one or both chosen) + (v − c)(v − c − 1)·P(both | neither chosen),
        which is a concave function of c. The decoded number is (a − v·q)/(p − q).
        """
        family = self.channel.family
        c, v = np.asarray(chosen, np.float64), family.size
        p, q = self.channel.shares
        both, neither = map(float, family.pair_shares(Fraction(self.channel.weight, ONE)))
        mean = c * p + (v - c) * q
        pairs = (c * (c - 1) + 2 * c * (v - c)) * both + (v - c) * (v - c - 1) * neither
        return np.asarray(np.maximum(mean + pairs - mean**2, 0.0) / (p - q) ** 2)
