"""The few comparisons that the claims are made of, each with its threshold in one place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from hdr4me.paper.outcomes import CellResult, Outcome
from hdr4me.paper.readings import Reading
from hdr4me.paper.results import outcome

__all__ = [
    "HARDLY",
    "SAME",
    "enhances",
    "fall",
    "harms",
    "of_all",
    "ratio",
    "ratios",
    "span",
    "spread_of",
]

HARDLY = 1.10
"""“Hardly changes”: the largest MSE of a curve is at most 10 % above its smallest."""
SAME = 0.10
"""“The same results”: within 10 % of the current aggregation."""


def _pair(cell: CellResult, method: str, reading: Reading) -> tuple[Outcome, Outcome]:
    return outcome(cell, method, reading), outcome(cell, "naive")


def ratio(cell: CellResult, method: str, reading: Reading) -> float:
    """The method's MSE over that of the current aggregation."""
    found, naive = _pair(cell, method, reading)
    return found.mse / naive.mse


def enhances(cell: CellResult, method: str, reading: Reading) -> bool:
    """The MSE is smaller, by more than two standard errors of the difference (taken as independent)."""
    found, naive = _pair(cell, method, reading)
    return naive.mse - found.mse > 2 * math.hypot(found.standard_error, naive.standard_error)


def harms(cell: CellResult, method: str, reading: Reading) -> bool:
    """The MSE is larger, by more than two standard errors of the difference (taken as independent)."""
    found, naive = _pair(cell, method, reading)
    return found.mse - naive.mse > 2 * math.hypot(found.standard_error, naive.standard_error)


def ratios(cells: Iterable[CellResult], method: str, reading: Reading) -> list[float]:
    """`ratio` in each cell."""
    return [ratio(cell, method, reading) for cell in cells]


def fall(cells: Sequence[CellResult], method: str, reading: Reading) -> float:
    """By what factor the MSE falls from the first cell of a curve to the last."""
    return outcome(cells[0], method, reading).mse / outcome(cells[-1], method, reading).mse


def spread_of(cells: Iterable[CellResult], method: str, reading: Reading) -> float:
    """The curve's largest MSE over its smallest."""
    values = [outcome(cell, method, reading).mse for cell in cells]
    return max(values) / min(values)


def span(values: Sequence[float]) -> str:
    """The smallest and largest of some numbers, as text.

    >>> span([0.5, 0.1234, 2.0])
    '0.123–2'
    """
    return f"{min(values):.3g}–{max(values):.3g}"


def of_all(flags: Iterable[bool]) -> str:
    """How many are true, of how many.

    >>> of_all([True, False, True])
    '2 of 3'
    """
    known = list(flags)
    return f"{sum(known)} of {len(known)}"
