"""Every sentence of the paper that asserts something, as a check on numbers; no verdict is written down."""

from __future__ import annotations

from hdr4me.paper.claims.budgets import BUDGETS
from hdr4me.paper.claims.claim import Claim, Finding, Verdict, judge
from hdr4me.paper.claims.dimensions import DIMENSIONS
from hdr4me.paper.claims.framework import FRAMEWORK
from hdr4me.paper.claims.theory import THEORY

__all__ = ["CLAIMS", "Claim", "Finding", "Verdict", "judge"]

CLAIMS: tuple[Claim, ...] = (*THEORY.claims, *FRAMEWORK.claims, *BUDGETS.claims, *DIMENSIONS.claims)
"""Lemmas and theorems first, then the figures, in the order of the text."""
