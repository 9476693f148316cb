"""The responses of tables and of unary encoding."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from hdr4me.channels.blanket import Blanket, entries_blanket
from hdr4me.channels.proof import BITS
from hdr4me.channels.response import Contrast, Floats, Marginal, Numbers, Response, probabilities

if TYPE_CHECKING:
    from hdr4me.kernels.exact.secure import SecureDraws


class Cells:
    """Draws from the rows of an integer table.

    The cumulative sums of all rows are concatenated, with i·2^32 added to row i, so that one search finds any cell.
    """

    def __init__(self, rows: ArrayLike) -> None:
        weights = np.array(rows, np.int64)
        self._n_cells = weights.shape[1]
        raised = np.cumsum(weights, axis=1) + (np.arange(len(weights))[:, None] << BITS)
        self._sums = np.asarray(raised.ravel())

    def sample(self, rows: Numbers, draws: SecureDraws) -> Numbers:
        """A random cell for each row index."""
        return self.pick(rows, draws.words(rows.size).astype(np.int64).reshape(rows.shape))

    def pick(self, rows: Numbers, words: Numbers) -> Numbers:
        """The cell that each 32-bit word selects in each row."""
        found = np.searchsorted(self._sums, words + (rows << BITS), side="right")
        return np.asarray(found - rows * self._n_cells)


class TableResponse(Response):
    """A number, an optional number, or one of several numbers that share a table."""

    in_order = False
    alike = True  # each dimension has one coordinate

    @cached_property
    def _cells(self) -> Cells:
        return Cells(self.channel.weights)

    def sample(self, inputs: Numbers, draws: SecureDraws) -> Numbers:
        return self._cells.sample(inputs, draws)[:, None]

    def counters(self, outputs: Numbers) -> Numbers:
        return outputs

    def contrast(self, first: int, second: int) -> Contrast:
        law = probabilities(self.channel.weights)
        return Contrast(lambda outputs: outputs[:, 0], law[first], law[second])

    def bounds(self) -> tuple[Floats, Floats]:
        law, n_fields = probabilities(self.channel.weights), len(self.channel.fields)
        return np.tile(law.min(axis=0), n_fields), np.tile(law.max(axis=0), n_fields)

    def marginal(self, position: int = 0, coordinate: int = 0) -> Marginal:
        return self.shared or self._marginals[position]

    @cached_property
    def _marginals(self) -> list[Marginal]:
        return [self._marginal_of(position) for position in range(len(self.channel.inputs))]

    def _marginal_of(self, position: int) -> Marginal:
        sizes = [input_.size for input_ in self.channel.inputs]
        law = probabilities(self.channel.weights).reshape(*sizes, -1)
        own = np.moveaxis(law, position, 0).reshape(sizes[position], -1, law.shape[-1])
        suffix = f" {position + 1}" if position else ""
        names = [name for name in ("value", "present") if name + suffix in self.channel.decoders]
        levels = np.linspace(-1.0, 1.0, sizes[position] - (len(names) - 1))
        after = math.prod(sizes[position + 1 :])
        first = np.arange(sizes[position]) * after  # the inputs with the lowest level of all other dimensions
        targets = {name: np.array(self.channel.targets[name + suffix])[first] for name in names}
        decoders = {name: np.array(self.channel.decoders[name + suffix], np.float64) for name in names}
        return Marginal(own, targets, decoders, levels)


class UnaryResponse(TableResponse):
    """An entry is absent (0) or present (1) and is randomized by a table of two rows."""

    def sample(self, inputs: Numbers, draws: SecureDraws) -> Numbers:
        present = (inputs[:, None] == np.arange(self.channel.size)).astype(np.int64)
        return self._cells.sample(present, draws)

    def counters(self, outputs: Numbers) -> Numbers:
        return np.asarray(outputs + np.arange(self.channel.size) * self.channel.n_cells)

    def contrast(self, first: int, second: int) -> Contrast:
        """Only the two entries in which the inputs differ are informative."""
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

    @cached_property
    def shared(self) -> Marginal:
        law = probabilities(self.channel.weights)[:, None, :]
        levels = np.array([0.0, 1.0])
        return Marginal(law, {"value": levels}, {"value": np.array(self.channel.decode)}, levels, unary=True)

    def covariance(self, values: Floats, shares: Floats, *, optional: bool = False) -> Floats:
        """Entries are randomized independently."""
        absent, present = self.shared.moments([0.0, 1.0]).variance([1.0])
        return np.diag(absent + (present - absent) * (shares @ values))

    def cells(self, counts: Numbers, position: int = 0) -> Numbers:
        return counts.reshape(self.channel.size, self.channel.n_cells)

    def classes(self, position: int = 0, coordinate: int = 0) -> tuple[Floats, Numbers, bool]:
        n = self.channel.n_cells
        return np.array(self.channel.decode), coordinate * n + np.arange(n), False
