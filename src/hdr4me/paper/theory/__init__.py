"""Simulations that test the paper's lemmas and theorems themselves, apart from its figures.

Each study has random streams of its own, so that none of them changes a number of Figures 2 to 5.
"""

from __future__ import annotations

from hdr4me.paper.theory.study import STUDIES, TheoryCell, TheoryResult, run_theory

__all__ = ["STUDIES", "TheoryCell", "TheoryResult", "run_theory"]
