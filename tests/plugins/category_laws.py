"""Deployed channels for categories as laws that the framework accepts, and that a test can sample with a seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdr4me.channels.response import probabilities
from hdr4me.channels.table.response import Cells
from hdr4me.mechanisms.categorical import categorical_channel


class CategoryLaw:
    """The integer rows of a channel and the decoded values of its cells; kind is "category" or "entries"."""

    def __init__(self, kind: str, make: Callable[[int], Any], size: int = 2) -> None:
        self.kind, self._make, self._size = kind, make, size
        channel = self.channel()
        self.name, self.epsilon, self.likelihood_ratio = (
            channel.mechanism,
            channel.epsilon,
            channel.likelihood_ratio,
        )
        self.weights = np.array(channel.rows)
        self.n_cells = self.weights.shape[1]
        self.probabilities = probabilities(channel.rows)
        self.decode = np.array(channel.decode)
        self._cells = Cells(channel.rows)

    def channel(self, size: int | None = None) -> Any:
        return self._make(size or self._size)

    def mean(self, t: Any) -> NDArray[np.float64]:
        return np.asarray(t, dtype=np.float64)

    def variance(self, t: Any) -> NDArray[np.float64]:
        return self._moment(t, 2)

    def abs_third_moment(self, t: Any) -> NDArray[np.float64]:
        return self._moment(t, 3)

    def _moment(self, t: Any, power: int) -> NDArray[np.float64]:
        x = np.asarray(t, dtype=np.float64)[..., None]
        law = self.probabilities[0] + x * (self.probabilities[1] - self.probabilities[0])
        return np.asarray((law * np.abs(self.decode - x) ** power).sum(axis=-1))

    def sample_cells(self, rows: Any, rng: np.random.Generator) -> NDArray[np.int64]:
        row = np.asarray(rows, dtype=np.int64)
        return self._cells.pick(row, rng.integers(0, 1 << 32, size=row.shape, dtype=np.int64))

    def sample(self, rows: Any, rng: np.random.Generator) -> NDArray[np.float64]:
        return self.decode[self.sample_cells(rows, rng)]


def grr(epsilon: float, category_count: int) -> CategoryLaw:
    return CategoryLaw("category", lambda size: categorical_channel("grr", epsilon, size), category_count)


def oue(epsilon: float) -> CategoryLaw:
    return CategoryLaw("entries", lambda size: categorical_channel("oue", epsilon, size))


def histogram(epsilon: float, base: str = "optimal") -> CategoryLaw:
    return CategoryLaw("entries", lambda size: categorical_channel("histogram", epsilon, size, base))
