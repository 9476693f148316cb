"""Comparison: which mechanism, which ε, on these data; for public or synthetic data, for it reads true values."""

from __future__ import annotations

from hdr4me.comparison.compare import Comparison, Row, compare

__all__ = ["Comparison", "Row", "compare"]
