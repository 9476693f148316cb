"""PrivSet: several categories at once."""

from __future__ import annotations

from hdr4me.channels.privset.channel import MAX_INPUTS, PrivSet, rank, selection_channel, unrank

__all__ = ["MAX_INPUTS", "PrivSet", "rank", "selection_channel", "unrank"]
