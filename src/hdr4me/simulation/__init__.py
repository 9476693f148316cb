"""Simulated collections: seeded and fast, for analysis; never on the way to a report."""

from __future__ import annotations

from hdr4me.simulation.sums import Simulated, simulate

__all__ = ["Simulated", "simulate"]
