"""Engines: where records become reports and reports a tally; this machine, or a cluster.

Every engine keeps the protocol `Engine` (`perturb` and `tally`) and gives the same counts for the same reports. Each is
loaded when first named, so that one engine's dependencies are never needed by another's user.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hdr4me.engines.one_call import collect, run
    from hdr4me.engines.local import Local
    from hdr4me.engines.protocol import ENGINES, Engine
    from hdr4me.engines.spark_engine import Spark, spark
    from hdr4me.engines.spark_session import open_session
    from hdr4me.engines.spark_stream import committed_tally
    from hdr4me.io.reading import count_records

__all__ = [
    "ENGINES",
    "Engine",
    "Local",
    "Spark",
    "collect",
    "committed_tally",
    "count_records",
    "open_session",
    "run",
    "spark",
]

_HOMES = {
    "engines.one_call": ("collect", "run"),
    "engines.local": ("Local",),
    "engines.protocol": ("ENGINES", "Engine"),
    "engines.spark_engine": ("Spark", "spark"),
    "engines.spark_session": ("open_session",),
    "engines.spark_stream": ("committed_tally",),
    "io.reading": ("count_records",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"hdr4me.{home}"), name)
    raise AttributeError(f"module 'hdr4me.engines' has no attribute {name!r}")
