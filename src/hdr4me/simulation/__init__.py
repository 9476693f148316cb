"""Seeded simulation of collections, for analysis only: simulated values never become reports."""

from __future__ import annotations

from hdr4me.simulation.sums import Simulated, simulate

__all__ = ["Simulated", "simulate"]
