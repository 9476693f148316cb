"""A number with its noun, in the singular where the number is one; standard library only."""

from __future__ import annotations

__all__ = ["counted"]


def counted(n: int, noun: str) -> str:
    """The number with separators, and the noun with an s unless the number is 1.

    >>> counted(1, "dimension"), counted(0, "user"), counted(12_000, "user")
    ('1 dimension', '0 users', '12,000 users')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
