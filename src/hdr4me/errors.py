"""Everything this package raises on purpose.

    HDR4MEError
    ├── InvalidInput          (also a ValueError) a parameter, record, schema or option is not allowed
    ├── FormatError           a file or message is not what it should be
    │   └── FingerprintMismatch   it belongs to another survey
    ├── BudgetExceeded        the ledger refuses to spend more
    ├── NotReachable          no plan meets what was asked; carries the nearest that does
    └── MissingDependency     an optional package is not installed; says how to install it

Each message names the parameter, its value and what is allowed.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "BudgetExceeded",
    "FingerprintMismatch",
    "FormatError",
    "HDR4MEError",
    "InvalidInput",
    "MissingDependency",
    "NotReachable",
]


class HDR4MEError(Exception):
    """The root of the tree: catch this to catch all of them."""


class InvalidInput(HDR4MEError, ValueError):
    """A parameter, record, schema or option is not allowed."""


class FormatError(HDR4MEError):
    """A file or a message is not what it should be."""


class FingerprintMismatch(FormatError):
    """A report or tally belongs to another survey; names both fingerprints."""

    def __init__(self, what: str, expected: str, found: str) -> None:
        super().__init__(f"{what} belongs to survey {found}, expected survey {expected}")
        self.expected = expected
        self.found = found


class BudgetExceeded(HDR4MEError):
    """The ledger refuses: the survey's budget is spent."""


class NotReachable(HDR4MEError):
    """No plan meets what was asked; `nearest` is the plan that comes closest."""

    def __init__(self, message: str, nearest: Any = None) -> None:
        super().__init__(message)
        self.nearest = nearest


class MissingDependency(HDR4MEError):
    """An optional package is not installed."""
