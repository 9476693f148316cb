"""Explanations of a survey in plain words: what it asks, sends and reveals, derived from its document."""

from __future__ import annotations

from hdr4me.explanation.explain import AUDIENCES, Explanation, explain

__all__ = ["AUDIENCES", "Explanation", "explain"]
