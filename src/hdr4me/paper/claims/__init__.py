"""Every sentence of sections IV-C and VI that asserts something, as a check; no verdict is written down."""

from __future__ import annotations

from hdr4me.paper.claims.budgets import BUDGET_CLAIMS
from hdr4me.paper.claims.claim import Claim, Finding, Verdict, judge
from hdr4me.paper.claims.dimensions import DIMENSION_CLAIMS
from hdr4me.paper.claims.framework import FRAMEWORK_CLAIMS

__all__ = ["CLAIMS", "Claim", "Finding", "Verdict", "judge"]

CLAIMS: tuple[Claim, ...] = (*FRAMEWORK_CLAIMS, *BUDGET_CLAIMS, *DIMENSION_CLAIMS)
"""In the order of the text."""
