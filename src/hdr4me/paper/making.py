"""How a run was made: what it was asked for, what it ran on, how its cells were drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hdr4me.pages.document import Block, Heading, Table, Text
from hdr4me.paper.cells import title_of
from hdr4me.paper.clt import CltResult
from hdr4me.paper.outcomes import CellResult
from hdr4me.paper.readings import Reading
from hdr4me.paper.results import Results

__all__ = ["About", "making_blocks"]


@dataclass(frozen=True)
class About:
    """What a run was asked for and what it ran on."""

    command: str
    scale: str
    seed: int
    reading: Reading
    workers: int
    machine: dict[str, str]
    seconds: float
    processor_seconds: float = 0.0
    kept: int = 0


def making_blocks(results: Results, about: About) -> list[Block]:
    """Which cells were drawn how and in what time, and what the run was asked for."""
    theory = sum(study.seconds for study in results.theory)
    ways: dict[tuple[str, str], list[CellResult | CltResult]] = {}
    finished: list[CellResult | CltResult] = [*results.clt, *results.cells]
    for result in finished:
        where = "own" if result.cell.figure == "own" else result.cell.figure.replace("fig", "Figure ")
        place = f"{where}, {title_of(result.cell.mechanism)}"
        ways.setdefault((place, result.how), []).append(result)
    rows: list[list[object]] = [
        [place, how, _which(cells), f"{sum(cell.seconds for cell in cells):.0f} s"]
        for (place, how), cells in ways.items()
    ]
    if results.theory:
        names = ", ".join(study.cell.study for study in results.theory)
        rows.append(["Lemmas and theorems", "every report drawn", names, f"{theory:.0f} s"])
    lines: list[list[object]] = [
        ["command", about.command],
        ["scale", about.scale],
        ["seed", str(about.seed)],
    ]
    lines += [["workers", str(about.workers)], ["run time", f"{about.seconds:.0f} s"]]
    lines += [
        ["processor time of all cells", f"{about.processor_seconds:.0f} s"],
        ["cells kept from an earlier run", str(about.kept)],
    ]
    lines += [[name, value] for name, value in about.machine.items()]
    return [
        Heading("How it was made"),
        Text(
            "Shortcuts draw from exactly the same distribution as perturbing every single value would; the tests "
            "compare them with the plain mechanisms. Times are processor time."
        ),
        Table(["figure", "how", "cells", "time"], rows),
        Table(["", "this run"], lines),
    ]


def _which(cells: Sequence[CellResult | CltResult]) -> str:
    """The cells by data set, with their budgets (or numbers of dimensions)."""
    found: dict[str, list[str]] = {}
    for result in cells:
        if isinstance(result, CltResult):
            return "all"
        by_size = result.cell.figure == "fig5"
        found.setdefault(result.title + (": d = " if by_size else ": ε = "), []).append(
            f"{result.cell.n_dims if by_size else result.cell.epsilon:g}"
        )
    return "; ".join(title + ", ".join(values) for title, values in found.items())
