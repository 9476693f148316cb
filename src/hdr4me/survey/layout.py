"""The layout of counts: one flat array with the counters of each question in order."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdr4me.survey.survey import Survey


@dataclass(frozen=True)
class Layout:
    """The counters of question q are counts[offsets[q] : offsets[q + 1]].

    For channels of single bytes, code c in entry e of question q is counted at offsets[q] + e·cells[q] + c; `entries`
    and `cells` then have one element for each question; otherwise they are empty.
    """

    entries: NDArray[np.int64]
    cells: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @property
    def size(self) -> int:
        """The number of counters."""
        return int(self.offsets[-1])

    @classmethod
    @lru_cache(maxsize=16)
    def of(cls, survey: Survey) -> Layout:
        """The layout of a survey's counts."""
        channels = [question.channel for question in survey.questions]
        ends = np.cumsum([0, *(channel.n_counters for channel in channels)], dtype=np.int64)
        entries = cells = np.zeros(0, np.int64)
        if survey.byte_wise:
            entries = np.array([len(channel.fields) for channel in channels], np.int64)
            cells = np.array([channel.fields[0].bound for channel in channels], np.int64)
        for shared in (entries, cells, ends):
            shared.flags.writeable = False
        return cls(entries, cells, ends)

    def of_question(self, counts: NDArray[np.int64], q: int) -> NDArray[np.int64]:
        """The counters of question q, a view."""
        return counts[self.offsets[q] : self.offsets[q + 1]]
