"""Every sentence of the paper that asserts something, as a check on numbers; no verdict is written down."""

from __future__ import annotations

from hdr4me.paper.claims.claim import Claim, Finding, Verdict, judge
from hdr4me.paper.claims.figures import FIGURES
from hdr4me.paper.claims.lemmas import LEMMAS

__all__ = ["CLAIMS", "Claim", "Finding", "Verdict", "judge"]

# Lemmas and theorems first, then the figures, in the order of the text.
CLAIMS: tuple[Claim, ...] = (*LEMMAS.claims, *FIGURES.claims)
