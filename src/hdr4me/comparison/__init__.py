"""Comparison: which mechanism, which ε, on these data; for public or synthetic data, for it reads true values."""

from __future__ import annotations

from hdr4me.comparison.compare import Comparison, compare
from hdr4me.comparison.measure import Row

__all__ = ["Comparison", "Row", "compare"]
