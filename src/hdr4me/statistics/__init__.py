"""Statistics: estimates from the counts of a tally, with confidence intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hdr4me.statistics.answer import Answer
from hdr4me.statistics.intervals import quantile
from hdr4me.statistics.statistic import STATISTICS, Counted, Part, Statistic, ask, estimate

if TYPE_CHECKING:
    from hdr4me.statistics.rounds import combine, refine

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


def __getattr__(name: str) -> Any:
    if name not in ("combine", "refine"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hdr4me.statistics import rounds

    return getattr(rounds, name)
