"""The audit: a proof by fractions for every channel, and an attack that tries to tell two records apart."""

from __future__ import annotations

from hdr4me.auditing.auditor import ALARM, Audit, Finding, attack, audit

__all__ = ["ALARM", "Audit", "Finding", "attack", "audit"]
