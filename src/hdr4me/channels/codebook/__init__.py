"""Codebooks: vectors of the unit ball."""

from __future__ import annotations

from hdr4me.channels.codebook.channel import MAX_LENGTH, PRECISION, Codebook

__all__ = ["MAX_LENGTH", "PRECISION", "Codebook"]
