"""Contract tests for plug-ins: functions that authors call in their own tests.

Each raises AssertionError with a message that states the violated requirement.
"""

from __future__ import annotations

from hdr4me.checks.mechanism import check_mechanism
from hdr4me.checks.plugins import check_channel, check_dimension, check_engine, check_statistic

__all__ = ["check_channel", "check_dimension", "check_engine", "check_mechanism", "check_statistic"]
