"""Mechanisms: how one value is perturbed.

`mechanism(name, epsilon=…)` is the door. Nothing is imported before it is asked for, so that the
standard-library part of this room (`exactness`) serves clients that have no NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hdr4me.errors import InvalidInput

if TYPE_CHECKING:
    from hdr4me.mechanisms.law import Mechanism

__all__ = ["NAMES", "mechanism"]

_HOMES = {
    "laplace": ("laplace", "Laplace"),
    "scdf": ("staircase", "SCDF"),
    "staircase": ("staircase", "Staircase"),
    "duchi": ("duchi", "Duchi"),
    "piecewise": ("piecewise", "Piecewise"),
    "hybrid": ("hybrid", "Hybrid"),
    "square_wave": ("square_wave", "SquareWave"),
    "optimal": ("optimal", "optimal"),
}

NAMES = tuple(_HOMES)
"""Every name that `mechanism` takes."""


def mechanism(name: str, *, epsilon: float, **options: Any) -> Mechanism:
    """The mechanism called `name` under the budget `epsilon` of one value.

    Options: `variant="l1"|"variance"` (staircase), `domain=(0, 1)|(-1, 1)` (square_wave),
    `objective="max"|"mean"` (optimal).

    >>> mechanism("duchi", epsilon=1.0).support
    (-2.163953413738653, 2.163953413738653)
    """
    if name not in _HOMES:
        raise InvalidInput(f"mechanism = {name!r} is not known: use one of {', '.join(NAMES)}")
    module, factory = _HOMES[name]
    make = getattr(import_module(f"hdr4me.mechanisms.{module}"), factory)
    try:
        made: Mechanism = make(epsilon=epsilon, **options)
    except TypeError as error:
        raise InvalidInput(f"options {sorted(options)} are not allowed for mechanism {name!r}") from error
    return made
