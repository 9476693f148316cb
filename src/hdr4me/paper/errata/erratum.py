"""What an erratum is."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Erratum"]


@dataclass(frozen=True)
class Erratum:
    """One departure: where, what is printed, what is right, the derivation, the numbers that show it.

    `commentary` marks what the paper does not get wrong but leaves unsaid.
    """

    title: str
    where: str
    printed: str
    right: str
    derivation: str
    numbers: tuple[tuple[str, float], ...] = ()
    commentary: bool = False
