"""Numbers with their nouns, and lists, as a sentence has them; standard library only."""

from __future__ import annotations

from collections.abc import Sequence


def counted(n: int, noun: str) -> str:
    """The number with separators, and the noun with an s unless the number is 1.

    >>> counted(1, "dimension"), counted(0, "user"), counted(12_000, "user")
    ('1 dimension', '0 users', '12,000 users')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def listed(words: Sequence[str]) -> str:
    """Words with commas between them, and "and" before the last one.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join([", ".join(words[:-1]), *words[-1:]] if len(words) > 1 else words)
