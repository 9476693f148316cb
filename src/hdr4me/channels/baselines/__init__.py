"""Published protocols for comparison, as exact channels: a plan never recommends them; standard library only."""

from __future__ import annotations

from hdr4me.channels.baselines.design import BASELINES, MEMOIZED_BASELINES

__all__ = ["BASELINES", "MEMOIZED_BASELINES"]
