"""The contracts of this package as functions, so that authors of plug-ins can run them in their own tests.

Each raises AssertionError with a sentence that says what does not hold.
"""

from __future__ import annotations

from hdr4me.checks.mechanism import check_mechanism
from hdr4me.checks.plugins import check_channel, check_dimension, check_engine, check_statistic

__all__ = ["check_channel", "check_dimension", "check_engine", "check_mechanism", "check_statistic"]
