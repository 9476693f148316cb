"""The planner: the framework turned round, from what is wanted to the survey that brings it."""

from __future__ import annotations

from hdr4me.planner.ask import plan
from hdr4me.planner.plan import Option, Plan

__all__ = ["Option", "Plan", "plan"]
