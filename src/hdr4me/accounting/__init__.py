"""The privacy of a survey in the shuffle model and over time, and its robustness against poisoned reports."""

from __future__ import annotations

from hdr4me.accounting.shuffling import Amplification, amplification, local_epsilon

__all__ = ["Amplification", "amplification", "local_epsilon"]
