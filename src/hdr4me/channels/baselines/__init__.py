"""Published protocols for comparison, as exact channels that no survey or plan chooses; standard library only."""

from __future__ import annotations

from hdr4me.channels.baselines.design import BASELINES, MEMOIZED_BASELINES, baseline

__all__ = ["BASELINES", "MEMOIZED_BASELINES", "baseline"]
