"""Projective geometry response: one index for up to millions of categories."""

from __future__ import annotations

from hdr4me.channels.projective.channel import MAX_POINTS, Projective, n_points

__all__ = ["MAX_POINTS", "Projective", "n_points"]
