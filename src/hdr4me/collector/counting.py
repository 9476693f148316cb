"""Stored reports counted into the library's own tally, block by block."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from hdr4me.collector.blocks import Block
from hdr4me.survey import Survey
from hdr4me.tally import Tally

__all__ = ["Running", "count", "minus"]

_ENOUGH = 1 << 16
"""Reports that wait before they are counted: a count passes over all of a survey's counters, which may be a million."""


def count(blocks: Iterable[Block], survey: Survey) -> Tally:
    """The tally of some blocks."""
    running = Running(survey)
    for block in blocks:
        running.add(block.rows(survey))
    return running.total()


def minus(total: Tally, part: Tally) -> Tally:
    """The tally of what is in `total` and not in `part`, which is a part of it: exact, since both are integers."""
    rest = Tally(total.survey)
    np.subtract(total.counts, part.counts, out=rest.counts)
    rest.n_reports = total.n_reports - part.n_reports
    rest._rejected = total._rejected - part._rejected
    return rest


class Running:
    """The tally of a round, kept as reports come and go."""

    def __init__(self, survey: Survey) -> None:
        self._tally = Tally(survey)
        self._waiting: list[NDArray[np.uint8]] = []
        self._n = 0

    def add(self, rows: NDArray[np.uint8]) -> None:
        """Count rows [n, report_size], now or later."""
        self._waiting.append(rows)
        self._n += len(rows)
        if self._n >= _ENOUGH:
            self._count()

    def take(self, rows: NDArray[np.uint8]) -> None:
        """Uncount rows that were added before."""
        self._count()
        self._tally = minus(self._tally, Tally(self._tally.survey).add_block(rows))

    def total(self) -> Tally:
        """A copy of the tally, with all that was added."""
        self._count()
        return self._tally + Tally(self._tally.survey)

    def _count(self) -> None:
        if self._waiting:
            self._tally.add_block(np.concatenate(self._waiting))
            self._waiting, self._n = [], 0
