"""Every sentence of the paper that asserts something, as a check on numbers; no verdict is written down."""

from __future__ import annotations

from hdr4me.paper.claims.budgets import BUDGET_CLAIMS
from hdr4me.paper.claims.claim import Claim, Finding, Verdict, judge
from hdr4me.paper.claims.dimensions import DIMENSION_CLAIMS
from hdr4me.paper.claims.framework import FRAMEWORK_CLAIMS
from hdr4me.paper.claims.theory import THEORY_CLAIMS

__all__ = ["CLAIMS", "Claim", "Finding", "Verdict", "judge"]

CLAIMS: tuple[Claim, ...] = (*THEORY_CLAIMS, *FRAMEWORK_CLAIMS, *BUDGET_CLAIMS, *DIMENSION_CLAIMS)
"""Lemmas and theorems first, then the figures, in the order of the text."""
