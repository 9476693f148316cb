"""Mechanisms: how one value is perturbed.

`mechanism(name, epsilon=…)` makes a mechanism, `register_mechanism` adds a name, and `exact` makes a deployable table
from any law. Modules are imported when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hdr4me.mechanisms.registry import mechanism, names, register_mechanism

if TYPE_CHECKING:
    from hdr4me.mechanisms.discretize import exact as exact

__all__ = ["exact", "mechanism", "names", "register_mechanism"]


def __getattr__(name: str) -> Any:
    if name != "exact":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hdr4me.mechanisms.discretize import exact

    return exact
