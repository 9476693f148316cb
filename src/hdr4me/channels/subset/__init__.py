"""Subset selection; with subsets of one category, generalized randomized response."""

from __future__ import annotations

from hdr4me.channels.subset.channel import Subset

__all__ = ["Subset"]
