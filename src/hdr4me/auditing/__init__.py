"""The audit: a proof and an attack for every channel, and alarms for poisoned reports."""

from __future__ import annotations

from hdr4me.auditing.alarms import Alarm, Watch, present_shares, watch
from hdr4me.auditing.auditor import ALARM, Audit, Finding, attack, audit

__all__ = ["ALARM", "Alarm", "Audit", "Finding", "Watch", "attack", "audit", "present_shares", "watch"]
