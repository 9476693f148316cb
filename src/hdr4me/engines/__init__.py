"""Engines turn records into reports and reports into a tally, on this machine or on a Spark cluster.

Every engine implements the protocol `Engine` and gives the same counts for the same reports. The public names are
listed in `__init__.pyi` and imported when they are first used, so that each engine needs only its own dependencies.
"""

from __future__ import annotations

from hdr4me._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)
