"""Channels: conditional distributions of one output given one input, in exact arithmetic; standard library only.

A channel defines its inputs, its privacy proof, its sampler, its fields on the wire, the counters of a report, and the
decoding of counters.
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
