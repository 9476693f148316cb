"""What unary encoding says about each category."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hdr4me.channels.blanket import Blanket, entries_blanket
from hdr4me.channels.response import Contrast, Floats, Marginal, Numbers, probabilities
from hdr4me.channels.table.response import TableResponse

if TYPE_CHECKING:
    from hdr4me.kernels.exact.secure import SecureDraws


class UnaryResponse(TableResponse):
    """An entry is absent (0) or present (1), and goes through a table of two rows."""

    def sample(self, inputs: Numbers, draws: SecureDraws) -> Numbers:
        present = (inputs[:, None] == np.arange(self.channel.size)).astype(np.int64)
        return self._cells.sample(present, draws)

    def counters(self, outputs: Numbers) -> Numbers:
        return np.asarray(outputs + np.arange(self.channel.size) * self.channel.n_cells)

    def contrast(self, first: int, second: int) -> Contrast:
        """Only the two entries in which the inputs differ say anything."""
        absent, present = probabilities(self.channel.weights)
        width = self.channel.n_cells
        return Contrast(
            lambda outputs: outputs[:, first] * width + outputs[:, second],
            np.outer(present, absent).ravel(),
            np.outer(absent, present).ravel(),
        )

    @property
    def field_laws(self) -> tuple[tuple[Floats, int], ...]:
        absent, present = probabilities(self.channel.weights)
        return (absent, self.channel.size - 1), (present, 1)

    def likeliest(self) -> float:
        return float(np.prod([law.max() ** times for law, times in self.field_laws]))

    def blanket(self) -> Blanket:
        return entries_blanket(self.channel.weights, self.channel.size)

    def marginal(self, place: int = 0, coordinate: int = 0) -> Marginal:
        return self._entry

    @cached_property
    def _entry(self) -> Marginal:
        law = probabilities(self.channel.weights)[:, None, :]
        levels = np.array([0.0, 1.0])
        return Marginal(law, {"value": levels}, {"value": np.array(self.channel.decode)}, levels, unary=True)

    def cells(self, counts: Numbers, place: int = 0) -> Numbers:
        return counts.reshape(self.channel.size, self.channel.n_cells)

    def classes(self, place: int = 0, coordinate: int = 0) -> tuple[Floats, Numbers, bool]:
        n = self.channel.n_cells
        return np.array(self.channel.decode), coordinate * n + np.arange(n), False
