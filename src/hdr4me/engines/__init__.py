"""Engines: where records become reports and reports a tally; this machine, or a cluster.

Every engine keeps the protocol `Engine` (`perturb` and `tally`) and gives the same counts for the same reports. Each is
loaded when first named, so that one engine's dependencies are never needed by another's user.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hdr4me.engines.local import Local as Local
    from hdr4me.engines.protocol import ENGINES as ENGINES
    from hdr4me.engines.protocol import Engine as Engine
    from hdr4me.engines.spark_engine import Spark as Spark
    from hdr4me.engines.spark_engine import spark as spark
    from hdr4me.engines.spark_session import open_session as open_session
    from hdr4me.engines.spark_stream import committed_tally as committed_tally
    from hdr4me.io.reading import count_records as count_records

__all__ = ["ENGINES", "Engine", "Local", "Spark", "committed_tally", "count_records", "open_session", "spark"]

_HOMES = {
    "ENGINES": "protocol",
    "Engine": "protocol",
    "Local": "local",
    "Spark": "spark_engine",
    "committed_tally": "spark_stream",
    "count_records": "hdr4me.io.reading",
    "open_session": "spark_session",
    "spark": "spark_engine",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hdr4me.engines' has no attribute {name!r}")
    home = _HOMES[name] if "." in _HOMES[name] else f"hdr4me.engines.{_HOMES[name]}"
    return getattr(import_module(home), name)
