"""Explanations: what a survey asks, sends and reveals, in plain words, written from its document alone."""

from __future__ import annotations

from hdr4me.explanation.explain import AUDIENCES, Explanation, explain

__all__ = ["AUDIENCES", "Explanation", "explain"]
