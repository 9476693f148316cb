"""All finished cells of a run, and how figures and claims ask for their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hdr4me.errors import InvalidInput
from hdr4me.paper.clt import CltResult
from hdr4me.paper.outcomes import CellResult, Outcome
from hdr4me.paper.readings import Reading
from hdr4me.paper.theory import TheoryResult

__all__ = ["COLUMNS", "Results", "gather", "outcome", "rows_of"]

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
    """The cells of Figures 4 and 5, those of 2 and 3, and the studies of lemmas and theorems."""

    cells: tuple[CellResult, ...]
    clt: tuple[CltResult, ...]
    theory: tuple[TheoryResult, ...] = ()

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
        figures = {r.cell.figure for r in self.cells} | {r.cell.figure for r in self.clt}
        return figure in figures or (figure == "theory" and bool(self.theory))

    def study(self, name: str) -> TheoryResult:
        """The numbers of one study of the theory."""
        for result in self.theory:
            if result.cell.study == name:
                return result
        raise InvalidInput(f"the study {name!r} was not run")

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
                reading.note(result.cell.key, method, item.mse, item.standard_error, item.better, item.weight)
                return item
    raise InvalidInput(f"method = {method!r} has no outcome in {result.cell.key}")


def gather(finished: Iterable[CellResult | CltResult | TheoryResult]) -> Results:
    """The results of a run, in the order given."""
    items = list(finished)
    return Results(
        cells=tuple(item for item in items if isinstance(item, CellResult)),
        clt=tuple(item for item in items if isinstance(item, CltResult)),
        theory=tuple(item for item in items if isinstance(item, TheoryResult)),
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
