"""Local differential privacy for high-dimensional data.

The public surface; every name is loaded when it is first used, so that `import hdr4me` costs next to nothing
and the client runs where NumPy is not installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hdr4me import engines as engines
    from hdr4me.accounting import amplification as amplification
    from hdr4me.accounting import local_epsilon as local_epsilon
    from hdr4me.client import Client as Client
    from hdr4me.client import Ledger as Ledger
    from hdr4me.client import PermanentClient as PermanentClient
    from hdr4me.framework import Deviation as Deviation
    from hdr4me.framework import deviation as deviation
    from hdr4me.mechanisms import mechanism as mechanism
    from hdr4me.planner import plan as plan
    from hdr4me.recalibration import recalibrate as recalibrate
    from hdr4me.statistics import Estimate as Estimate
    from hdr4me.survey import Categorical as Categorical
    from hdr4me.survey import Numeric as Numeric
    from hdr4me.survey import Schema as Schema
    from hdr4me.survey import Survey as Survey
    from hdr4me.tally import Tally as Tally

__version__ = "0.1.0"

_HOMES = {
    "Categorical": "survey",
    "Client": "client",
    "Deviation": "framework",
    "Estimate": "statistics",
    "Ledger": "client",
    "Numeric": "survey",
    "PermanentClient": "client",
    "Schema": "survey",
    "Survey": "survey",
    "Tally": "tally",
    "amplification": "accounting",
    "deviation": "framework",
    "local_epsilon": "accounting",
    "mechanism": "mechanisms",
    "plan": "planner",
    "recalibrate": "recalibration",
}

__all__ = [
    "Categorical",
    "Client",
    "Deviation",
    "Estimate",
    "Ledger",
    "Numeric",
    "PermanentClient",
    "Schema",
    "Survey",
    "Tally",
    "amplification",
    "deviation",
    "engines",
    "local_epsilon",
    "mechanism",
    "plan",
    "recalibrate",
]


def __getattr__(name: str) -> Any:
    if name == "engines":
        return import_module("hdr4me.engines")
    if name not in _HOMES:
        raise AttributeError(f"module 'hdr4me' has no attribute {name!r}")
    value = getattr(import_module(f"hdr4me.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
