"""The planner: from the required accuracy to a survey that reaches it."""

from __future__ import annotations

from hdr4me.planner.ask import plan
from hdr4me.planner.plan import Option, Plan

__all__ = ["Option", "Plan", "plan"]
