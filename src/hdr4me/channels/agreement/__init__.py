"""Agreement blocks: many numbers, rounded to signs, in one answer."""

from __future__ import annotations

from hdr4me.channels.agreement.channel import FIELD_BITS, MAX_SIZE, Agreement

__all__ = ["FIELD_BITS", "MAX_SIZE", "Agreement"]
