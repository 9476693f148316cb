"""Tables of integers: numbers, optional numbers and pairs of numbers."""

from __future__ import annotations

from hdr4me.channels.table.channel import MAX_CELLS, Table, check_rows, check_unbiased

__all__ = ["MAX_CELLS", "Table", "check_rows", "check_unbiased"]
