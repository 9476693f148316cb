"""What the k-subset responses have in common: a report names a category or does not."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels.response import Marginal, Response

__all__ = ["NamingResponse"]


class NamingResponse(Response):
    """A report supports a category with probability p if the user has it, and with probability q if not."""

    def marginal(self, place: int = 0, coordinate: int = 0) -> Marginal:
        return self._named

    @cached_property
    def _named(self) -> Marginal:
        p, q = self.channel.shares
        equal, other = self.channel.decode
        law = np.array([[1 - q, q], [1 - p, p]])[:, None, :]
        levels = np.array([0.0, 1.0])
        return Marginal(law, {"value": levels}, {"value": np.array([other, equal])}, levels)

    def cells(self, counts: NDArray[np.int64], place: int = 0) -> NDArray[np.int64]:
        named = self.supports(counts)
        answers = int(counts.sum()) // self.channel.per_report
        return np.stack([answers - named, named], axis=1)

    def classes(
        self, place: int = 0, coordinate: int = 0
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], bool]:
        return np.array(self.channel.decode), np.array([coordinate]), True
