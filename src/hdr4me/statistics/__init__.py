"""Statistics: questions put to the counts of a tally, and their answers with error bars."""

from __future__ import annotations

from hdr4me.statistics.answer import Answer
from hdr4me.statistics.ask import ask, estimate
from hdr4me.statistics.intervals import quantile
from hdr4me.statistics.rounds import combine, refine
from hdr4me.statistics.statistic import STATISTICS, Counted, Part, Statistic

__all__ = [
    "STATISTICS",
    "Answer",
    "Counted",
    "Part",
    "Statistic",
    "ask",
    "combine",
    "estimate",
    "quantile",
    "refine",
]
