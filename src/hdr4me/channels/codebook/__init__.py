"""Codebooks: vectors of the unit ball."""

from __future__ import annotations

from hdr4me.channels.codebook.channel import (
    MAX_CODEWORDS,
    MAX_LENGTH,
    N_LEVELS,
    PRECISION,
    Codebook,
    lifted,
    mix,
    thresholds,
    values,
    word_levels,
)

__all__ = [
    "MAX_CODEWORDS",
    "MAX_LENGTH",
    "N_LEVELS",
    "PRECISION",
    "Codebook",
    "lifted",
    "mix",
    "thresholds",
    "values",
    "word_levels",
]
