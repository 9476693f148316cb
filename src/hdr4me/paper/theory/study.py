"""A study of one lemma or theorem: what is asked, and the named numbers that it found."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from hdr4me.errors import InvalidInput
from hdr4me.paper.theory.joint import joint_law
from hdr4me.paper.theory.lemmas import lemmas_per_dimension
from hdr4me.paper.theory.normal import normal_approximation

__all__ = ["STUDIES", "TheoryCell", "TheoryResult", "run_theory"]

_STUDIES: dict[str, Callable[[int, int], dict[str, float]]] = {
    "joint": joint_law,
    "normal": normal_approximation,
    "lemmas": lemmas_per_dimension,
}
STUDIES = tuple(_STUDIES)
"""Theorem 1 for several dimensions at once, Theorem 2's bound, Lemmas 4 and 5 in each dimension."""


@dataclass(frozen=True)
class TheoryCell:
    """One study; `repeats` scales its number of draws."""

    study: str
    repeats: int
    figure: str = "theory"

    @property
    def key(self) -> str:
        """A name that no other cell of the same run has."""
        return f"{self.figure}-{self.study}"


@dataclass(frozen=True)
class TheoryResult:
    """The numbers that a study found, by name."""

    cell: TheoryCell
    seed: int
    seconds: float
    numbers: dict[str, float]

    def __getitem__(self, name: str) -> float:
        """The number called `name`."""
        if name not in self.numbers:
            raise InvalidInput.of("name", name, f"a number of the study {self.cell.study!r}")
        return self.numbers[name]

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries and lists."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> TheoryResult:
        """Back from `to_json`."""
        return cls(**{**document, "cell": TheoryCell(**document["cell"])})


def run_theory(cell: TheoryCell, seed: int) -> TheoryResult:
    """Run one study.

    >>> run_theory(TheoryCell("lemmas", 2), seed=1)["l1/z1"]
    1.0
    """
    start = time.process_time()
    numbers = _STUDIES[cell.study](cell.repeats, seed)
    return TheoryResult(cell, seed, time.process_time() - start, numbers)
