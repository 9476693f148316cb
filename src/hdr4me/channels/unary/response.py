"""What unary encoding says about each category."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels.response import Marginal, Response, probabilities

__all__ = ["UnaryResponse"]


class UnaryResponse(Response):
    """An entry is absent (0) or present (1), and goes through a table of two rows."""

    def marginal(self, place: int = 0, coordinate: int = 0) -> Marginal:
        return self._entry

    @cached_property
    def _entry(self) -> Marginal:
        law = probabilities(self.channel.weights)[:, None, :]
        levels = np.array([0.0, 1.0])
        return Marginal(law, {"value": levels}, {"value": np.array(self.channel.decode)}, levels, unary=True)

    def cells(self, counts: NDArray[np.int64], place: int = 0) -> NDArray[np.int64]:
        return counts.reshape(self.channel.size, self.channel.n_cells)

    def classes(
        self, place: int = 0, coordinate: int = 0
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], bool]:
        n = self.channel.n_cells
        return np.array(self.channel.decode), coordinate * n + np.arange(n), False
