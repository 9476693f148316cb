"""The few comparisons that the claims are made of, each with its threshold in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from hdr4me.paper.cells import CellResult
from hdr4me.paper.readings import Reading

HARDLY = 1.10
"""“Hardly changes”: the largest MSE of a curve is at most 10 % above its smallest."""
SAME = 0.10
"""“The same results”: within 10 % of the current aggregation."""
NOISY = ("laplace", "piecewise")
METHODS = ("l1", "l2")


def ratios(cells: Iterable[CellResult], method: str, reading: Reading) -> list[float]:
    """`ratio` in each cell."""
    return [cell.ratio(method, reading) for cell in cells]


def improvements(
    cells: Sequence[CellResult], reading: Reading, label: Callable[[CellResult], str], noun: str = ""
) -> tuple[str, list[str]]:
    """Where L1 and L2 enhance, as text, and the cells in which they do not, by `label`."""
    flags = {method: [cell.enhances(method, reading) for cell in cells] for method in METHODS}
    missed = [
        f"{method.upper()} {label(cell)} (ratio {cell.ratio(method, reading):.3g})"
        for method in METHODS
        for cell, flag in zip(cells, flags[method], strict=True)
        if not flag
    ]
    evidence = "; ".join(
        f"{method.upper()}/naive {span(ratios(cells, method, reading))}, better in {of_all(flags[method])}{noun}"
        for method in METHODS
    )
    return evidence, missed


def fall(cells: Sequence[CellResult], method: str, reading: Reading) -> float:
    """By what factor the MSE falls from the first cell of a curve to the last."""
    return cells[0].outcome(method, reading).mse / cells[-1].outcome(method, reading).mse


def spread_of(cells: Iterable[CellResult], method: str, reading: Reading) -> float:
    """The curve's largest MSE over its smallest."""
    values = [cell.outcome(method, reading).mse for cell in cells]
    return max(values) / min(values)


def span(values: Sequence[float]) -> str:
    """The smallest and largest of some numbers, as text.

    >>> span([0.5, 0.1234, 2.0])
    '0.123–2'
    """
    return f"{min(values):.3g}–{max(values):.3g}"


def of_all(flags: Sequence[bool]) -> str:
    """How many are true, of how many.

    >>> of_all([True, False, True])
    '2 of 3'
    """
    return f"{sum(flags)} of {len(flags)}"
