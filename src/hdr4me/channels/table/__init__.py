"""Tables of integers: numbers, optional numbers, pairs of numbers, and unary encoding."""

from __future__ import annotations

from hdr4me.channels.table.channel import MAX_CELLS, Table, UnaryEncoding

__all__ = ["MAX_CELLS", "Table", "UnaryEncoding"]
