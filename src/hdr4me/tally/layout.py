"""Where each count stands: one flat array, dimension by dimension, entry by entry, cell by cell."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdr4me.survey import Survey

__all__ = ["Layout"]


@dataclass(frozen=True)
class Layout:
    """Code c in entry e of dimension j is counted at offsets[j] + e·cells[j] + c; arrays of length d.

    >>> from hdr4me.survey import Numeric, Schema
    >>> layout = Layout.of(Survey(Schema([Numeric("a", 0, 1), Numeric("b", 0, 1)]), mechanism="duchi"))
    >>> layout.offsets.tolist(), layout.size
    ([0, 2], 4)
    """

    entries: NDArray[np.int64]
    cells: NDArray[np.int64]
    offsets: NDArray[np.int64]
    size: int

    @classmethod
    def of(cls, survey: Survey) -> Layout:
        """The layout of a survey's counts; the same one each time, for every empty tally asks for it."""
        return _layout(survey)

    def totals(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """How often each entry of each dimension was counted, all entries end to end."""
        return np.add.reduceat(counts, self.starts)

    @property
    def starts(self) -> NDArray[np.int64]:
        """Where each entry of each dimension begins."""
        first = np.cumsum(self.entries) - self.entries
        within = np.arange(int(self.entries.sum())) - np.repeat(first, self.entries)
        return np.repeat(self.offsets, self.entries) + within * np.repeat(self.cells, self.entries)


@lru_cache(maxsize=16)
def _layout(survey: Survey) -> Layout:
    d = len(survey.schema)
    entries = np.array([survey.n_codes(j) for j in range(d)], np.int64)
    cells = np.array([survey.randomizer(j).n_cells for j in range(d)], np.int64)
    ends = np.cumsum(entries * cells)
    offsets = ends - entries * cells
    for shared in (entries, cells, offsets):
        shared.flags.writeable = False
    return Layout(entries, cells, offsets, int(ends[-1]))
