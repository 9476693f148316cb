"""All finished cells of a run, and how figures and claims ask for their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hdr4me.errors import InvalidInput
from hdr4me.paper.cells import Cell
from hdr4me.paper.clt import CltResult
from hdr4me.paper.outcomes import CellResult, Outcome
from hdr4me.paper.readings import Reading

__all__ = ["COLUMNS", "Results", "cells_from_rows", "gather", "outcome", "rows_of"]

COLUMNS = (
    "figure",
    "dataset",
    "data",
    "stand_in",
    "normalisation",
    "mechanism",
    "epsilon",
    "n_users",
    "n_dims",
    "repeats",
    "seed",
    "how",
    "method",
    "width",
    "spread",
    "reference",
    "mse",
    "standard_error",
    "better",
    "weight",
    "predicted_mse",
    "some_above_1",
    "all_above_1",
    "share_above_1",
    "some_above_2",
    "all_above_2",
    "share_above_2",
)
"""One line per cell and method: the numbers behind Figures 4 and 5."""


@dataclass(frozen=True)
class Results:
    """The cells of Figures 4 and 5, and those of 2 and 3."""

    cells: tuple[CellResult, ...]
    clt: tuple[CltResult, ...]

    def curve(self, figure: str, dataset: str, mechanism: str) -> list[CellResult]:
        """The cells of one panel, by budget (Figure 4) or number of dimensions (Figure 5)."""
        chosen = [
            result
            for result in self.cells
            if (result.cell.figure, result.cell.dataset, result.cell.mechanism)
            == (figure, dataset, mechanism)
        ]
        return sorted(chosen, key=lambda result: (result.cell.n_dims, result.cell.epsilon))

    def has(self, figure: str) -> bool:
        """Whether this figure was run."""
        cells = [result.cell.figure for result in self.cells]
        return figure in (*cells, *(result.cell.figure for result in self.clt))

    def deviations(self, figure: str, mechanism: str) -> CltResult:
        """The cell of Figure 2 or 3 for this mechanism."""
        for result in self.clt:
            if (result.cell.figure, result.cell.mechanism) == (figure, mechanism):
                return result
        raise InvalidInput(f"{figure} has no cell for {mechanism}")


def outcome(result: CellResult, method: str, reading: Reading | None = None) -> Outcome:
    """One method's outcome in a cell, under a reading of λ* where the method has one.

    Where a mechanism has no bias both spreads are the same and only the first is kept.
    """
    for item in result.outcomes:
        if item.method != method:
            continue
        if reading is None or not item.width:
            return item
        if item.width == reading.width and item.reference in ("", reading.reference):
            spreads = {o.spread for o in result.outcomes if o.method == method}
            if item.spread == (reading.spread if reading.spread in spreads else "noise"):
                return item
    raise InvalidInput(f"method = {method!r} has no outcome in {result.cell.key}")


def gather(finished: Iterable[CellResult | CltResult]) -> Results:
    """The results of a run, in the order given."""
    items = list(finished)
    return Results(
        cells=tuple(item for item in items if isinstance(item, CellResult)),
        clt=tuple(item for item in items if isinstance(item, CltResult)),
    )


def rows_of(results: Sequence[CellResult]) -> list[dict[str, Any]]:
    """One dictionary per cell and method, with the keys of `COLUMNS`."""
    rows = []
    for result in results:
        cell = result.cell
        common = {
            "figure": cell.figure,
            "dataset": cell.dataset,
            "data": result.title,
            "stand_in": result.stand_in,
            "normalisation": result.normalisation,
            "mechanism": cell.mechanism,
            "epsilon": cell.epsilon,
            "n_users": cell.n_users,
            "n_dims": cell.n_dims,
            "repeats": cell.repeats,
            "seed": result.seed,
            "how": result.how,
            "predicted_mse": result.predicted_mse,
        }
        for place, threshold in enumerate(("1", "2")):
            common[f"some_above_{threshold}"] = result.some_above[place]
            common[f"all_above_{threshold}"] = result.all_above[place]
            common[f"share_above_{threshold}"] = result.share_above[place]
        rows += [{**common, **vars(item)} for item in result.outcomes]
    return [{name: row[name] for name in COLUMNS} for row in rows]


def cells_from_rows(rows: Iterable[Mapping[str, str]]) -> tuple[CellResult, ...]:
    """Back from the lines of a CSV file of `rows_of`; the time each cell took is not in it."""
    found: dict[str, list[Mapping[str, str]]] = {}
    for row in rows:
        key = "/".join(row[name] for name in ("figure", "data", "mechanism", "epsilon", "n_dims"))
        found.setdefault(key, []).append(row)
    return tuple(_cell_of(lines) for lines in found.values())


def _cell_of(lines: Sequence[Mapping[str, str]]) -> CellResult:
    first = lines[0]

    def pair(name: str) -> tuple[float, float]:
        return float(first[f"{name}_1"]), float(first[f"{name}_2"])

    return CellResult(
        cell=Cell(
            figure=first["figure"],
            dataset=first["dataset"],
            mechanism=first["mechanism"],
            epsilon=float(first["epsilon"]),
            n_users=int(first["n_users"]),
            n_dims=int(first["n_dims"]),
            repeats=int(first["repeats"]),
        ),
        title=first["data"],
        stand_in=first["stand_in"] == "True",
        normalisation=first["normalisation"],
        seed=int(first["seed"]),
        how=first["how"],
        predicted_mse=float(first["predicted_mse"]),
        some_above=pair("some_above"),
        all_above=pair("all_above"),
        share_above=pair("share_above"),
        seconds=0.0,
        outcomes=tuple(
            Outcome(
                method=line["method"],
                width=line["width"],
                spread=line["spread"],
                reference=line["reference"],
                mse=float(line["mse"]),
                standard_error=float(line["standard_error"]),
                better=float(line["better"]),
                weight=float(line["weight"]) if line["weight"] else None,
            )
            for line in lines
        ),
    )
