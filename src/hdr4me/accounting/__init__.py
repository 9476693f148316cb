"""What a survey's ε is worth in a crowd and over time: shuffled reports, repeated collections.

Names are loaded when they are first used: parts of this room need NumPy, the parts that a device uses do not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hdr4me.accounting.shuffling import Amplification as Amplification
    from hdr4me.accounting.shuffling import amplification as amplification
    from hdr4me.accounting.shuffling import local_epsilon as local_epsilon

_HOMES = {"Amplification": "shuffling", "amplification": "shuffling", "local_epsilon": "shuffling"}

__all__ = ["Amplification", "amplification", "local_epsilon"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hdr4me.accounting' has no attribute {name!r}")
    return getattr(import_module(f"hdr4me.accounting.{_HOMES[name]}"), name)
