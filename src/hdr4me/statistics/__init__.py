"""Estimates: what the tally says, with its error."""

from __future__ import annotations

from hdr4me.statistics.estimate import Estimate, Frequencies, estimate
from hdr4me.statistics.intervals import quantile

__all__ = ["Estimate", "Frequencies", "estimate", "quantile"]
