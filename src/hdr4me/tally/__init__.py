"""Tallies: integer counts of reports, which add exactly."""

from __future__ import annotations

from hdr4me.survey.layout import Layout
from hdr4me.tally.pairs import PairCounts
from hdr4me.tally.tally import Tally

__all__ = ["Layout", "PairCounts", "Tally"]
