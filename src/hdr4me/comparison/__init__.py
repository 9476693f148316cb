"""Comparison of mechanisms and budgets on public or synthetic data; it uses true values."""

from __future__ import annotations

from hdr4me.comparison.compare import Comparison, compare
from hdr4me.comparison.measure import Row

__all__ = ["Comparison", "Row", "compare"]
