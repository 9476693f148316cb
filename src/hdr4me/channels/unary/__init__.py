"""Unary encoding: one small table for each entry of a one-hot vector."""

from __future__ import annotations

from hdr4me.channels.unary.channel import Entries

__all__ = ["Entries"]
