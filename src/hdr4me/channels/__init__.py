"""Channels: how ONE input becomes ONE output, exactly; standard library only.

A channel is the one place that knows its inputs, its proof, its sampler, its fields on the wire, the counters that a
report adds to, and how counters are decoded.
"""

from __future__ import annotations

from hdr4me.channels.channel import CHANNELS, Channel, Draws, Field, Input, SystemDraws, channel_from_dict
from hdr4me.channels.k_subset import KSubset
from hdr4me.channels.table import Table, UnaryEncoding

__all__ = [
    "CHANNELS",
    "Channel",
    "Draws",
    "Field",
    "Input",
    "KSubset",
    "SystemDraws",
    "Table",
    "UnaryEncoding",
    "channel_from_dict",
]
